"""The verb init: set a project up, and teach its agents the protocols.

Writes only what is not there. A file that differs is kept and named; --force replaces skills, and
never anything of the user's own.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock import __version__
from interlock.cli.door import app
from interlock.cli.show import Json, document, say, tell
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.signals.skills import Agent


class AgentName(StrEnum):
    """Whose skills to write."""

    CLAUDE = "claude"
    CURSOR = "cursor"
    CODEX = "codex"


SETTINGS = """\
# Settings of this project. Environment variables INTERLOCK_* and flags go before them.

# db = ".interlock/interlock.db"
# parallel = 8

# Who answers which role: a command, or a script of prepared answers.
# [agents]
# author = "exec:my-agent --headless"

# What a run may cost, what a role of it, and what all runs of a day. At 80 % you are warned; at
# 100 % the run rests, and its inbox asks whether to raise it.
# [budget]
# dispatches = 500
# time = "2h"
# [budget.role.author]
# tokens = 200_000
# [budget.day]
# money = 5

# Who may answer at gates, and who is told when something waits.
# [inbox]
# answerers = ["ann", "bob"]
# [notify]
# command = ["notify-send", "Interlock"]
# webhook = "https://example.com/hook"
"""
CIRCUIT = """\
# A question is answered, and somebody else judges the answer. Change it, then try
#   interlock circuit verify first
circuit: first
start: answer
why: The smallest circuit with a second pair of eyes.

ends:
  accepted: healthy
  given-up: unhealthy

loops:
  rework: 2

roles: [author, critic]

steps:
  answer:
    role: author
    prompt: "{{ case.question }}"
    timeout: 10m
    answer:
      type: object
      properties:
        text: {type: string, minLength: 1}
      required: [text]

  judge:
    role: critic
    judges: answer
    prompt: "Is this a good answer? {{ answers.answer.text }}"
    timeout: 10m
    answer:
      type: object
      properties:
        good: {type: boolean}
      required: [good]

rules:
  - {id: answered, at: answer, to: judge}
  - {id: good, at: judge, when: good, to: accepted}
  - {id: again, at: judge, when: not good, to: answer, loop: rework}
  - {id: enough, at: judge, when: not good, to: given-up}

otherwise: given-up
"""


@app.command()
def init(
    agent: Annotated[
        list[AgentName] | None,
        typer.Option(help="Write skills for it; several are fine. Default: those found here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace skills that differ.")] = False,
    json: Json = False,
) -> None:
    """Set a project up. Writes settings, a first circuit, skills and MCP entries; run it again at
    will."""
    root = Path()
    agents: tuple[Agent, ...] = tuple(dict.fromkeys(a.value for a in agent or _found(root)))
    skills = [*_starters(root), *_skills(root, agents, force)]
    done = [*skills, *_entries(root, agents), _instructions(root)]
    if json:
        document({"files": [{"path": path, "did": did} for did, path in done]})
        return
    for did, path in done:
        say(f"{did:9}  {path}")
    if any(did == "kept" for did, _ in done):
        say("kept means: it differs from what would be written; --force replaces skills")
    if shutil.which("interlock") is None:
        where = Path(sys.executable).parent
        tell(f"agents start 'interlock' by its name: put {where} on their PATH, it is not on yours")


def _found(root: Path) -> list[AgentName]:
    """Agents that have a folder here; without any, the folder that most of them read."""
    folders = {AgentName.CLAUDE: ".claude", AgentName.CURSOR: ".cursor", AgentName.CODEX: ".agents"}
    found = [name for name, folder in folders.items() if (root / folder).is_dir()]
    return found or [AgentName.CODEX]


def _starters(root: Path) -> Iterator[tuple[str, str]]:
    if not (root / "interlock.toml").exists():
        yield _write(root, "interlock.toml", SETTINGS), "interlock.toml"
    if not (root / "circuits").exists():
        yield _write(root, "circuits/first.yaml", CIRCUIT), "circuits/first.yaml"


def _skills(root: Path, agents: "tuple[Agent, ...]", force: bool) -> Iterator[tuple[str, str]]:
    from interlock.signals.skills import skill_files

    for agent in agents:
        for path, text in skill_files(agent, __version__).items():
            yield _write(root, path, text, replace=force), path


def _entries(root: Path, agents: "tuple[Agent, ...]") -> Iterator[tuple[str, str]]:
    """Where each client finds `interlock mcp`; of a file that had other things a copy is kept."""
    from interlock.cli.mcp_entries import FILES, has_own, with_entry

    for agent in agents:
        name = FILES[agent]
        before = _read(root / name)
        after = with_entry(agent, before)
        if before is not None and before != after:
            _write(root, f"{name}.before-interlock", before)
        kept = has_own(agent, before)
        yield "kept" if kept else _write(root, name, after, replace=True), name


def _instructions(root: Path) -> tuple[str, str]:
    from interlock.signals.skills import FOLDERS, NAME, managed_block, with_block

    there = [folder for folder in FOLDERS.values() if (root / folder / NAME).is_dir()]
    before = _read(root / "AGENTS.md") or ""
    after = with_block(before, managed_block(there))
    if after is None:
        raise SourceError(
            "AGENTS.md has damaged interlock markers: leave one pair, or none, and try again"
        )
    return _write(root, "AGENTS.md", after, replace=True), "AGENTS.md"


def _write(root: Path, name: str, text: str, *, replace: bool = False) -> str:
    """What was done: written, replaced, unchanged, or kept because it differs."""
    path = root / name
    before = _read(path)
    if before == text:
        return "unchanged"
    if before is not None and not replace:
        return "kept"
    _put(root, path, text)
    return "written" if before is None else "replaced"


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None


def _put(root: Path, path: Path, text: str) -> None:
    """Through a link only if it stays inside the project; never half a file."""
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        raise SourceError(f"{path} leads out of the project to {target}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".interlock-")
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
