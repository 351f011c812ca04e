"""Search for the commit that broke a test, by running the test. Pure: the caller runs it.

Starts with the ranked suspects, then bisects first-parent history, and follows a failing merge into
its branch. A commit is accused only by its own runs: it failed every time and its parent passed
every time. A commit with both outcomes is flaky, and then nobody is accused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

Outcome = Literal["pass", "fail", "skip"]
"""A commit that cannot be built or tested is skipped."""
Verdict = Literal[
    "proven", "flaky", "not-reproduced", "older", "untestable", "narrowed", "spent", "unknown-good"
]
MAX_DIRECT_SUSPECTS = 3
"""Testing a suspect takes two runs; more suspects would cost more than bisecting."""
_DEEPEST_MERGE = 8


class BudgetSpentError(Exception):
    """Raised by the caller's run when no more runs are allowed."""


class _FlakyError(Exception):
    def __init__(self, commit: str) -> None:
        super().__init__(commit)
        self.commit = commit


class CommitGraph(msgspec.Struct, frozen=True):
    """The commits between a passing and a failing one."""

    chain: tuple[str, ...]
    """First-parent history, oldest first; the last is the failing commit."""
    parents: Mapping[str, tuple[str, ...]]
    """The parents of each candidate, on branches too."""
    has_good: bool = True
    """True if the parent of the oldest commit is known to pass; else a passing one is searched
    backwards from the failing commit."""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a search."""

    verdict: Verdict
    culprit: str = ""
    parent: str = ""
    """The commit before the culprit, where the test passes."""
    candidates: tuple[str, ...] = ()
    """The remaining candidates, oldest first, of an undecided search."""
    skipped: tuple[str, ...] = ()
    about: str = ""
    """The commit that the verdict is about, if it names no culprit."""


def search_culprit(
    graph: CommitGraph,
    suspects: Sequence[str],
    run: Callable[[str], Outcome],
    *,
    repeats: int = 3,
) -> SearchResult:
    """Find the commit since which the test fails. `run` tests a commit once per call. Equal
    outcomes give equal calls, so an interrupted search can be repeated."""
    return _Search(graph, run, repeats).find(suspects)


class _Search:
    def __init__(self, graph: CommitGraph, run: Callable[[str], Outcome], repeats: int) -> None:
        self._graph = graph
        self._run = run
        self._repeats = max(1, repeats)
        self._seen: dict[str, list[Outcome]] = {}
        self._range: tuple[str, ...] = ()

    def find(self, suspects: Sequence[str]) -> SearchResult:
        try:
            return self._find(suspects)
        except _FlakyError as flaky:
            return self._build("flaky", about=flaky.commit)
        except BudgetSpentError:
            return self._build("spent", candidates=self._range)

    def _find(self, suspects: Sequence[str]) -> SearchResult:
        bad = self._graph.chain[-1]
        if (outcome := self._confirm(bad)) != "fail":
            verdict: Verdict = "untestable" if outcome == "skip" else "not-reproduced"
            return self._build(verdict, about=bad)
        base = self._first_parent(self._graph.chain[0])
        if self._graph.has_good and base:
            if self._confirm(base) == "fail":
                return self._build("older", about=base)
            line = (base, *self._graph.chain)
        else:
            line = self._find_passing()
            if not line:
                return self._build("unknown-good", about=self._graph.chain[0])
        self._range = line[1:]
        pair = self._test_suspects(line, suspects)
        if isinstance(pair, tuple):
            return self._accuse(*pair)
        return self._halve(self._narrow(line), 0)

    def _find_passing(self) -> tuple[str, ...]:
        """Step back from the failing commit, doubling the distance, to one that passes."""
        chain, step = self._graph.chain, 1
        while True:
            at = max(0, len(chain) - 1 - step)
            if self._observe(chain[at]) == "pass":
                return chain[at:]
            if at == 0:
                return ()
            step *= 2

    def _test_suspects(
        self, line: tuple[str, ...], suspects: Sequence[str]
    ) -> tuple[str, str] | None:
        """Return the first suspect that fails and whose parent passes. A first-parent suspect with
        a later passing commit cannot be the cause."""
        tested = 0
        for suspect in dict.fromkeys(suspects):
            known = self._narrow(line)
            inside = suspect in known[1:] if suspect in line else suspect in self._graph.parents
            parent = self._first_parent(suspect) if inside else ""
            if not parent or tested == MAX_DIRECT_SUSPECTS:
                continue
            tested += 1
            if self._observe(suspect) == "fail" and self._observe(parent) == "pass":
                return suspect, parent
        return None

    def _narrow(self, line: tuple[str, ...]) -> tuple[str, ...]:
        """Return the rest of a line: from the last passing commit to the next failing one."""
        low = max((at for at, each in enumerate(line) if self._known(each) == "pass"), default=0)
        after = range(low + 1, len(line))
        high = next((at for at in after if self._known(line[at]) == "fail"), len(line) - 1)
        return line[low : high + 1]

    def _halve(self, line: tuple[str, ...], depth: int) -> SearchResult:
        """Bisect a line whose first commit passes and whose last fails."""
        while True:
            line = self._narrow(line)
            if not depth:
                self._range = line[1:]
            middle = self._choose_middle(line)
            if not middle:
                break
            self._observe(middle)
        if len(line) != 2 or self._known(line[0]) != "pass":
            return self._build("narrowed", candidates=line[1:])
        return self._accuse(line[1], line[0], depth)

    def _choose_middle(self, line: tuple[str, ...]) -> str:
        """Return the untested commit nearest to the middle, or ""."""
        free = [at for at in range(1, len(line) - 1) if self._known(line[at]) is None]
        return line[min(free, key=lambda at: abs(2 * at - len(line) + 1))] if free else ""

    def _accuse(self, culprit: str, parent: str, depth: int = 0) -> SearchResult:
        """Run both commits until they are believed; accuse a merge only if its branch is
        innocent."""
        inside = self._follow_merge(culprit, depth)
        if inside is not None and inside.verdict == "proven":
            return inside
        if self._confirm(culprit) != "fail" or self._confirm(parent) != "pass":
            return self._build("narrowed", candidates=(culprit,))
        return self._build("proven", culprit=culprit, parent=parent)

    def _follow_merge(self, merge: str, depth: int) -> SearchResult | None:
        """Return the culprit on a merged branch that fails by itself, or None."""
        if depth >= _DEEPEST_MERGE:
            return None
        for tip in self._graph.parents.get(merge, ())[1:]:
            line = self._list_branch(tip)
            if len(line) > 1 and self._observe(tip) == "fail" and self._observe(line[0]) == "pass":
                return self._halve(line, depth + 1)
        return None

    def _list_branch(self, tip: str) -> tuple[str, ...]:
        """Return a merged branch back to its fork, oldest first."""
        line = [tip]
        while line[-1] in self._graph.parents and line[-1] not in self._graph.chain:
            before = self._first_parent(line[-1])
            if not before:
                break
            line.append(before)
        return tuple(reversed(line))

    def _first_parent(self, commit: str) -> str:
        return next(iter(self._graph.parents.get(commit, ())), "")

    def _known(self, commit: str) -> Outcome | None:
        return self._seen[commit][0] if commit in self._seen else None

    def _observe(self, commit: str) -> Outcome:
        """Return the outcome of a commit, running it once if needed."""
        return self._known(commit) or self._run_once(commit)

    def _confirm(self, commit: str) -> Outcome:
        """Return the outcome if all runs agree. An untestable commit is not tried again."""
        outcome = self._observe(commit)
        while outcome != "skip" and len(self._seen[commit]) < self._repeats:
            self._run_once(commit)
        return outcome

    def _run_once(self, commit: str) -> Outcome:
        outcome = self._run(commit)
        self._seen.setdefault(commit, []).append(outcome)
        if len(set(self._seen[commit])) > 1:
            raise _FlakyError(commit)
        return outcome

    def _build(
        self,
        verdict: Verdict,
        *,
        culprit: str = "",
        parent: str = "",
        candidates: tuple[str, ...] = (),
        about: str = "",
    ) -> SearchResult:
        return SearchResult(
            verdict=verdict,
            culprit=culprit,
            parent=parent,
            candidates=candidates,
            skipped=tuple(each for each, seen in self._seen.items() if seen[0] == "skip"),
            about=about,
        )
