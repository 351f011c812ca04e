"""The verb history: show, export, prune and merge the memory of results."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer

from interlock.cli.app import app
from interlock.cli.options import expand_options
from interlock.cli.output import Json, echo, echo_note, echo_table
from interlock.system.errors import UsageError
from interlock.system.text import fit_columns, plural
from interlock.system.time import format_duration, format_timestamp, format_utc_time, parse_duration
from interlock_history.cli.ingest import (
    ProjectName,
    RunOptions,
    Store,
    Today,
    choose_project,
    echo_history,
    identify,
    open_history,
    open_store,
    parse_day,
)
from interlock_history.memory import list_scopes
from interlock_history.quarantine import read_quarantine
from interlock_history.settings import read_history_settings
from interlock_history.store import FolderStore, merge_stores
from interlock_history.store import open_store as open_memory
from interlock_rca.ci_run import refuse_claim

if TYPE_CHECKING:
    from interlock_history.index import Lane
    from interlock_history.memory import History, TestResult
    from interlock_history.quarantine import Entry
    from interlock_history.verdicts import Moment, TestSummary
    from interlock_rca.ci_run import Scope

history_app = typer.Typer(
    help="What is remembered: flaky, broken, failing since, last pass.", no_args_is_help=True
)
app.add_typer(history_app, name="history")


class ScopeName(StrEnum):
    """The lines of development whose history can be shown."""

    DEFAULT = "default"
    QUEUE = "queue"
    BRANCH = "branch"
    PULL_REQUEST = "pull-request"


class LaneFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The results to look at."""

    project: ProjectName = ""
    scope: Annotated[
        ScopeName,
        typer.Option("--scope", help="Whose results; by default the default branch's."),
    ] = ScopeName.DEFAULT
    branch: Annotated[
        str, typer.Option("--branch", metavar="NAME", help="The history of another branch.")
    ] = ""
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="JOB", help="Only this job and variant, as shown."),
    ] = None

    def choose_lanes(self, memory: "History") -> "list[Lane]":
        chosen = cast("Scope", "branch" if self.branch else str(self.scope))
        name = choose_project(memory, self.project)
        lanes = memory.list_lanes(name, chosen, self.branch, self.job)
        if not lanes and memory.projects:
            known = ", ".join(list_scopes(memory.index.list_lanes()))
            echo_note(f"note: nothing is remembered there; there is: {known} (--branch, --scope)")
        return lanes


@history_app.command("top")
@expand_options("whose", LaneFlags)
def show_top(
    *,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only these states; repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to show.")] = 20,
    on: Today = "",
    whose: LaneFlags,
    store: Store = None,
    json: Json = False,
) -> None:
    """List the tests that need attention: flaky, broken, failing, just fixed."""
    memory = open_history(store)
    lanes = whose.choose_lanes(memory)
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
    excused = read_quarantine(Path(memory.settings.quarantine))
    today = parse_day(on)
    if json:
        echo_history({"now": format_timestamp(now), "total": len(found), "tests": found[:limit]})
        return
    columns = sum(len(memory.list_columns(lane)) for lane in lanes)
    echo_table(
        ("STATE", "FLIPS", "NEWEST LAST", "SINCE", "TEST"),
        [
            (
                _format_state(each, excused.find(each.test, today, each.label)),
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


def _format_state(each: "TestSummary", entry: "Entry | None") -> str:
    words = [each.state, *(["new"] if each.is_new else []), *(["quarantined"] if entry else [])]
    return f"{words[0]} ({', '.join(words[1:])})" if words[1:] else words[0]


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
@expand_options("whose", LaneFlags)
def show_test(
    test: Annotated[str, typer.Argument(metavar="TEST", help="Its id, its end, or a part of it.")],
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many results.")] = 5,
    whose: LaneFlags,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show what is known about one test, for each job and variant."""
    memory = open_history(store)
    lanes = whose.choose_lanes(memory)
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
    from interlock_history.verdicts import STATE_MEANINGS

    new = "new, " if each.is_new else ""
    yield f"\n  {each.label or 'all jobs'}: {new}{each.state} ({STATE_MEANINGS[each.state]})"
    yield f"    {each.strip}   newest last; . pass, F fail, x both on one source, s skipped"
    others = f"{plural(each.failures, 'other failure')}, {plural(each.verdicts, 'verdict')} in all"
    yield f"    flips {each.flips.text}{', ' + each.trend if each.trend else ''}; {others}"
    if each.failing_since:
        number = plural(each.failing_since.sources, "source")
        yield f"    failing since {_format_moment(each.failing_since)}, on {number}"
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
    from interlock_history.ingest import describe_tries
    from interlock_history.segment import decode_duration

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
    """Show what the memory holds: projects, jobs, newest sources, names that change."""
    memory = open_history(store)
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
    """Print every stored result as a JSON line."""
    from interlock_history.export import iterate_results

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
    from interlock_history.export import find_old_segments

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
        list[str], typer.Argument(metavar="DIR|URL...", help="Memories to add to this one.")
    ],
    store: Store = None,
    json: Json = False,
) -> None:
    """Unite memories, such as those of matrix legs, shards or machines. Nothing is lost or counted
    twice."""
    settings = read_history_settings()
    memory = open_store(store, settings)
    own = identify(settings, RunOptions())
    added = known = 0
    refused: list[str] = []
    for place in sources:
        source = FolderStore(Path(place), is_new_ok=False) if "://" not in place else None
        done = merge_stores(
            source or open_memory(place), memory, lambda run: refuse_claim(own, run)
        )
        added, known = added + done.added, known + done.known
        refused += done.refused
    for reason in dict.fromkeys(refused):
        echo_note(f"left out: {reason}")
    if json:
        echo_history({"added": added, "known": known, "left_out": refused})
        return
    echo(f"{plural(added, 'job')} added, {known} known already")
