"""A fake agent CLI: a real process that plays a scene, whatever it is asked.

A scene is a list of acts: lines to print, things to do. Each start of the program plays the next
scene of its file, notes how it was called, and keeps its prompt. It knows no dialect.
"""

import json
import sys
from pathlib import Path
from typing import Any

PROGRAM = """#!{python}
import json, os, signal, subprocess, sys, time
place = {place!r}
number = len([name for name in os.listdir(place) if name.startswith("call-")])
called = {{"argv": sys.argv[1:], "stdin": sys.stdin.read()}}
called |= {{"cwd": os.getcwd(), "env": dict(os.environ)}}
with open(os.path.join(place, ".new"), "w") as file:
    json.dump(called, file)
os.rename(os.path.join(place, ".new"), os.path.join(place, f"call-{{number}}.json"))
scenes = json.load(open(os.path.join(place, "scenes.json")))
for act in scenes[min(number, len(scenes) - 1)]:
    kind, value = act
    if kind == "say":
        sys.stdout.write(value if isinstance(value, str) else json.dumps(value))
        sys.stdout.write("\\n")
        sys.stdout.flush()
    elif kind == "raw":
        os.write(1, bytes.fromhex(value))
    elif kind == "err":
        sys.stderr.write(value)
        sys.stderr.flush()
    elif kind == "answer-term":
        def late(*_):
            for line in value:
                os.write(1, (json.dumps(line) + "\\n").encode())
            os._exit(0)
        signal.signal(signal.SIGTERM, late)
    elif kind == "run":
        subprocess.run(value)
    elif kind == "leave":
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        open(os.path.join(place, "left"), "w").write(f"{{child.pid}}\\n")
    elif kind == "pid":
        open(os.path.join(place, "pid"), "w").write(f"{{os.getpid()}}\\n")
    elif kind == "hang":
        while True:
            signal.pause()
    elif kind == "kill":
        os.kill(os.getpid(), value)
    elif kind == "exit":
        sys.exit(value)
"""

Act = tuple[str, Any]


def say(*lines: Any) -> list[Act]:
    return [("say", line) for line in lines]


class FakeCli:
    """The program, its scenes, and how it was called."""

    def __init__(self, folder: Path, *scenes: list[Act]) -> None:
        self.place = folder / "fake"
        self.place.mkdir(parents=True)
        self.program = folder / "agent"
        self.program.write_text(PROGRAM.format(python=sys.executable, place=str(self.place)))
        self.program.chmod(0o755)
        (self.place / "scenes.json").write_text(json.dumps(scenes))

    def calls(self) -> list[dict[str, Any]]:
        found = sorted(self.place.glob("call-*.json"), key=lambda path: int(path.stem[5:]))
        return [json.loads(path.read_text()) for path in found]
