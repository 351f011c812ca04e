"""A gate against long walks: how many of our modules a plain run executes."""

import json
import subprocess
import sys
from pathlib import Path

MOST_MODULES = 70
"""Modules of which a function runs in `interlock run`; lower it whenever a walk gets shorter."""

CIRCUIT = """\
circuit: tiny
start: work
ends: {done: healthy, failed: unhealthy}
steps:
  work: {role: worker, timeout: 60s, answer: {type: object}}
  sign: {gate: true, answer: approval}
rules:
  - {id: worked, at: work, to: sign}
  - {id: signed, at: sign, when: decision == "approve", to: done}
  - {id: unsigned, at: sign, to: failed}
otherwise: failed
"""
OPTIMIZED = 1
"""The flag of code objects that functions have and bodies of modules and classes have not."""
PROFILED = f"""\
import json, sys, threading

found = set()

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & {OPTIMIZED} and code.co_name[0] != "<":
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0].startswith("interlock"):
            found.add(module)

from interlock.cli.app import main

threading.setprofile(note)
sys.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    with open("modules.json", "w") as file:
        json.dump(sorted(found), file)
"""


def test_a_plain_run_walks_through_few_modules(tmp_path: Path) -> None:
    (tmp_path / "circuits").mkdir()
    (tmp_path / "circuits" / "tiny.yaml").write_text(CIRCUIT)
    (tmp_path / "cases.jsonl").write_text('{"id": "C1"}\n')
    words = ["run", "tiny", "--cases", "cases.jsonl", "--agent", "worker=exec:echo {}"]
    result = subprocess.run(
        [sys.executable, "-c", PROFILED, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 4, result.stderr
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert "interlock.runtime.loop" in modules
    assert len(modules) <= MOST_MODULES, "\n".join(modules)
