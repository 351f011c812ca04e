"""The timeline: in order, within the strip, honest about what has no time."""

from itertools import pairwise

import msgspec
from hypothesis import given
from tests.rca.report.strategies import findings_of_any_kind
from tests.world.findings import example, many

from interlock.rca.records import Findings
from interlock.rca.report.outline import build_outline
from interlock.rca.report.timeline import assign_shades, build_timeline


def _timed(*times: str) -> Findings:
    cases = [
        msgspec.structs.replace(case, at=at)
        for case, at in zip(example().cases, times, strict=False)
    ]
    return msgspec.structs.replace(example(), cases=tuple(cases))


def test_the_first_failure_is_marked_once_where_it_is() -> None:
    strip = build_timeline(build_outline(example()))
    firsts = [dot for lane in strip.lanes for dot in lane.dots if dot.first]
    assert [dot.x for dot in firsts] == [strip.first_x]
    assert strip.first_x == min(dot.x for lane in strip.lanes for dot in lane.dots)
    assert strip.first_text == "test_discount_is_rounded_once[EUR]"
    assert strip.first_at == "2031-03-04 02:11:00 UTC"


@given(findings_of_any_kind())
def test_every_case_is_drawn_or_counted(findings: Findings) -> None:
    strip = build_timeline(build_outline(findings))
    drawn = sum(dot.number for lane in strip.lanes for dot in lane.dots)
    assert drawn + strip.untimed == len(findings.cases)
    assert all(0 <= dot.x <= 100 for lane in strip.lanes for dot in lane.dots)
    assert all(0 <= tick.x <= 100 for tick in strip.ticks)


def test_no_times_no_dots() -> None:
    strip = build_timeline(build_outline(_timed(*[""] * 40)))
    assert [(lane.size, lane.dots) for lane in strip.lanes] == [
        (n, ()) for n in (14, 5, 7, 8, 3, 3)
    ]
    assert (strip.untimed, strip.spread, strip.first_at) == (40, False, "")


def test_one_time_only() -> None:
    strip = build_timeline(build_outline(_timed(*["2031-03-04T02:00:00Z"] * 3)))
    assert [dot.number for lane in strip.lanes for dot in lane.dots] == [3]
    assert [tick.text for tick in strip.ticks] == ["04 Mar 02:00:00"]
    assert not strip.spread
    assert build_timeline(build_outline(example())).spread


def test_no_tick_repeats_the_one_before() -> None:
    strip = build_timeline(
        build_outline(_timed("2031-03-04T02:00:00.1Z", "2031-03-04T02:00:01.2Z"))
    )
    assert [tick.text for tick in strip.ticks] == ["04 Mar 02:00:00", "02:00:01"]


@given(findings_of_any_kind())
def test_ticks_have_room_beside_each_other(findings: Findings) -> None:
    at = [tick.x for tick in build_timeline(build_outline(findings)).ticks]
    assert all(after - before >= 20 for before, after in pairwise(at))


def test_a_strip_over_years_names_them() -> None:
    strip = build_timeline(build_outline(_timed("2030-12-31T02:00:00Z", "2031-03-04T02:00:00Z")))
    assert [tick.text for tick in strip.ticks] == ["31 Dec 2030 02:00:00", "04 Mar 2031 02:00:00"]


def test_days_of_silence_are_folded_and_said() -> None:
    strip = build_timeline(
        build_outline(
            _timed("2031-03-04T02:00:00Z", "2031-03-04T03:00:00Z", "2031-03-09T03:30:00Z")
        )
    )
    assert [fold.text for fold in strip.folds] == ["5 d 30 m without failures"]
    one, two, three = (dot.x for lane in strip.lanes for dot in lane.dots)
    assert one < two < strip.folds[0].x < three
    assert build_timeline(build_outline(example())).folds == ()


def test_ten_thousand_failures_are_a_few_hundred_marks() -> None:
    strip = build_timeline(build_outline(many(10_000, 40, 0)))
    assert len(strip.lanes) == 10
    assert strip.lanes[-1].label == "31 more causes"
    assert sum(lane.size for lane in strip.lanes) == 10_000
    assert all(lane.crowded for lane in strip.lanes)
    assert sum(len(lane.dots) for lane in strip.lanes) < 1500


def test_causes_of_one_kind_have_different_shades() -> None:
    causes = build_outline(example()).causes
    found = assign_shades(causes)
    assert len({(cause.kind, found[cause.number]) for cause in causes}) == len(causes)
