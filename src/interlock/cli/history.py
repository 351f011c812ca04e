"""Verbs of the memory of test results: ingest, history."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json, echo_note, echo_table
from interlock.rca.config import RcaTables
from interlock.rca.history.identity import CiRun, identify_run
from interlock.rca.history.settings import HistorySettings, check_settings
from interlock.rca.history.store import FolderStore, merge_stores
from interlock.runtime.settings import read_settings
from interlock.system.errors import SourceError, StoreError, UsageError
from interlock.system.text import fit_columns, plural
from interlock.system.time import format_duration, format_timestamp, format_utc_time, parse_duration

if TYPE_CHECKING:
    from interlock.rca.history.identity import Scope
    from interlock.rca.history.index import Lane
    from interlock.rca.history.ingest import Ingested
    from interlock.rca.history.memory import History, TestResult
    from interlock.rca.history.verdicts import Moment, TestSummary

history_app = typer.Typer(
    help="What is remembered: flaky, broken, failing since, last pass.", no_args_is_help=True
)
app.add_typer(history_app, name="history")


class ScopeName(StrEnum):
    """Whose history."""

    DEFAULT = "default"
    QUEUE = "queue"
    BRANCH = "branch"
    PULL_REQUEST = "pull-request"


Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="The memory; default .interlock/history."),
]
ProjectName = Annotated[
    str, typer.Option("--project", metavar="OWNER/NAME", help="Of several projects, this one.")
]
ScopeOption = Annotated[
    ScopeName, typer.Option("--scope", help="Whose results; by default the default branch's.")
]
BranchOption = Annotated[
    str, typer.Option("--branch", metavar="NAME", help="The history of another branch.")
]
LabelOption = Annotated[
    str | None,
    typer.Option("--job", metavar="JOB", help="Only this job and variant, as shown."),
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


def read_history_settings() -> HistorySettings:
    """`[history]` of the project in this folder."""
    return check_settings(read_settings(Path()).read_tables(RcaTables).history)


def open_store(flag: Path | None, settings: HistorySettings) -> FolderStore:
    """The memory that a flag, the environment or the settings name."""
    return FolderStore(flag or Path(os.environ.get("INTERLOCK_STORE") or settings.store))


def identify(settings: HistorySettings, flags: dict[str, str], at: str = "") -> CiRun:
    """The run this process is part of; what was odd is noted."""
    found = identify_run(os.environ, flags, default_branch=settings.default_branch)
    for note in found.notes:
        echo_note(f"note: {note}")
    if not at:
        return found.run
    from interlock.system.time import parse_timestamp

    moment = parse_timestamp(at)
    if moment is None:
        raise UsageError(f"--at {at!r}: write a time such as 2026-11-16T02:00:00Z")
    return msgspec.structs.replace(found.run, at=moment)


def echo_history(fields: dict[str, Any]) -> None:
    """One JSON object; moments are written as everywhere, in RFC 3339."""
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


@app.command()
def ingest(
    results: Results,
    run: RunFlag = "",
    attempt: AttemptFlag = "",
    job: JobFlag = "",
    variant: VariantFlag = None,
    shard: ShardFlag = "",
    commit: CommitFlag = "",
    tree: TreeFlag = "",
    branch: RunBranchFlag = "",
    target: TargetFlag = "",
    pr: PrFlag = "",
    event: EventFlag = "",
    project: ProjectName = "",
    at: AtFlag = "",
    store: Store = None,
    json: Json = False,
) -> None:
    """Remember the results of a CI job, passed ones too. Run again, it changes nothing."""
    from interlock.rca.history.ingest import ingest_results

    settings = read_history_settings()
    flags = {"run": run, "attempt": attempt, "job": job, "variant": ",".join(variant or ())}
    flags |= {"shard": shard, "commit": commit, "tree": tree, "branch": branch, "target": target}
    flags |= {"pr": pr, "event": event, "project": project}
    who = identify(settings, flags, at)
    memory = open_store(store, settings)
    started = not memory.list_segments()
    try:
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
        echo_note(_HISTORY_STARTS.format(memory.folder))
    _show_ingested(taken, memory, "started" if started else "ok", json=json)


def _show_ingested(taken: "Ingested", memory: FolderStore, status: str, *, json: bool) -> None:
    from interlock.rca.history.verdicts import judge

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
                "store": str(memory.folder),
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


def _open_history(store: Path | None) -> "History":
    from interlock.rca.history.memory import History

    settings = read_history_settings()
    memory = open_store(store, settings)
    found = History(memory, settings)
    for problem in found.problems:
        echo_note(f"left out: {problem}")
    if not found.index.list_lanes():
        echo_note(_HISTORY_STARTS.format(memory.folder))
    return found


def _choose_lanes(
    memory: "History", project: str, scope: ScopeName, branch: str, label: str | None
) -> "list[Lane]":
    chosen = cast("Scope", "branch" if branch else str(scope))
    return memory.list_lanes(memory.choose_project(project), chosen, branch, label)


@history_app.command("top")
def show_top(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only these states; repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to show.")] = 20,
    project: ProjectName = "",
    scope: ScopeOption = ScopeName.DEFAULT,
    branch: BranchOption = "",
    job: LabelOption = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """The tests that need a look: flaky, broken, failing, just fixed."""
    memory = _open_history(store)
    lanes = _choose_lanes(memory, project, scope, branch, job)
    now = memory.find_now(lanes)
    wanted = state or list(_ORDER)
    if unknown := sorted(set(wanted) - {*_ORDER, "passing", "skipped"}):
        raise UsageError(f"--state {unknown[0]}: states are {', '.join(_ORDER)}, passing, skipped")
    found = [
        each
        for lane in lanes
        for each in memory.summarize_lane(lane, now, only_troubled=not state)
        if each.state in wanted
    ]
    found.sort(key=_rank)
    if json:
        echo_history({"now": format_timestamp(now), "total": len(found), "tests": found[:limit]})
        return
    columns = sum(len(memory.list_columns(lane)) for lane in lanes)
    echo_table(
        ("STATE", "FLIPS", "NEWEST LAST", "SINCE", "TEST"),
        [
            (
                f"{each.state}{' (new)' if each.is_new else ''}",
                each.flips.text,
                each.strip,
                _format_since(each),
                _name_test(each),
            )
            for each in found[:limit]
        ],
    )
    left = len(found) - limit
    if left > 0:
        echo(f"and {left:,} more; --limit shows them")
    if lanes and not found:
        echo("nothing that needs a look")
    echo_note(f"{plural(columns, 'source')} in {plural(len(lanes), 'job')}; . pass, F fail, x both")


_ORDER = ("flaky", "broken", "failing", "suspected", "fixed")


def _rank(each: "TestSummary") -> tuple[Any, ...]:
    place = _ORDER.index(each.state) if each.state in _ORDER else len(_ORDER)
    return place, -each.flips.low, -(each.failing_since.sources if each.failing_since else 0)


def _name_test(each: "TestSummary") -> str:
    return f"{each.test}  [{each.label}]" if each.label else each.test


def _format_since(each: "TestSummary") -> str:
    if each.failing_since:
        return f"fails for {plural(each.failing_since.sources, 'source')}"
    if each.days_since_flip is not None:
        return f"last flip {format_duration(86_400 * each.days_since_flip) or '0 s'} ago"
    return ""


@history_app.command("test")
def show_test(
    test: Annotated[str, typer.Argument(metavar="TEST", help="Its id, its end, or a part of it.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many results.")] = 5,
    project: ProjectName = "",
    scope: ScopeOption = ScopeName.DEFAULT,
    branch: BranchOption = "",
    job: LabelOption = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """What is known about one test, for each job and variant."""
    memory = _open_history(store)
    lanes = _choose_lanes(memory, project, scope, branch, job)
    meant = memory.find_tests(lanes, test)
    if not meant:
        raise UsageError(f"no test that is remembered there is called like {test!r}")
    if len(meant) > 1:
        shown = "".join(f"\n  {each}" for each in meant[:20])
        more = f"\n  and {len(meant) - 20} more" if len(meant) > 20 else ""
        raise UsageError(f"{test!r} means {len(meant)} tests:{shown}{more}")
    now = memory.find_now(lanes)
    parts = []
    for lane in lanes:
        summary = memory.summarize_test(lane, meant[0], now)
        if summary is not None:
            results = memory.read_results(lane, meant[0], limit)
            parts.append((lane, summary, results, memory.compare_durations(lane, meant[0])))
    if json:
        fields = [
            {"summary": summary, "durations": trend, "results": results}
            for _, summary, results, trend in parts
        ]
        echo_history({"test": meant[0], "jobs": fields})
        return
    echo(meant[0])
    for _, summary, results, trend in parts:
        for line in _describe_test(summary, trend):
            echo(line)
        for each in results:
            echo(f"    {_describe_result(each)}")


def _describe_test(each: "TestSummary", trend: Any) -> "Iterator[str]":
    from interlock.rca.history.verdicts import STATE_MEANINGS

    new = "new, " if each.is_new else ""
    yield f"\n  {each.label or 'all jobs'}: {new}{each.state} ({STATE_MEANINGS[each.state]})"
    yield f"    {each.strip}   newest last; . pass, F fail, x both on one source, s skipped"
    others = f"{plural(each.failures, 'other failure')}, {plural(each.verdicts, 'verdict')} in all"
    yield f"    flips {each.flips.text}{', ' + each.trend if each.trend else ''}; {others}"
    if each.failing_since:
        number = plural(each.failing_since.sources, "source")
        yield f"    failing since {_format_moment(each.failing_since)}, {number} ago"
    last = _format_moment(each.last_pass) if each.last_pass else "never, as far as is remembered"
    yield f"    last pass {last}"
    if each.days_since_flip is not None:
        quiet = format_duration(86_400 * each.days_since_flip)
        yield f"    last flip {quiet} ago, {plural(each.passes_since_flip or 0, 'pass', 'passes')}"
    if trend is not None:
        word = f": {trend.word}" if trend.word else ""
        yield (
            f"    takes {format_duration(trend.recent)}, "
            f"before {format_duration(trend.before)}{word}"
        )


def _format_moment(moment: "Moment") -> str:
    when = format_utc_time(format_timestamp(moment.at))
    return f"{when} ({moment.commit[:12]})" if moment.commit else when


def _describe_result(each: "TestResult") -> str:
    from interlock.rca.history.ingest import describe_tries
    from interlock.rca.history.segment import decode_duration

    when = format_utc_time(format_timestamp(each.at))
    words = [f"{when}  {each.commit[:12]}  run {each.run}", describe_tries(each.tries)]
    words += [format_duration(decode_duration(each.duration))] if each.duration else []
    words += ["ignored: nearly everything failed there"] if each.is_ignored else []
    line = ", ".join(words)
    said = " ".join(each.excerpt.split())
    return f"{line}\n      {fit_columns(said, 100)}" if said else line


@history_app.command("show")
def show_memory(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many sources.")] = 10,
    store: Store = None,
    json: Json = False,
) -> None:
    """What the memory holds: projects, jobs, the newest sources, names that change."""
    memory = _open_history(store)
    rows = []
    for lane in memory.index.list_lanes():
        columns = memory.index.list_columns(lane)
        newest = [
            {
                "source": column.source,
                "commits": column.commits,
                "at": format_timestamp(column.at),
                "runs": column.runs,
                "ignored": column.ignored,
                "whole": column.is_whole,
                "pr": column.pr,
                **memory.count_statuses(lane, column),
            }
            for column in reversed(columns[-limit:])
        ]
        rows.append(
            {
                "project": lane.project,
                "scope": lane.scope,
                "branch": lane.branch,
                "job": lane.label,
                "sources": len(columns),
                "segments": sum(len(column.segments) for column in columns),
                "unstable_names": memory.find_unstable_names(lane)[:10],
                "newest": newest,
            }
        )
    if json:
        echo_history({"lanes": rows, "left_out": memory.problems})
        return
    for row in rows:
        whose = f"branch {row['branch']}" if row["branch"] else f"{row['scope']} history"
        title = " ".join(filter(None, (str(row["project"]), str(row["job"]))))
        echo(f"{title or 'results'} ({whose}): {plural(cast('int', row['sources']), 'source')}")
        echo_table(
            ("  WHEN", "COMMIT", "PASSED", "FAILED", "BOTH", "SKIPPED", ""),
            [
                (
                    f"  {format_utc_time(each['at'])}",
                    (each["commits"] or [each["source"]])[-1][:12],
                    *(each[name] for name in ("passed", "failed", "flaky", "skipped")),
                    _describe_source(each),
                )
                for each in cast("list[dict[str, Any]]", row["newest"])
            ],
        )
        for pattern, count in cast("list[tuple[str, int]]", row["unstable_names"]):
            echo(f"  unstable names: {count} tests like {pattern} were seen on one source only")


def _describe_source(each: dict[str, Any]) -> str:
    words = [f"pull request {each['pr']}"] if each["pr"] else []
    if each["ignored"]:
        words.append(f"infrastructure: {', '.join(each['ignored'])} teaches nothing")
    words += [] if each["whole"] else ["a shard is missing"]
    return "; ".join(words)


@history_app.command("export")
def export(
    test: Annotated[str, typer.Option("--test", metavar="TEXT", help="Only tests like this.")] = "",
    store: Store = None,
) -> None:
    """Everything that is remembered as JSON lines, one result each."""
    from interlock.rca.history.export import iterate_results

    settings = read_history_settings()
    memory = open_store(store, settings)
    for row in iterate_results(memory, test):
        echo(row)
    for problem in memory.problems:
        echo_note(f"left out: {problem}")


@history_app.command("prune")
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Such as 365d, before the newest.")
    ],
    scope: Annotated[
        ScopeName | None, typer.Option("--scope", help="Only results of this kind.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Forget old results."""
    from interlock.rca.history.export import find_old_segments

    memory = open_store(store, read_history_settings())
    age = parse_duration(older_than)
    old = find_old_segments(memory, age, str(scope) if scope else "")
    if not dry_run:
        memory.remove(old)
    if json:
        echo_history({"removed": 0 if dry_run else len(old), "found": len(old)})
        return
    what = "would be forgotten" if dry_run else "forgotten"
    echo(f"{plural(len(old), 'job')} older than {older_than}: {what}")


@history_app.command("merge")
def merge(
    sources: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Memories to add to this one.")
    ],
    store: Store = None,
    json: Json = False,
) -> None:
    """Unite memories: of matrix legs, shards, machines. Nothing is lost or counted twice."""
    settings = read_history_settings()
    memory = open_store(store, settings)
    own = identify(settings, {})
    added = known = 0
    refused: list[str] = []
    for place in sources:
        done = merge_stores(
            FolderStore(place, is_new_ok=False), memory, lambda run: refuse_claim(own, run)
        )
        added, known = added + done.added, known + done.known
        refused += done.refused
    for reason in _unique(refused):
        echo_note(f"left out: {reason}")
    if json:
        echo_history({"added": added, "known": known, "left_out": refused})
        return
    echo(f"{plural(added, 'job')} added, {known} known already")


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def refuse_claim(own: CiRun, run: CiRun) -> str:
    """Why results are not taken over here. A job of a pull request can write whatever it likes
    into what it hands on: that it speaks for the default branch is not believed."""
    if own.scope != "pull-request" or run.scope == "pull-request":
        return ""
    whose = f"the {run.scope} history" if run.scope != "branch" else f"branch {run.branch}"
    return (
        f"results of run {run.run} claim to be of {whose}, but this job belongs to pull request "
        f"{own.pr}"
    )
