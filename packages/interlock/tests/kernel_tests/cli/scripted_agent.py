"""An agent for `exec`: a plain program whose answers follow from case, step and attempt alone.

One case in seven goes through each of: a crash, babble, a kill by signal, too many drafts, a second
draft, a risk and a human who wants it otherwise. Every call leaves a line in $CREW_LOG.
"""

import json
import os
import signal
import sys
from pathlib import Path

CASE = os.environ["INTERLOCK_CASE_ID"]
STEP = os.environ["INTERLOCK_STEP"]
ATTEMPT = int(os.environ["INTERLOCK_ATTEMPT"])
KIND = int(CASE[1:]) % 7


def draft() -> object:
    if KIND == 0 and ATTEMPT == 1:
        sys.exit("out of memory")
    if KIND == 1 and ATTEMPT == 1:
        return "READY_FOR_REVIEW: all done, trust me"
    return {"text": f"{CASE}, draft {ATTEMPT}"}


def review() -> object:
    if KIND == 2 and ATTEMPT == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    bad = KIND == 3 or (KIND == 4 and ATTEMPT == 1)
    return {"score": 0.5 if bad else 0.9, "risky": KIND == 5, "remarks": [f"{CASE}#{ATTEMPT}"]}


def approve() -> object:
    return {"decision": "revise" if KIND == 6 and ATTEMPT == 1 else "approve"}


def publish() -> object:
    if KIND == 0 and ATTEMPT < 3:
        return "x" * 100
    return {}


def main() -> None:
    sys.stdin.read()
    line = "\t".join([os.environ["INTERLOCK_DISPATCH_ID"], CASE, STEP, str(ATTEMPT)])
    with Path(os.environ["CREW_LOG"]).open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")
    result = {"draft": draft, "review": review, "approve": approve, "publish": publish}[STEP]()
    sys.stdout.write(result if isinstance(result, str) else json.dumps(result))


if __name__ == "__main__":
    main()
