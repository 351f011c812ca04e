"""A project with an epic, and scripted sessions that work on it through the real command."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.world.command_line import CliResult, World
from tests.world.git_repo import GitRepo

SESSION = Path(__file__).parent / "epic_session.py"
EPIC = """\
# Epic 3: Boats
Status: ready-for-dev

## Story 3.1: Login
Status: drafted

### Acceptance Criteria
1. A sailor can log in.

### Tasks
- [ ] Task 1: the form
- [x] Task 2: the table

## Story 3.2: Logout
## Story 3.3: Report
"""
SETTINGS = """\
[epic]
grace = "200ms"
backoff = "0"
"""
WRITE = "SAGE_SIGNAL:CHECKPOINT:WRITE:epic-3:3-1:phase-1:1"
SUCCESS = "SAGE_SIGNAL:EPIC_COMPLETE:epic-3:success"
DONE = f"SAGE_SIGNAL:STORY_COMPLETE:3-1:done\n{SUCCESS}"
Act = Any


class Project:
    """A repository with `epic.md`, and a way to run it with sessions that follow a script."""

    def __init__(self, world: World, settings: str = SETTINGS) -> None:
        self.world = world
        self.repo = GitRepo(world.folder)
        world.write("epic.md", EPIC)
        world.write("interlock.toml", settings)
        world.write(".gitignore", "script*\n.interlock/\n.sage/\n")
        self.repo.commit("one", {"a.txt": "one\n"})
        self.script = world.folder / "script.json"

    def sessions(self, *sessions: list[Act]) -> None:
        """What the next sessions do, from the first."""
        self.script.write_text(json.dumps(sessions))
        self.script.with_suffix(".count").unlink(missing_ok=True)

    @property
    def agent(self) -> str:
        return f"exec:{sys.executable} -I -S {SESSION} {self.script}"

    @property
    def words(self) -> tuple[str, ...]:
        return ("--agent", self.agent, "--json")

    def run(self, *sessions: list[Act], more: tuple[str, ...] = ()) -> CliResult:
        if sessions:
            self.sessions(*sessions)
        return self.world.say("epic", "run", "epic.md", *self.words, *more)

    def resume(self, *sessions: list[Act], more: tuple[str, ...] = ()) -> CliResult:
        if sessions:
            self.sessions(*sessions)
        return self.world.say("epic", "resume", *self.words, *more)

    def ended_by(self) -> list[str]:
        """How each session of the newest run ended."""
        found = self.world.say("epic", "status", "epic-3", "--json").json
        return [each.get("ended_by", each["rule"]) for each in found["sessions"]]

    def checkpoint(self) -> dict[str, Any]:
        path = self.world.folder / ".sage" / "state" / "epic-3.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def prompt(self, number: int) -> str:
        return self.script.with_suffix(f".prompt-{number}").read_text()

    @property
    def started(self) -> int:
        """How many sessions began; one that is about to say so may have an empty file."""
        count = self.script.with_suffix(".count")
        return int(count.read_text() or 0) if count.exists() else 0
