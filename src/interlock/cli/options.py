"""Flags of the verbs that ask through files or let asks be pulled: which carrier, where, how.

Words of the command line that carry more than a text: name=value pairs, budgets, thresholds.

The flags of a calibration: each is a name for what a user may say, and its help.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import read_yaml

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.journal.runs import Run


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
    typer.Option("--dispatch", help="How roles without an agent are asked: by files, or pulled."),
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


def written_out(
    connection: "Connection", found: "Run", circuit: "Circuit", roles: Collection[str]
) -> Iterator[str]:
    """Which steps wait for an answer by hand, and what to do about them."""
    from interlock.agents.wiring_files import Files, case_names
    from interlock.journal.history import cases_of

    root = Path(msgspec.convert(found.options.get("files", {}), Files).root)
    papers = case_names(circuit, str(root))
    for case in cases_of(connection, found.run_id):
        step = circuit.steps.get(case.step)
        if case.dispatch_id is None or step is None or step.role not in roles:
            continue
        prompt = papers(step.name, case.state.visits.get(step.name, 1)).prompt
        path = root / f"{case.run_id}" / f"{case.case_no}" / prompt
        verbs = f"'interlock save {case.case_id} -f FILE' and 'interlock resume {case.run_id}'"
        yield f"case {case.case_id} waits for an answer to {path}: {verbs}"


def files_of(
    dispatch: DispatchMode | None,
    root: Path | None,
    watch: WatchMode | None,
    batch_size: int | None,
) -> dict[str, str | int]:
    """What was said about files, and only that: the rest stays as it was."""
    said = {"dispatch": dispatch, "root": root, "watch": watch, "batch_size": batch_size}
    return {
        name: value if isinstance(value, int) else str(value)
        for name, value in said.items()
        if value is not None
    }


def pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """`name=value`, any number of them."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise SourceError(f"{option} {word!r}: write {option} name=value")
        found[name.strip()] = value.strip()
    return found


def thresholds(circuit: Circuit, words: Iterable[str]) -> dict[str, Any]:
    """`--set name=value` for thresholds the circuit has, of the kind they have."""
    changes: dict[str, Any] = {}
    for name, text in pairs(words, "--set").items():
        changes[name] = plain(text)
    return checked_thresholds(circuit, changes)


def checked_thresholds(circuit: Circuit, changes: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in changes.items():
        if name not in circuit.thresholds:
            known = ", ".join(circuit.thresholds) or "none"
            raise SourceError(f"{circuit.name} has no threshold {name!r}; it has {known}")
        usual = circuit.thresholds[name]
        if _kind(usual) != _kind(value):
            raise SourceError(f"threshold {name} is {_kind(usual)} ({usual}), not {value!r}")
    return dict(changes)


def counts(words: Iterable[str], option: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, text in pairs(words, option).items():
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise SourceError(f"{option} {name}={text}: {text!r} is no whole number")
        found[name] = int(text)
    return found


def plain(text: str) -> Any:
    """One value, as YAML reads it: a number, true, false or a text."""
    try:
        value = read_yaml(text).value
    except CircuitError as error:
        raise SourceError(f"--set takes a plain value, not {text!r}: {error}") from None
    if isinstance(value, dict | list):
        raise SourceError(f"--set takes a plain value, not {text!r}")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a text"


class Carried(StrEnum):
    """Carriers of a calibration whose asks are files, or are pulled by MCP workers."""

    FILE = "file"
    BATCH_FILE = "batch-file"
    MCP = "mcp"


ScenarioWord = Annotated[
    str, typer.Option("--scenario", metavar="NAME|FILE", help="A shipped one, JSON or YAML.")
]
Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="stub, basic, exec:COMMAND, script:FILE, acp:COMMAND, claude…; default basic.",
    ),
]
CalibrateDispatch = Annotated[
    Carried | None, typer.Option("--dispatch", help="Ask by files or workers, not an agent.")
]
Parallel = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        metavar="N",
        min=1,
        help="Dispatches at once; above 1 one case of a family is investigated. Default 1.",
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option("--token-budget", metavar="TOKENS", min=0, help="What each run may cost."),
]
Runs = Annotated[int, typer.Option("--runs", metavar="K", help="Independent runs.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the last one.")]
Edition = Annotated[
    str, typer.Option("--edition", metavar="v1|v2", help="Whose rules and bounds count.")
]
Weights = Annotated[
    str, typer.Option("--weights", metavar="NAME", help="Of M19: original, february or v2.")
]
CalibrateRoot = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Of signals; default .asterisk/calibrate."),
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under", metavar="[METRIC=]X", help="Exit 3 below it; alone of M19. Repeatable."
    ),
]
CheckLeaks = Annotated[
    bool, typer.Option("--check-leaks", help="Exit 6 if the truth reached a prompt or file.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="The scorecard as a page.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="The bill, as Markdown.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="All of it as JSON.")]
