"""Find between which commits a test broke: from its newest pass to its oldest failure since.

Each failing test is compared with itself on the first-parent history of the tested commit. If it
never passed there, weaker answers are tried in turn, each with its reason: another variant, the
last source without the test, the last green source, the merge-base, the commit built before. A
flipping test gives no ground to accuse anybody, and the answer says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import READ, USER_TREE, Git, read_safe_folders
from interlock.system.text import plural
from interlock_history.index import Column, Lane
from interlock_history.memory import History
from interlock_history.segment import FAIL, PASS
from interlock_history.verdicts import judge
from interlock_rca.ci_run import CiRun
from interlock_rca.records import TestRange, unite_ranges
from interlock_rca.sources.git.open import resolve_revision

_LONGEST: Final = 20_000
"""The most commits of the first-parent history to look at."""
_DEEPEN_BY: Final = 1_000
_DEEPEN_SECONDS: Final = 120.0
_HOUR: Final = 3_600.0
_HARMLESS: Final = bytes(bits for bits in range(8) if not bits & FAIL)


class _Sighting(msgspec.Struct, frozen=True):
    """A verdict on a commit of the chain."""

    place: int
    status: str
    at: float


class RangeFinder:
    """Finds the ranges of one run's failing tests. `may_deepen` allows fetching more of a shallow
    clone, which changes the clone."""

    def __init__(
        self, memory: History, run: CiRun, folder: Path, *, may_deepen: bool = False
    ) -> None:
        self._memory = memory
        self._run = run
        self._folder = folder
        self._git = Git(folder, READ, safe=read_safe_folders())
        self._may_deepen = may_deepen
        self._tables: dict[str, dict[int, list[tuple[Lane, int, Column]]]] = {}
        self._green: dict[str, int | None] = {}
        self.notes: list[str] = []
        self._read_chain()

    def find_ranges(self, tests: Iterable[str]) -> dict[str, TestRange]:
        """Return the range of each of these tests."""
        wanted = list(dict.fromkeys(tests))
        found = {test: self.find_range(test) for test in wanted}
        if self.is_shallow and any(each.kind != "last-pass" for each in found.values()):
            if self._deepen():
                return {test: self.find_range(test) for test in wanted}
            self.notes.append(
                f"the clone ends after {plural(len(self.chain), 'commit')}: older passes are not "
                "seen. 'git fetch --unshallow', or fetch-depth: 0 in the checkout step, shows them"
            )
        return found

    def find_range(self, test: str) -> TestRange:
        """Return the range of one failing test."""
        if not self._place:
            return TestRange(kind="none", reason=self._explain_unknown_commit())
        labels = self._find_own_labels(test)
        own = [self._find_last_pass(test, label) for label in labels]
        if unsteady := next((each for each in own if each and each.kind == "unsteady"), None):
            return unsteady
        passes = [each for each in own if each]
        if passes:
            return unite_ranges(passes) or passes[0]
        return (
            self._find_other_variant(test, labels)
            or self._find_born_red(test, labels)
            or self._find_green_source(labels)
            or self._find_base()
            or TestRange(kind="none", reason="nothing is remembered that it could be compared with")
        )

    def has_test(self, test: str) -> bool:
        """Return True if the memory knows a test by that id."""
        return any(self._memory.read_row(lane, test) for lane in self._memory.index.list_lanes())

    # The chain

    def _read_chain(self) -> None:
        words = ("rev-list", "--first-parent", f"--max-count={_LONGEST}", self._run.commit, "--")
        is_known = bool(self._run.commit) and self._has_commit(self._run.commit)
        self.chain = self._git.try_line(*words).split() if is_known else []
        self._place = {commit: at for at, commit in enumerate(self.chain)}
        self._tables.clear()
        self._green.clear()

    def _has_commit(self, commit: str) -> bool:
        return self._git.is_true("cat-file", "-e", f"{commit}^{{commit}}")

    @property
    def is_shallow(self) -> bool:
        try:
            return self._git.try_line("rev-parse", "--is-shallow-repository") == "true"
        except SourceError:
            return False

    def _deepen(self) -> bool:
        """Fetch more of the history; return True if there is more of it now."""
        if not self._may_deepen:
            return False
        before = len(self.chain)
        try:
            git = Git(self._folder, USER_TREE, safe=read_safe_folders())
            git.run(
                "fetch", "--quiet", "--no-tags", f"--deepen={_DEEPEN_BY}", timeout=_DEEPEN_SECONDS
            )
        except SourceError as error:
            self.notes.append(f"the clone is shallow and cannot be deepened: {error}")
            return False
        self._read_chain()
        return len(self.chain) > before

    def _explain_unknown_commit(self) -> str:
        if not self._run.commit:
            return "it is not known which commit was tested"
        return f"the repository does not have the tested commit {self._run.commit[:12]}"

    # The memory along the chain

    @cached_property
    def _lanes(self) -> list[Lane]:
        """Return the lanes whose commits may lie on the chain. Results of a pull request count only
        for itself."""
        scopes = {"default": "", "queue": "", "branch": self._run.branch, "pull-request": ""}
        return [
            lane
            for lane in self._memory.index.list_lanes()
            if lane.project == self._run.project and lane.branch == scopes[lane.scope]
        ]

    def _read_table(self, label: str) -> dict[int, list[tuple[Lane, int, Column]]]:
        """Return the columns for each place on the chain."""
        if label not in self._tables:
            table: dict[int, list[tuple[Lane, int, Column]]] = defaultdict(list)
            for lane in self._lanes:
                if lane.label != label:
                    continue
                for number, column in enumerate(self._memory.list_columns(lane)):
                    is_foreign = lane.scope == "pull-request" and column.pr != self._run.pr
                    for commit in () if is_foreign else column.commits:
                        if commit in self._place:
                            table[self._place[commit]].append((lane, number, column))
            self._tables[label] = dict(sorted(table.items()))
        return self._tables[label]

    def _list_sightings(self, test: str, label: str) -> list[_Sighting]:
        """Return the test's verdicts on the chain, newest first, without skips."""
        found = []
        for place, columns in self._read_table(label).items():
            bits = 0
            for lane, number, _ in columns:
                row = self._memory.read_row(lane, test)
                bits |= row[number] if row else 0
            if bits & (PASS | FAIL):
                at = max(column.at for _, _, column in columns)
                found.append(_Sighting(place, str(judge(bits)), at))
        return found

    def _find_own_labels(self, test: str) -> list[str]:
        """Return the jobs and variants in which the test fails now, or the run's own."""
        found = set()
        for lane in self._memory.index.list_lanes():
            row = self._memory.read_row(lane, test) if lane.project == self._run.project else None
            for number, column in enumerate(self._memory.list_columns(lane)) if row else ():
                if column.source == self._run.source and row and row[number] & FAIL:
                    found.add(lane.label)
        known = sorted({lane.label for lane in self._lanes})
        has_it = [label for label in known if self._list_sightings(test, label)]
        return sorted(found) or ([self._run.label] if self._run.label in known else has_it)

    # The answers, best first

    def _find_last_pass(self, test: str, label: str, after: int = 0) -> TestRange | None:
        """Return the range from the newest pass behind a place to the oldest failure since."""
        seen = self._list_sightings(test, label)
        if seen and seen[0].place == 0 and seen[0].status != "fail":
            return self._make_unsteady(seen[0])
        anchor = next((each for each in seen if each.status == "pass" and each.place > after), None)
        since = [each for each in seen if anchor is None or each.place < anchor.place]
        flip = next((each for each in since if each.status == "flaky"), None)
        if flip:
            return self._make_unsteady(flip)
        if anchor is None:
            return None
        bad = max((each.place for each in since if each.status == "fail"), default=0)
        older = [each for each in seen if each.place >= anchor.place]
        began = min((each.at for each in since), default=anchor.at)
        settings = self._memory.settings
        near = [
            each
            for number, each in enumerate(older)
            if number < settings.accuse_verdicts or began - each.at < settings.accuse_hours * _HOUR
        ]
        if flip := next((each for each in near if each.status == "flaky"), None):
            return self._make_unsteady(flip)
        is_sure = len(since) > 1 and all(each.status == "pass" for each in older[:2])
        return TestRange(
            kind="last-pass",
            reason=f"it passed on {self._show(anchor.place)} and "
            f"{_count_failures(len(since))} from {self._show(bad)} on",
            good=self.chain[anchor.place],
            bad=self.chain[bad],
            good_at=anchor.place,
            bad_at=bad,
            confidence="high" if is_sure and len(older) > 1 else "medium",
        )

    def _make_unsteady(self, flip: _Sighting) -> TestRange:
        what = "passed and failed" if flip.status == "flaky" else "has also passed"
        return TestRange(
            kind="unsteady",
            reason=f"no commit is accused: it {what} on the same source, {self._show(flip.place)}",
        )

    def _find_other_variant(self, test: str, labels: Sequence[str]) -> TestRange | None:
        """Return a range from a pass in another job or variant that is older than every failure in
        its own. A test that only ever failed here may fail for another reason."""
        own = [each.place for label in labels for each in self._list_sightings(test, label)]
        others = sorted({lane.label for lane in self._lanes} - set(labels))
        found = []
        for label in others:
            each = self._find_last_pass(test, label, after=max(own, default=0))
            if each and each.kind == "last-pass":
                found.append((each.good_at, label, each))
        if not found:
            return None
        place, label, best = min(found, key=lambda item: item[:2])
        bad = max(own, default=0)
        return msgspec.structs.replace(
            best,
            kind="other-variant",
            bad=self.chain[bad],
            bad_at=bad,
            confidence="low",
            reason=f"it never passed in this job as far as is remembered; in "
            f"{label or 'another job'} it passed on {self._show(place)}",
        )

    def _find_born_red(self, test: str, labels: Sequence[str]) -> TestRange | None:
        """Return the range from the newest whole source without the test to its first sighting."""
        for label in labels:
            table = self._read_table(label)
            seen = [each.place for each in self._list_sightings(test, label)] or [0]
            first = max(seen)
            for place, columns in table.items():
                if place <= first or not self._lacks(test, columns):
                    continue
                return TestRange(
                    kind="born-red",
                    reason=f"it never passed: {self._show(place)} did not have it, "
                    f"{self._show(first)} was the first to fail (new, or renamed)",
                    good=self.chain[place],
                    bad=self.chain[first],
                    good_at=place,
                    bad_at=first,
                    confidence="medium" if len(seen) > 1 else "low",
                )
        return None

    def _lacks(self, test: str, columns: Sequence[tuple[Lane, int, Column]]) -> bool:
        """Return True if a whole source was tested without the test."""
        rows = [(self._memory.read_row(lane, test), number) for lane, number, _ in columns]
        counted = any(len(column.ignored) < len(column.runs) for _, _, column in columns)
        is_whole = any(column.is_whole for _, _, column in columns)
        return counted and is_whole and not any(row and row[number] for row, number in rows)

    def _find_green_source(self, labels: Sequence[str]) -> TestRange | None:
        for label in labels or sorted({lane.label for lane in self._lanes}):
            if label not in self._green:
                self._green[label] = self._find_green_place(label)
            place = self._green[label]
            if place is not None:
                return TestRange(
                    kind="green-source",
                    reason=f"nothing is known of the test itself; everything passed on "
                    f"{self._show(place)}",
                    good=self.chain[place],
                    bad=self.chain[0],
                    good_at=place,
                    confidence="low",
                )
        return None

    def _find_green_place(self, label: str) -> int | None:
        """Return the newest place, behind the tested commit, on which nothing failed."""
        for place, columns in self._read_table(label).items():
            if place > 0 and all(self._is_green(lane, column) for lane, _, column in columns):
                return place
        return None

    def _is_green(self, lane: Lane, column: Column) -> bool:
        index = self._memory.index.load_lane(lane)
        sources = [each.source for each in index.columns]
        row = index.rows[sources.index(column.source)]
        return column.is_whole and bool(row) and not row.translate(None, _HARMLESS)

    def _find_base(self) -> TestRange | None:
        """Return the range from where a pull request began, or from the previously built commit."""
        run = self._run
        tip = self.chain[0]
        if run.scope in ("pull-request", "queue"):
            names = (f"refs/remotes/origin/{run.target}", f"refs/heads/{run.target}")
            for word in (run.base, *(names if run.target else ())):
                known = resolve_revision(self._git, word) if word else ""
                base = self._git.try_line("merge-base", known, tip) if known else ""
                if base and base != tip:
                    return TestRange(
                        kind="merge-base",
                        reason=f"nothing is remembered of it; it is compared with {base[:12]}, "
                        "where this work began",
                        good=base,
                        bad=tip,
                        good_at=self._place.get(base, -1),
                        confidence="low",
                    )
        if run.previous and self._place.get(run.previous, 0) > 0:
            return TestRange(
                kind="previous",
                reason=f"nothing is remembered of it; it is compared with {run.previous[:12]}, "
                "which the CI system built before",
                good=run.previous,
                bad=tip,
                good_at=self._place[run.previous],
                confidence="low",
            )
        return None

    def _show(self, place: int) -> str:
        return self.chain[place][:12]

    def list_steps(self, found: TestRange, most: int = 50) -> list[tuple[str, str]]:
        """Return the first-parent commits of a range, newest first, with their subjects. On a
        branch that takes merges, that is one per pull request."""
        if not found.is_accusing:
            return []
        words = ("log", "--first-parent", f"--max-count={most}", "--format=%H%x00%s")
        output = self._git.try_line(*words, found.bad, f"^{found.good}", "--")
        pairs = (line.partition("\0") for line in output.split("\n") if line)
        return [(commit, subject) for commit, _, subject in pairs]


def _count_failures(number: int) -> str:
    return "failed" if number < 2 else f"failed {number} times"
