"""The verb demo: a small world in a folder, and the real commands run on it, one after another.

Each command is a process of its own, shown as a user would type it. In the middle the coordinator
is killed with SIGKILL; what follows proves that nothing was lost.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from interlock.cli.door import Exit, app
from interlock.cli.show import Json, document, say
from interlock.core.errors import StateError
from interlock.wiring import DATABASE

TOPICS = ("login", "search", "billing", "export", "audit log", "dark mode", "api keys", "webhooks")
SCRIPT = """\
# The crew of the demo. Each line is what an agent does when it is asked.
"*":
  draft: {delay: 150ms, answer: {text: A careful first draft.}, usage: {tokens: 900}}
  review: {delay: 150ms, answer: {score: 0.86, risky: false, remarks: []}, usage: {tokens: 400}}
  publish: {answer: {}}
C2:  # needs a second draft
  review:
    - {delay: 150ms, answer: {score: 0.55, risky: false, remarks: [Say what happens on failure.]}}
    - {answer: {score: 0.9, risky: false, remarks: []}}
C3:  # an agent that crashes, then babbles, then works
  draft:
    - {crash: "exit code 1: out of memory"}
    - {raw: "READY_FOR_REVIEW: all done, trust me"}
    - {answer: {text: The third time is a charm.}}
C4:  # forges an answer to another dispatch before it gives its own
  review: {forges: 99999, answer: {score: 0.95, risky: true, remarks: []}}
C5:  # says everything twice
  draft: {answer: {text: "I said, I said."}, twice: true}
C6:  # never good enough
  review: {answer: {score: 0.5, risky: false, remarks: [No.]}}
"""


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="For the small world.")] = Path(
        "demo"
    ),
    json: Json = False,
) -> None:
    """See it all once, in seconds. Verify, run, kill, resume, answer, explain, replay."""
    world = folder.resolve()
    if world.exists() and not world.is_dir():
        raise StateError(f"{world} is a file; name a folder")
    if world.exists() and any(world.iterdir()):
        if not all(_says(world / name, text) for name, text in _files().items()):
            raise StateError(f"{world} is not empty and not an earlier demo; name another folder")
        for old in (world / ".interlock").glob("interlock.db*"):
            old.unlink() if old.is_file() else _empty(old)
    world.mkdir(parents=True, exist_ok=True)
    _make(world)
    show = Show(world, (lambda _text="": None) if json else say)
    show.play()
    if json:
        document({"folder": str(world), "commands": show.played})


class Show:
    """Runs commands in the world and says them as they would be typed."""

    def __init__(self, world: Path, say: Callable[..., None]) -> None:
        self.played: list[dict[str, Any]] = []
        self._world = world
        self._say = say

    def play(self) -> None:
        self._say("A circuit is data. It is proven before it runs:")
        self._type("circuit", "verify", "change")
        self._say("Eight cases, a crew with liars in it. In the middle the coordinator is killed:")
        self._kill_in_the_middle()
        self._say("The same command again. It goes on where it was:")
        self._type(*_RUN, expect=Exit.WAITING)
        self._say("These changes ask a human. Nobody else can approve them:")
        self._type("inbox")
        for question_id in self._questions():
            self._type("answer", str(question_id), "approve", quiet=True)
        self._say()
        self._type("resume", expect=Exit.UNHEALTHY)
        self._say("What were the liars told? Forged, doubled, unreadable answers changed nothing:")
        self._type("status")
        self._say("Why did C3 take so long? Every step is on record:")
        self._type("explain", "C3")
        self._say("What would a lower threshold have done? Decided again, no agent asked:")
        self._type("replay", "--set", "good_enough=0.5")
        self._say("Is every case still the fold of its journal?")
        self._type("doctor", "--deep")
        self._say(f"The small world is in {self._world}: look around, try your own.")

    def _type(self, *words: str, expect: int = Exit.DONE, quiet: bool = False) -> None:
        self._say(f"{'' if quiet else chr(10)}$ interlock {' '.join(words)}")
        done = subprocess.run(  # noqa: S603
            _command(*words),
            cwd=self._world,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self._say(done.stdout.strip() if quiet else done.stdout)
        self.played.append({"words": words, "exit": done.returncode, "output": done.stdout})
        if done.returncode != expect:
            raise StateError(
                f"'interlock {' '.join(words)}' was meant to end with {expect}, "
                f"not {done.returncode}: {done.stdout.strip()}"
            )

    def _kill_in_the_middle(self) -> None:
        self._say(f"\n$ interlock {' '.join(_RUN)}")
        process = subprocess.Popen(  # noqa: S603
            _command(*_RUN),
            cwd=self._world,
            env=_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and self._decisions() < 6:
            time.sleep(0.02)
        process.kill()
        self.played.append({"words": _RUN, "exit": process.wait(), "output": ""})
        self._say(f"killed (SIGKILL) after {self._decisions()} decisions\n")

    def _decisions(self) -> int:
        from interlock.store.database import reading
        from interlock.store.history import lines_since

        path = self._world / DATABASE
        if not path.exists():
            return 0
        with reading(path) as connection:
            return len(lines_since(connection, 1, 0))

    def _questions(self) -> list[int]:
        done = subprocess.run(  # noqa: S603
            _command("inbox", "--json"),
            cwd=self._world,
            env=_environment(),
            capture_output=True,
            check=True,
        )
        return [each["question_id"] for each in msgspec.json.decode(done.stdout)["questions"]]


_RUN = ("run", "change", "--cases", "cases.jsonl", "--agent", "script:crew.yaml")


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "interlock", *words]


def _environment() -> dict[str, str]:
    """Nothing of the user's own settings: the small world is for itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}


def _make(world: Path) -> None:
    for name, text in _files().items():
        (world / name).write_text(text, encoding="utf-8")


def _files() -> dict[str, str]:
    lines = [
        msgspec.json.encode({"id": f"C{number}", "topic": topic}).decode()
        for number, topic in enumerate(TOPICS, 1)
    ]
    return {"cases.jsonl": "\n".join(lines) + "\n", "crew.yaml": SCRIPT}


def _says(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
