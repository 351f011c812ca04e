"""A tiny agent for the `exec` carrier: answers by step, slowly if told so, and keeps a diary.

Real enough: it reads its prompt to the end, writes one JSON object, and knows only what the
environment and the prompt tell it. Each asking leaves a line in the file named by DIARY.
"""

import json
import os
import sys
import time
from pathlib import Path

ANSWERS = {
    "write": {"words": 5},
    "judge": {"mark": 4},
    "sign": {"decision": "approve"},
    "work": {},
}


def main() -> None:
    prompt = json.loads(sys.stdin.read())
    step = os.environ["INTERLOCK_STEP"]
    assert prompt["step"] == step
    assert prompt["case_id"] == os.environ["INTERLOCK_CASE_ID"]
    if "DIARY" in os.environ:
        with Path(os.environ["DIARY"]).open("a", encoding="utf-8") as diary:
            diary.write(f"{os.environ['INTERLOCK_DISPATCH_ID']} {step}\n")
    time.sleep(float(os.environ.get("SLOW", "0")))
    sys.stdout.write(json.dumps(ANSWERS[step]))


if __name__ == "__main__":
    main()
