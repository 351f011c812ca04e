"""Flags that several verbs share, and readers of words with more structure than a text."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypedDict, get_type_hints

import msgspec
import typer

from interlock.runtime.agent_pool import split_agent
from interlock.runtime.settings import RunConfig
from interlock.system.errors import CircuitError, SourceError, UsageError
from interlock.system.yaml_text import read_yaml

Verb = Callable[..., None]


def expand_options(name: str, record: type[msgspec.Struct]) -> Callable[[Verb], Verb]:
    """Give a verb the fields of a record as flags, in place of its parameter of that name.

    Flags that belong together are declared once, and passed on as one record.
    """
    hints = get_type_hints(record, include_extras=True)
    flags = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hint)
        for each, hint in zip(msgspec.structs.fields(record), hints.values(), strict=True)
    ]

    def decorate(verb: Verb) -> Verb:
        own = signature(verb, eval_str=True).parameters.values()
        parts = [flags if each.name == name else [each] for each in own]
        words = [each.replace(kind=Parameter.KEYWORD_ONLY) for part in parts for each in part]

        @wraps(verb)
        def call(**given: Any) -> None:
            options = record(**{flag.name: given.pop(flag.name) for flag in flags})
            verb(**{name: options}, **given)

        call.__signature__ = Signature(words)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in words}
        return call

    return decorate


class DispatchMode(StrEnum):
    """Carriers whose asks and answers are files, or are pulled by MCP workers."""

    FILE = "file"
    BATCH_FILE = "batch-file"
    MANUAL = "manual"
    MCP = "mcp"


class WatchMode(StrEnum):
    """How folders are watched."""

    AUTO = "auto"
    INOTIFY = "inotify"
    POLL = "poll"


Dispatch = Annotated[
    DispatchMode | None,
    typer.Option("--dispatch", help="The carrier for roles without an agent."),
]
Root = Annotated[
    Path | None, typer.Option("--root", help="The folder of those files; default .interlock/runs.")
]
Watching = Annotated[
    WatchMode | None, typer.Option("--watch", help="How answers are noticed; default auto.")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Signals in one batch; default 4.")
]

PromptDir = Annotated[
    Path | None,
    typer.Option("--prompt-dir", metavar="DIR", help="Your own templates, such as recall/….md."),
]


class RateLimitPolicy(StrEnum):
    """The choices for a run that only waits for the end of a rate limit."""

    WAIT = "wait"
    LEAVE = "leave"


Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="[ROLE=]AGENT",
        help="The agent of a role, or of all: claude, codex or another in `interlock agents`, "
        "exec:COMMAND, acp:COMMAND, script:FILE, or for rca basic; repeatable.",
    ),
]
Slots = Annotated[
    list[str] | None,
    typer.Option("--slots", metavar="ROLE=N", help="Dispatches of a role at once."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=LIMIT",
        help="dispatches=N, tokens=N, money=X or time=2h, of the run, of a role "
        "(role.ROLE.tokens=N) or of a day (day.money=X); may be repeated.",
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option("--parallel", metavar="N", min=1, help="Dispatches of all roles at once."),
]
Limited = Annotated[
    RateLimitPolicy,
    typer.Option("--on-limit", help="At a rate limit: wait until it ends, or exit with 75."),
]
New = Annotated[bool, typer.Option("--new", help="Start a new run even if one is unfinished.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for people instead of exiting with 4.")]


class RunFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Flags for agents and costs."""

    agent: Agents = None
    slots: Slots = None
    budget: Limits = None
    parallel: Parallel = None

    def list_files(self) -> dict[str, str | int]:
        """Return the flags about files that were given; all else stays as it was."""
        return {}

    def change_config(self, before: RunConfig) -> RunConfig:
        """Return a run's configuration with the changes of the command line."""
        limits: Mapping[str, str | int | float] = parse_pairs(self.budget or (), "--budget")
        given = dict(split_agent(word) for word in self.agent or ())
        usual, files = before.agents, self.list_files()
        if "dispatch" in files:
            if "" in given:
                raise UsageError("--dispatch is for roles without an agent, but --agent names all")
            usual = {role: spec for role, spec in usual.items() if role}
        return msgspec.structs.replace(
            before,
            agents=usual | given,
            files={**before.files, **files},
            slots=before.slots | parse_counts(self.slots or (), "--slots"),
            budget={**before.budget, **limits},
            parallel=self.parallel or before.parallel,
        )


class DispatchFlags(RunFlags, frozen=True, kw_only=True):
    """Flags for agents and costs, and for dispatches of roles without an agent."""

    dispatch: Dispatch = None
    root: Root = None
    watch: Watching = None
    batch_size: BatchSize = None

    def list_files(self) -> dict[str, str | int]:
        flags = {name: getattr(self, name) for name in ("dispatch", "root", "watch", "batch_size")}
        return {
            name: value if isinstance(value, int) else str(value)
            for name, value in flags.items()
            if value is not None
        }


class WaitChoices(TypedDict):
    """The fields of `SessionTerms` that flags choose."""

    wait_for_humans: bool
    wait_for_limits: bool


class WaitFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Flags for what a command waits for."""

    wait: Wait = False
    on_limit: Limited = RateLimitPolicy.WAIT

    @property
    def choices(self) -> WaitChoices:
        is_patient = self.on_limit == RateLimitPolicy.WAIT
        return {"wait_for_humans": self.wait, "wait_for_limits": is_patient}


def parse_pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """Read words of the form `name=value`."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {word!r}: write {option} name=value")
        found[name.strip()] = value.strip()
    return found


def read_thresholds(words: Iterable[str]) -> dict[str, Any]:
    """Read `--set name=value` for thresholds."""
    return {name: parse_value(text) for name, text in parse_pairs(words, "--set").items()}


def read_fields(words: Iterable[str]) -> dict[str, Any]:
    """Read `--set name=value` for an answer, with values as in YAML."""
    found = parse_pairs(words, "--set")
    return {name: read_yaml(text, "--set").value for name, text in found.items()}


def parse_counts(words: Iterable[str], option: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, text in parse_pairs(words, option).items():
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise UsageError(f"{option} {name}={text}: {text!r} is not a whole number")
        found[name] = int(text)
    return found


def parse_value(text: str) -> Any:
    """Read a number, true, false or a text as YAML does; UsageError for other values."""
    try:
        value = read_yaml(text).value
    except CircuitError as error:
        raise UsageError(f"--set takes a plain value, not {text!r}: {error}") from None
    if isinstance(value, dict | list):
        raise UsageError(f"--set takes a plain value, not {text!r}")
    return value


@contextmanager
def open_input(name: str, what: str = "log file") -> Iterator[BinaryIO]:
    """Open a file that the user named, or stdin for -."""
    if name == "-":
        yield sys.stdin.buffer
        return
    path = Path(name)
    if not path.is_file():
        state = "is not a regular file" if path.exists() else "does not exist"
        raise SourceError(f"{name} {state}; name a {what}, or - for stdin")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {os.strerror(error.errno or 0)}") from None
