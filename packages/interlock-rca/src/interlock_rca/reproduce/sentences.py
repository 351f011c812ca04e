"""Describe the result of a search in words that claim no more than its runs showed."""

from collections import Counter
from collections.abc import Sequence

from interlock.system.text import find_first_line, format_line, plural
from interlock.system.time import format_duration
from interlock_rca.records import CommandRun, Reproduction, Suspect
from interlock_rca.reproduce.search import SearchResult

_MOST_NAMED = 5


def format_verdict(
    result: SearchResult, culprit: Suspect | None, runs: Sequence[CommandRun], repeats: int
) -> str:
    """Return one or two sentences for a reader."""
    counts = _count_outcomes(runs)
    about = result.about[:12]
    match result.verdict:
        case "proven":
            text = _format_proof(result, culprit, counts)
        case "flaky":
            text = (
                f"The test is flaky: at one and the same commit, {about}, it came out as "
                f"{_format_counts(counts[result.about])}. So no commit is accused."
            )
        case "not-reproduced":
            text = (
                f"The failure was not reproduced: at {about}, where it was reported, the test "
                f"passed {plural(counts[result.about]['pass'], 'time')} of "
                f"{sum(counts[result.about].values())}. So no commit is accused."
            )
        case "older":
            text = (
                f"The test fails at {about} as well, which was to be good. The fault is older, or "
                "the command cannot succeed in a fresh checkout, for instance because it tests an "
                f"installed copy{_quote_last_line(runs, result.about)}."
            )
        case "untestable":
            text = (
                f"The test could not be run at {about}, where it was reported: "
                f"{_find_why(runs, result.about)}{_quote_last_line(runs, result.about)}."
            )
        case "narrowed":
            left = plural(len(result.candidates), "commit")
            text = f"It is one of {left}, which could not be told apart by running"
            text += f": {_list_commits(result.candidates)}."
        case "spent":
            text = "The time for running was over before it was decided"
            if result.candidates:
                left = plural(len(result.candidates), "commit is", "commits are")
                text += f"; {left} left: {_list_commits(result.candidates)}"
            text += ". Analyse again, and it goes on from there."
        case _:
            text = (
                f"No commit was found at which the test passes, back to {about}; name one with "
                "--last-green."
            )
    return text + _format_skipped(result, runs)


def _format_proof(
    result: SearchResult, culprit: Suspect | None, counts: dict[str, Counter[str]]
) -> str:
    subject = f' "{format_line(culprit.subject, 120)}"' if culprit and culprit.subject else ""
    who = f" by {format_line(culprit.author, 60)}" if culprit and culprit.author else ""
    failed = counts[result.culprit]["fail"]
    passed = counts[result.parent]["pass"]
    return (
        f"Proven by running: the test fails at {result.culprit[:12]}{subject}{who} "
        f"({failed} of {failed} runs) and passes at the commit before it, {result.parent[:12]} "
        f"({passed} of {passed} runs)."
    )


def _count_outcomes(runs: Sequence[CommandRun]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for run in runs:
        found.setdefault(run.commit, Counter())[run.outcome] += 1
    return {"": Counter(), **found}


def _format_counts(outcomes: Counter[str]) -> str:
    words = {"pass": "passed", "fail": "failed", "skip": "not runnable"}
    return " and ".join(
        f"{words[name]} {plural(outcomes[name], 'time')}" for name in sorted(outcomes)
    )


def _find_why(runs: Sequence[CommandRun], commit: str) -> str:
    return next((run.why for run in runs if run.commit == commit and run.why), "it never ended")


def _quote_last_line(runs: Sequence[CommandRun], commit: str) -> str:
    tail = next((run.tail for run in runs if run.commit == commit and run.tail), "")
    last = find_first_line("\n".join(reversed(tail.split("\n"))), 160)
    return f" (it printed: {last})" if last else ""


def _list_commits(commits: Sequence[str]) -> str:
    shown = ", ".join(each[:12] for each in commits[:_MOST_NAMED])
    more = len(commits) - _MOST_NAMED
    return f"{shown} and {more:,} more" if more > 0 else shown


def _format_skipped(result: SearchResult, runs: Sequence[CommandRun]) -> str:
    others = [each for each in result.skipped if each != result.about]
    if not others:
        return ""
    why = _find_why(runs, others[0])
    return (
        f" {plural(len(others), 'commit')} could not be tested and "
        f"{'was' if len(others) == 1 else 'were'} passed over: {_list_commits(others)} ({why})."
    )


def format_reproduction(found: Reproduction) -> str:
    """Return the verdict and the runs behind it, a line each."""
    return "\n".join([found.sentence, *format_runs(found)])


def format_runs(found: Reproduction) -> list[str]:
    """Return lines such as `at 53a31f0a19e7: failed 3 times, exit code 1, 2.4 s: pytest
    tests/test_tax.py::test_tax`, in the order in which the commits were first run."""
    groups: dict[tuple[str, str, int | None], list[CommandRun]] = {}
    for run in found.runs:
        groups.setdefault((run.commit, run.outcome, run.exit_code), []).append(run)
    return [_format_same_runs(runs) for runs in groups.values()]


def _format_same_runs(runs: Sequence[CommandRun]) -> str:
    first = runs[0]
    how = {"pass": "passed", "fail": "failed"}.get(first.outcome, f"passed over ({first.why})")
    often = "" if len(runs) == 1 else f" {len(runs)} times"
    code = "" if first.exit_code is None else f", exit code {first.exit_code}"
    took = format_duration(sum(run.seconds for run in runs) / len(runs))
    return f"at {first.commit[:12]}: {how}{often}{code}, {took}: {first.command}"


def find_decisive_runs(found: Reproduction) -> list[CommandRun]:
    """Return the first runs at the proven commit and before it, else those that explain the
    verdict."""
    decisive = [found.culprit.commit, found.parent] if found.culprit else []
    shown = [run for run in found.runs if run.tail]
    return [run for run in shown if run.commit in decisive] or shown[:2]
