"""The demo's verdict: what an analysis found, next to what was planted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from interlock_rca.demo.history import PlantedFault
from interlock_rca.records import CaseFinding, Findings

TABLE_HEAD = ("planted", "tests", "together", "strangers", "category", "culprit", "seen", "")
_SHORTEST_HASH = 7


class DemoRow(msgspec.Struct, frozen=True, kw_only=True):
    """One planted family, and the found family that holds most of its tests."""

    planted: PlantedFault
    together: int
    """How many of its tests the found family holds."""
    strangers: tuple[str, ...]
    """Tests in the found family that were not planted in this one."""
    category_right: int
    culprit_rank: int
    """The place of the culprit among the suspects of the found family; 0 if it is not there."""
    recalled: int

    @property
    def is_right(self) -> bool:
        return self.together == len(self.planted.tests) and not self.strangers


def judge_findings(findings: Findings, truth: Iterable[PlantedFault]) -> list[DemoRow]:
    """Judge each planted family; of several launches the newest failure of each test counts."""
    cases = sorted(findings.cases, key=lambda case: (case.at, case.case_no))
    newest = {_name_test(f"{case.class_name}.{case.test_name}"): case for case in cases}
    members = {member: each.members for each in findings.families for member in each.members}
    return [_judge_family(each, newest, members) for each in truth]


def format_table(rows: Sequence[DemoRow]) -> list[tuple[str, ...]]:
    """Return a row of text for each planted family, under `TABLE_HEAD`."""
    return [_format_row(row) for row in rows]


def format_sentences(rows: Sequence[DemoRow]) -> list[str]:
    """Return the sum in words."""
    guilty = [row for row in rows if row.planted.commit]
    first = sum(row.culprit_rank == 1 for row in guilty)
    return [
        f"{sum(row.is_right for row in rows)} of {len(rows)} planted families found whole and pure",
        f"the culprit is the first suspect in {first} of {len(guilty)} families that have one",
    ]


def _name_test(name: str) -> tuple[str, str]:
    """Return the last two parts: sources split a test's name in different ways."""
    parts = ["", *filter(None, name.split("."))]
    return parts[-2], parts[-1]


def _judge_family(
    planted: PlantedFault,
    newest: Mapping[tuple[str, str], CaseFinding],
    members: Mapping[str, tuple[str, ...]],
) -> DemoRow:
    keys = [key for test in planted.tests if (key := _name_test(test)) in newest]
    cases = [newest[key] for key in keys]
    homes = Counter(members.get(case.case_id, (case.case_id,)) for case in cases)
    home = min(homes, key=lambda each: (-homes[each], each), default=())
    held = {key: case for key, case in newest.items() if case.case_id in home}
    order = sorted(held.values(), key=lambda case: home.index(case.case_id))
    return DemoRow(
        planted=planted,
        together=homes[home],
        strangers=tuple(sorted(".".join(key) for key in held.keys() - set(keys))),
        category_right=sum(case.category == planted.category for case in cases),
        culprit_rank=_find_culprit_rank(planted, next(filter(_has_suspects, order), None)),
        recalled=sum(case.recalled or case.regression for case in cases),
    )


def _has_suspects(case: CaseFinding) -> bool:
    return bool(case.suspects)


def _find_culprit_rank(planted: PlantedFault, case: CaseFinding | None) -> int:
    for rank, suspect in enumerate(case.suspects if case is not None else (), 1):
        length = min(len(suspect.commit), len(planted.commit))
        is_same = suspect.commit[:length] == planted.commit[:length] and length >= _SHORTEST_HASH
        if suspect.repo in ("", planted.repo) and is_same:
            return rank
    return 0


def _format_row(row: DemoRow) -> tuple[str, ...]:
    planted = row.planted
    tests = len(planted.tests)
    rank = f"#{row.culprit_rank}" if row.culprit_rank else "not found"
    return (
        planted.family_id,
        str(tests),
        f"{row.together}/{tests}",
        str(len(row.strangers)),
        f"{planted.category} {row.category_right}/{tests}",
        rank if planted.commit else "-",
        f"{row.recalled}/{tests}" if planted.seen_before or row.recalled else "-",
        "right" if row.is_right else "wrong",
    )
