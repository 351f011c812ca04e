"""A profile as a record, read from its file: how one agent CLI is started, spoken to and judged.

Knows the shape of the files and what is wrong with one. Refuses to know what any flag does.
"""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from interlock.signals.streams.stream import StreamFormat
from interlock.system.errors import SourceError

NAMES = ("claude", "codex", "cursor", "gemini", "opencode", "copilot", "aider")
Then = Literal["accept", "unreadable", "limit", "crash"]


class When(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be so for a row to hold; what is not named may be anyhow."""

    end: str | None = None
    error: bool | None = None
    turns: Literal["none", "some", "unknown"] | None = None
    text: bool | None = None
    open: bool | None = None
    limited: bool | None = None
    began: bool | None = None
    by: Literal["itself", "us", "clock"] | None = None
    exit: Literal["zero", "other", "signal", "unknown"] | None = None
    exit_code: int | None = None


class OutcomeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a truth table: the first that holds decides."""

    when: When
    then: Then
    why: str = ""


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a setting becomes flags: once for each value, or once for all of them joined."""

    flags: tuple[str, ...]
    join: str = ""


class Mode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A permission mode: what it allows, and how it is asked for."""

    means: str
    flags: tuple[str, ...] = ()
    resume_flags: tuple[str, ...] | None = None
    set: dict[str, str] = {}
    unsafe: bool = False


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a login can be seen without asking the CLI."""

    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one agent CLI."""

    name: str
    title: str
    commands: tuple[str, ...]
    dialect: StreamFormat
    prompt: Literal["stdin", "argv", "file"]
    argv: tuple[str, ...]
    mode: str
    modes: dict[str, Mode]
    outcome: tuple[OutcomeRule, ...]
    folder: Literal["own", "project"]
    writing_mode: str = ""
    """The mode of one that is asked to change files in its folder; empty if only an unsafe one
    would let it."""
    resume: tuple[str, ...] = ()
    """Empty: its sessions cannot be gone on with."""
    resume_in: Literal["same-folder", "any-folder"] = "any-folder"
    own_flags: tuple[str, ...] = ()
    """Flags for a work folder of our own, in which there is nothing to distrust."""
    guard: tuple[str, ...] = ()
    """A prompt that starts with one of these would be taken for a command."""
    closing: str = ""
    """A sentence that every prompt ends with."""
    unsafe: tuple[str, ...] = ()
    """Flags that skip permissions; only ever the user's own."""
    options: dict[str, Option] = {}
    let_in: tuple[str, ...] = ()
    set: dict[str, str] = {}
    clocks: dict[str, float] = {}
    limit_words: tuple[str, ...] = ()
    """Words on stderr or in an error that tell of a rate limit."""
    version: tuple[str, ...] = ("--version",)
    help: tuple[tuple[str, ...], ...] = ()
    unlisted: tuple[str, ...] = ()
    """Flags that work although --help does not name them."""
    seen: Literal["run", "documented"] = "run"
    """Whether its events were seen by running it, or are known from its documentation."""
    login: Login = Login()
    traps: tuple[str, ...] = ()

    @property
    def can_resume(self) -> bool:
        return bool(self.resume)


@cache
def profile(name: str) -> Profile:
    """The profile of that name; its table ends with the rows that all share."""
    if name not in NAMES:
        raise SourceError(f"{name!r} is no agent CLI we know; known are {', '.join(NAMES)}")
    shared = _table("shared")["outcome"]
    table = _table(name)
    try:
        found = {**table, "name": name, "outcome": [*table["outcome"], *shared]}
        return msgspec.convert(found, Profile)
    except (msgspec.ValidationError, KeyError) as error:
        raise SourceError(f"the profile {name}.toml is damaged: {error}") from None


def profiles() -> tuple[Profile, ...]:
    return tuple(profile(name) for name in NAMES)


def _table(name: str) -> dict[str, Any]:
    text = (
        files("interlock.agents.cli.profiles").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    )
    return tomllib.loads(text)
