"""The verbs ingest and last-green."""

import os
import time
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.options import expand_options
from interlock.cli.output import Json, echo, echo_json, echo_note
from interlock.system.errors import SourceError, StoreError, UsageError
from interlock.system.text import fit_columns, plural
from interlock.system.time import format_timestamp
from interlock_history.settings import HistorySettings, read_history_settings
from interlock_history.store import HistoryStore
from interlock_history.store import open_store as open_memory
from interlock_rca.ci_run import CiRun, identify_run

if TYPE_CHECKING:
    from interlock_history.ingest import Ingested
    from interlock_history.memory import History

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR|URL",
        help="A folder or https://SERVER/; default .interlock/history.",
    ),
]
ProjectName = Annotated[
    str, typer.Option("--project", metavar="OWNER/NAME", help="Of several projects, this one.")
]
Results = Annotated[
    list[str],
    typer.Argument(metavar="RESULTS...", help="JUnit XML: files, folders, globs or zips."),
]
RunFlag = Annotated[str, typer.Option("--run", metavar="ID", help="The run; else from CI.")]
AttemptFlag = Annotated[str, typer.Option("--attempt", metavar="N", help="Its attempt, from 1.")]
JobFlag = Annotated[str, typer.Option("--job", metavar="NAME", help="The job in the run.")]
VariantFlag = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="NAME=VALUE", help="What a matrix varies; repeatable."),
]
ShardFlag = Annotated[str, typer.Option("--shard", metavar="N/OF", help="Which part of the tests.")]
CommitFlag = Annotated[str, typer.Option("--commit", metavar="HASH", help="The tested commit.")]
TreeFlag = Annotated[str, typer.Option("--tree", metavar="HASH", help="Its git tree.")]
RunBranchFlag = Annotated[str, typer.Option("--branch", metavar="NAME", help="The tested branch.")]
TargetFlag = Annotated[
    str, typer.Option("--target", metavar="NAME", help="The branch it is to be merged into.")
]
PrFlag = Annotated[str, typer.Option("--pr", metavar="N", help="The pull request.")]
EventFlag = Annotated[
    str, typer.Option("--event", metavar="NAME", help="What started the run, as push.")
]
AtFlag = Annotated[
    str,
    typer.Option("--at", metavar="TIME", help="When it ran (RFC 3339); else as the reports say."),
]


Today = Annotated[
    str, typer.Option("--on", metavar="DAY", help="As if it were this day: 2026-11-30.")
]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The run that results belong to, as flags state it; CI variables supply the rest."""

    run: RunFlag = ""
    attempt: AttemptFlag = ""
    job: JobFlag = ""
    variant: VariantFlag = None
    shard: ShardFlag = ""
    commit: CommitFlag = ""
    tree: TreeFlag = ""
    branch: RunBranchFlag = ""
    target: TargetFlag = ""
    pr: PrFlag = ""
    event: EventFlag = ""
    project: ProjectName = ""
    at: AtFlag = ""

    def to_facts(self) -> dict[str, str]:
        """Return the flags as `identify_run` takes them."""
        names = (name for name in self.__struct_fields__ if name not in ("at", "variant"))
        return {name: getattr(self, name) for name in names} | {
            "variant": ",".join(self.variant or ())
        }


def open_store(flag: str | None, settings: HistorySettings) -> HistoryStore:
    """Open the memory that a flag, the environment or the settings name."""
    return open_memory(flag or os.environ.get("INTERLOCK_STORE") or settings.store)


def identify(settings: HistorySettings, which: RunOptions) -> CiRun:
    """Return the run that this process is part of, and print a note for each oddity."""
    found = identify_run(os.environ, which.to_facts(), default_branch=settings.default_branch)
    for note in found.notes:
        echo_note(f"note: {note}")
    if not which.at:
        return found.run
    from interlock.system.time import parse_timestamp

    moment = parse_timestamp(which.at)
    if moment is None:
        raise UsageError(f"--at {which.at!r}: write a time such as 2026-11-16T02:00:00Z")
    return msgspec.structs.replace(found.run, at=moment)


def echo_history(fields: dict[str, Any]) -> None:
    """Print one JSON object with its times in RFC 3339."""
    echo_json(_format_moments(msgspec.to_builtins(fields)))


def _format_moments(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_format_moments(each) for each in value]
    if isinstance(value, dict):
        return {
            name: format_timestamp(each) or None
            if name == "at" and isinstance(each, float)
            else _format_moments(each)
            for name, each in value.items()
        }
    return value


def parse_day(text: str) -> date:
    if not text:
        return datetime.fromtimestamp(time.time(), UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--on {text!r}: write a day such as 2026-11-30") from None


@app.command()
@expand_options("which", RunOptions)
def ingest(results: Results, which: RunOptions, store: Store = None, json: Json = False) -> None:
    """Store the results of a CI job, passed tests included. Running it again changes nothing."""
    from interlock_history.ingest import ingest_results

    settings = read_history_settings()
    who = identify(settings, which)
    try:
        memory = open_store(store, settings)
        started = not memory.list_segments()
        taken = ingest_results(results, who, memory, time.time())
    except StoreError as error:
        # A build must not turn red because its reporter cannot write.
        echo_note(f"warning: {error}")
        _echo_failed_ingest(str(error), json=json)
        return
    except SourceError as error:
        if "no JUnit XML" not in str(error):
            raise
        echo_note(f"interlock: {error}")
        raise typer.Exit(ExitCode.UNHEALTHY) from None
    if started:
        echo_note(_HISTORY_STARTS.format(memory.name))
    _show_ingested(taken, memory, "started" if started else "ok", json=json)


def _show_ingested(taken: "Ingested", memory: HistoryStore, status: str, *, json: bool) -> None:
    from interlock_history.verdicts import judge

    for note in taken.notes:
        echo_note(f"note: {note}")
    counts = Counter(map(judge, taken.segment.bits))
    if json:
        echo_history(
            {
                "segment": taken.segment.id,
                "new": taken.is_new,
                "run": taken.segment.run,
                "tests": len(taken.segment.bits),
                "passed": counts["pass"],
                "failed": counts["fail"],
                "flaky": counts["flaky"],
                "skipped": counts["skip"],
                "files": taken.files,
                "store": memory.name,
                "store_status": status,
                "notes": taken.notes,
            }
        )
        return
    words = [f"{counts['pass']:,} passed", f"{counts['fail']:,} failed"]
    words += [f"{counts['flaky']:,} failed, then passed"] if counts["flaky"] else []
    words += [f"{counts['skip']:,} skipped"] if counts["skip"] else []
    echo(f"{plural(len(taken.segment.bits), 'test')}: {'; '.join(words)}")
    what = "remembered" if taken.is_new else "already known, nothing changed"
    echo(f"{_describe_run(taken.segment.run)}: {what}")


_HISTORY_STARTS = "note: history starts here: nothing was remembered in {} before"


def _echo_failed_ingest(why: str, *, json: bool) -> None:
    if json:
        echo_history({"new": False, "store_status": "failed", "error": why})


def _describe_run(run: CiRun) -> str:
    words = [f"run {run.run}" if run.run else f"a {run.provider} run"]
    words += [f"attempt {run.attempt}"] if run.attempt > 1 else []
    words += [run.label] if run.label else []
    words += [f"shard {run.shard}"] if run.shard else []
    words += [f"commit {run.commit[:12]}"] if run.commit else []
    whose = {"default": "default branch", "queue": "merge queue", "branch": f"branch {run.branch}"}
    words.append(whose.get(run.scope, f"pull request {run.pr}".strip()))
    return ", ".join(words)


def choose_project(memory: "History", wanted: str) -> str:
    """Return that project; without one, the project that this process belongs to."""
    if not wanted and len(memory.projects) > 1:
        own = identify_run(os.environ).run.project
        if own and own in memory.projects:
            return own
    return memory.choose_project(wanted)


def open_history(store: str | None) -> "History":
    from interlock_history.memory import History

    settings = read_history_settings()
    memory = open_store(store, settings)
    found = History(memory, settings)
    for problem in found.problems:
        echo_note(f"left out: {problem}")
    if not found.index.list_lanes():
        echo_note(_HISTORY_STARTS.format(memory.name))
    return found


@app.command("last-green")
def show_last_green(
    tests: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEST]...", help="Ids of tests; default all that fail now."),
    ] = None,
    repo: Annotated[Path, typer.Option("--repo", metavar="DIR", help="The repository.")] = Path(),
    commit: CommitFlag = "",
    branch: RunBranchFlag = "",
    pr: PrFlag = "",
    target: TargetFlag = "",
    deepen: Annotated[
        bool, typer.Option("--deepen", help="Fetch more of a shallow clone if need be.")
    ] = False,
    project: ProjectName = "",
    store: Store = None,
    json: Json = False,
) -> None:
    """Show between which commits each failing test broke, and how that is known."""
    from interlock_history.ranges import RangeFinder

    memory = open_history(store)
    flags = {"commit": commit, "branch": branch, "pr": pr, "target": target}
    default_branch = memory.settings.default_branch
    found = identify_run(os.environ, flags, folder=repo, default_branch=default_branch).run
    run = msgspec.structs.replace(found, project=choose_project(memory, project))
    finder = RangeFinder(memory, run, repo, may_deepen=deepen or run.provider != "local")
    ranges = finder.find_ranges(tests or memory.list_failing(run))
    for note in finder.notes:
        echo_note(f"note: {note}")
    if json:
        rows = [
            {"test": test, **msgspec.to_builtins(each), "steps": finder.list_steps(each)}
            for test, each in ranges.items()
        ]
        echo_history({"commit": run.commit, "tests": rows})
        return
    for test, each in ranges.items():
        echo(test)
        sure = f" ({each.confidence} confidence)" if each.confidence else ""
        echo(f"  {each.reason}{sure}")
        if each.is_accusing:
            echo(f"  {each.good[:12]}..{each.bad[:12]}")
            for step, subject in finder.list_steps(each, 10):
                echo(f"    {step[:12]} {fit_columns(subject, 80)}")
    if not ranges:
        echo(f"nothing that is remembered fails on {run.commit[:12] or 'the tested commit'}")
