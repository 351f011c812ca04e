"""One session of the epic `boats`, played by a script instead of an agent.

It finds out where the work stands from the files that earlier sessions committed, does the next
piece, says what happened in line signals, and leaves. Its second session crashes, one asks a human,
and one finds that it cannot go on without `harbour.key`.
"""

import os
import subprocess
import sys
from pathlib import Path

EPIC = "boats"


def say(signal: str) -> None:
    print(f"SAGE_SIGNAL:{signal}", flush=True)


def commit(name: str, text: str) -> None:
    """A piece of work, kept in git before anything is said about it."""
    Path(name).write_text(text)
    who = ["-c", "user.name=session", "-c", "user.email=session@example.org"]
    subprocess.run(["git", "add", name], check=True)
    subprocess.run(["git", *who, "commit", "-q", "-m", f"Add {name}"], check=True)


def first_story() -> None:
    say("STORY_STARTED:1-1")
    commit("boats.txt", "Albatross\nPetrel\n")
    say("STORY_COMPLETE:1-1:done")
    say(f"CHECKPOINT:WRITE:{EPIC}:1-2:build:1")


def second_story() -> None:
    say("STORY_STARTED:1-2")
    crashed = Path(".interlock") / "crashed-once"
    if not crashed.exists():
        crashed.touch()
        os.abort()
    commit("bookings.txt", "Albatross: Ann\n")
    say("STORY_COMPLETE:1-2:done")
    say(f"CHECKPOINT:WRITE:{EPIC}:1-3:review:1")


def ask() -> None:
    print("The bookings are ready. Shall the report be written for them?")
    (Path(".interlock") / "asked").touch()
    say("HITL_REQUIRED")


def third_story() -> None:
    say("STORY_STARTED:1-3")
    if not Path("harbour.key").exists():
        say("FATAL_ERROR:SUBAGENT_FAILED:harbour.key is missing: put it here, then resume")
        return
    commit("report.txt", "One boat is booked.\n")
    say("STORY_COMPLETE:1-3:done")
    say(f"EPIC_COMPLETE:{EPIC}:success")


def main() -> None:
    sys.stdin.read()
    if not Path("boats.txt").exists():
        first_story()
    elif not Path("bookings.txt").exists():
        second_story()
    elif not (Path(".interlock") / "asked").exists():
        ask()
    else:
        third_story()


if __name__ == "__main__":
    main()
