"""The demo's verdict: what an analysis found, next to what was planted.

Compares and counts; hides nothing. A planted family is right when one found family holds its tests
and no others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from interlock.rca.demo.history import PlantedFault
from interlock.rca.records import CaseFinding, FindingFamily, Findings

TABLE_HEAD = (
    "planted",
    "tests",
    "found as",
    "together",
    "strangers",
    "category",
    "culprit",
    "seen",
    "",
)
_SHORTEST_HASH = 7


class DemoRow(msgspec.Struct, frozen=True, kw_only=True):
    """One planted family, and the found family that holds most of its tests."""

    planted: PlantedFault
    family_id: str
    found: int
    """How many of its tests were analysed."""
    together: int
    """How many of them the found family holds."""
    pieces: int
    """In how many families they ended up."""
    strangers: tuple[str, ...]
    """Tests in the found family that were not planted in this one."""
    category_right: int
    defect_right: int
    culprit_rank: int
    """The place of the culprit among the suspects of the found family; 0 if it is not there."""
    recalled: int

    @property
    def is_right(self) -> bool:
        return self.together == len(self.planted.tests) and not self.strangers


class DemoScore(msgspec.Struct, frozen=True, kw_only=True):
    """The sum. Each pair is right, of how many."""

    families: tuple[int, int]
    culprits_first: tuple[int, int]
    categories: tuple[int, int]
    defects: tuple[int, int]
    seen_before: tuple[int, int]
    wrongly_recalled: int
    purity: float
    """The share of tests whose found family is mostly of their own planted family."""
    found_families: int


class DemoResult(msgspec.Struct, frozen=True, kw_only=True):
    rows: tuple[DemoRow, ...]
    score: DemoScore
    missing: tuple[str, ...]
    """Planted tests that the analysis does not know."""
    unplanted: tuple[str, ...]
    """Analysed tests that nobody planted."""


def judge_findings(findings: Findings, truth: Iterable[PlantedFault]) -> DemoResult:
    """Of several launches in the findings, the newest failure of each test counts."""
    faults = tuple(truth)
    newest = _find_newest(findings.cases)
    home = _find_families(findings.families, newest)
    rows = tuple(_judge_family(each, newest, home, findings.families) for each in faults)
    names = {_make_key(test): test for each in faults for test in each.tests}
    return DemoResult(
        rows=rows,
        score=_compute_score(rows, newest, home),
        missing=tuple(sorted(test for key, test in names.items() if key not in newest)),
        unplanted=tuple(sorted(".".join(key) for key in newest.keys() - names.keys())),
    )


def format_table(verdict: DemoResult) -> list[tuple[str, ...]]:
    """A row of text for each planted family, under `TABLE_HEAD`."""
    return [_format_row(row) for row in verdict.rows]


def format_sentences(verdict: DemoResult) -> list[str]:
    """The sum in words, the bad news included."""
    score = verdict.score
    found = f"{score.found_families} families found, purity {score.purity:.2f}"
    new = f"{score.wrongly_recalled} recalled that are new"
    culprits, defects = _format_share(score.culprits_first), _format_share(score.defects)
    lines = [
        f"{_format_share(score.families)} planted families found whole and pure; {found}",
        f"the culprit is the first suspect in {culprits} families that have one",
        f"category right for {_format_share(score.categories)} tests, defect type for {defects}",
        f"seen before: {_format_share(score.seen_before)} tests recalled, {new}",
    ]
    if verdict.missing:
        lines.append(f"not analysed: {', '.join(verdict.missing)}")
    if verdict.unplanted:
        lines.append(f"not planted: {', '.join(verdict.unplanted)}")
    return lines


class _Key(NamedTuple):
    """How sources split a test's name differs; its class and its own name are the same for all."""

    class_name: str
    test_name: str


def _make_key(name: str) -> _Key:
    parts = ["", *filter(None, name.split("."))]
    return _Key(*parts[-2:])


def _find_newest(cases: Iterable[CaseFinding]) -> dict[_Key, CaseFinding]:
    return {
        _make_key(f"{case.class_name}.{case.test_name}"): case
        for case in sorted(cases, key=lambda case: (case.at, case.case_no))
    }


def _find_families(
    families: Iterable[FindingFamily], newest: Mapping[_Key, CaseFinding]
) -> dict[_Key, str]:
    """The family of each test; one that is in none is alone."""
    by_case = {member: family.family_id for family in families for member in family.members}
    return {key: by_case.get(case.case_id, f"alone:{case.case_id}") for key, case in newest.items()}


def _judge_family(
    planted: PlantedFault,
    newest: Mapping[_Key, CaseFinding],
    home: Mapping[_Key, str],
    families: Iterable[FindingFamily],
) -> DemoRow:
    keys = [key for test in planted.tests if (key := _make_key(test)) in newest]
    counts = Counter(home[key] for key in keys)
    family_id = min(counts, key=lambda each: (-counts[each], each), default="")
    cases = [newest[key] for key in keys]
    members = {key for key in home if home[key] == family_id}
    return DemoRow(
        planted=planted,
        family_id=family_id,
        found=len(keys),
        together=counts[family_id],
        pieces=len(counts),
        strangers=tuple(sorted(".".join(key) for key in members - set(keys))),
        category_right=sum(case.category == planted.category for case in cases),
        defect_right=sum(case.defect_type == planted.defect_type for case in cases),
        culprit_rank=_find_culprit_rank(
            planted, _find_representative(family_id, families, newest.values(), cases)
        ),
        recalled=sum(case.recalled or case.regression for case in cases),
    )


def _find_representative(
    family_id: str,
    families: Iterable[FindingFamily],
    newest: Iterable[CaseFinding],
    cases: list[CaseFinding],
) -> CaseFinding | None:
    """Who speaks for the found family: its first member that names suspects."""
    known = {case.case_id: case for case in newest}
    members = next((each.members for each in families if each.family_id == family_id), ())
    speaking = [known[member] for member in members if member in known] or cases
    return next((case for case in speaking if case.suspects), None)


def _find_culprit_rank(planted: PlantedFault, case: CaseFinding | None) -> int:
    for rank, suspect in enumerate(case.suspects if case is not None else (), 1):
        if suspect.repo in ("", planted.repo) and _is_same_commit(suspect.commit, planted.commit):
            return rank
    return 0


def _is_same_commit(one: str, other: str) -> bool:
    """Whether two hashes, perhaps shortened, are of one commit."""
    shorter = min(len(one), len(other))
    return shorter >= _SHORTEST_HASH and one[:shorter] == other[:shorter]


def _compute_score(
    rows: tuple[DemoRow, ...], newest: Mapping[_Key, CaseFinding], home: Mapping[_Key, str]
) -> DemoScore:
    tests = sum(len(row.planted.tests) for row in rows)
    guilty = [row for row in rows if row.planted.commit]
    old = [row for row in rows if row.planted.seen_before]
    return DemoScore(
        families=(sum(row.is_right for row in rows), len(rows)),
        culprits_first=(sum(row.culprit_rank == 1 for row in guilty), len(guilty)),
        categories=(sum(row.category_right for row in rows), tests),
        defects=(sum(row.defect_right for row in rows), tests),
        seen_before=(
            sum(row.recalled for row in old),
            sum(len(row.planted.tests) for row in old),
        ),
        wrongly_recalled=sum(row.recalled for row in rows if not row.planted.seen_before),
        purity=_compute_purity(rows, newest, home),
        found_families=len(set(home.values())),
    )


def _compute_purity(
    rows: tuple[DemoRow, ...], newest: Mapping[_Key, CaseFinding], home: Mapping[_Key, str]
) -> float:
    truth = {_make_key(test): row.planted.family_id for row in rows for test in row.planted.tests}
    mixed = Counter((home[key], truth.get(key, "")) for key in newest)
    most: Counter[str] = Counter()
    for (family_id, planted), count in mixed.items():
        if planted:
            most[family_id] = max(most[family_id], count)
    return most.total() / len(newest) if newest else 0.0


def _format_row(row: DemoRow) -> tuple[str, ...]:
    planted = row.planted
    tests = len(planted.tests)
    rank = f"#{row.culprit_rank}" if row.culprit_rank else "not found"
    return (
        planted.family_id,
        str(tests),
        row.family_id or "nothing",
        f"{row.together}/{tests}" + (f" in {row.pieces} pieces" if row.pieces > 1 else ""),
        str(len(row.strangers)),
        f"{planted.category} {row.category_right}/{tests}",
        rank if planted.commit else "-",
        f"{row.recalled}/{tests}" if planted.seen_before or row.recalled else "-",
        "right" if row.is_right else "wrong",
    )


def _format_share(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}"
