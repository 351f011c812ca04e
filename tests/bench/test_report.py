"""The report's arithmetic on numbers worked out by hand: median, range, ratio, verdict."""

import pytest

from bench.plot import draw, scale_for
from bench.protocol import Outcome, Request, find_faults
from bench.report import Report, cell, number, throughput_table, write
from bench.results import Results, Sample, Spread, ratio, spread
from bench.roster import FULL, PROGRAMS, one_round
from bench.targets import TARGETS, Target, Verdict, measured, verdict


def samples(program: str, measure: str, metric: str, *values: float) -> list[Sample]:
    return [
        Sample(program, measure, number, {metric: value})
        for number, value in enumerate(values, start=1)
    ]


def test_spread_of_an_odd_number_of_rounds_is_the_middle_one() -> None:
    assert spread({1: 30.0, 2: 10.0, 3: 20.0}) == Spread(median=20.0, low=10.0, high=30.0)


def test_spread_of_an_even_number_of_rounds_lies_between_the_middle_two() -> None:
    assert spread({1: 1.0, 2: 2.0, 3: 4.0, 4: 100.0}) == Spread(median=3.0, low=1.0, high=100.0)


def test_spread_of_nothing_is_nothing() -> None:
    assert spread({}) is None


def test_ratio_is_taken_round_by_round_not_from_the_medians() -> None:
    ours, theirs = {1: 10.0, 2: 40.0, 3: 90.0}, {1: 1.0, 2: 8.0, 3: 10.0}
    assert ratio(ours, theirs) == {1: 10.0, 2: 5.0, 3: 9.0}
    assert spread(ratio(ours, theirs)) == Spread(median=9.0, low=5.0, high=10.0)


def test_ratio_leaves_out_rounds_that_only_one_finished() -> None:
    assert ratio({1: 10.0, 2: 20.0}, {2: 4.0, 3: 5.0}) == {2: 5.0}


def test_lowest_peer_goes_by_median_and_sees_peers_only() -> None:
    results = Results(
        [
            *samples("ceiling", "many", "cpu_ms", 0.1, 0.1, 0.1),
            *samples("burr", "many", "cpu_ms", 0.3, 0.2, 9.0),
            *samples("dbos", "many", "cpu_ms", 0.1, 0.4, 0.5),
        ]
    )
    assert results.lowest_peer("many", "cpu_ms") == "burr"
    assert results.lowest_peer("single", "cpu_ms") is None


@pytest.mark.parametrize(
    ("comparison", "median", "expected"),
    [
        ("≥", 7.0, "pass"),
        ("≥", 6.99, "miss"),
        (">", 7.0, "miss"),
        (">", 7.01, "pass"),
        ("≤", 7.0, "pass"),
        ("≤", 7.01, "miss"),
        ("<", 7.0, "miss"),
        ("<", 6.99, "pass"),
    ],
)
def test_verdict_is_on_the_median_and_exact_at_the_bound(
    comparison: str, median: float, expected: Verdict
) -> None:
    target = Target("a target", "many", "steps_per_s", comparison, 7)
    assert verdict(target, Spread(median=median, low=0.0, high=100.0)) == expected


def test_a_target_against_a_program_is_a_ratio() -> None:
    target = Target("of Burr", "many", "steps_per_s", "≥", 7, against="burr")
    results = Results(
        [
            *samples("interlock", "many", "steps_per_s", 8000, 6000, 14000),
            *samples("burr", "many", "steps_per_s", 1000, 2000, 2000),
        ]
    )
    found = measured(target, results)
    assert found == Spread(median=7.0, low=3.0, high=8.0)
    assert verdict(target, found) == "pass"


def test_a_target_against_another_measure_of_our_own() -> None:
    flat = next(target for target in TARGETS if target.against_measure == "open-100")
    results = Results(
        [
            *samples("interlock", "open-10000", "cpu_ms", 0.26),
            *samples("interlock", "open-100", "cpu_ms", 0.2),
        ]
    )
    found = measured(flat, results)
    assert found is not None
    assert found.median == pytest.approx(1.3)
    assert verdict(flat, found) == "miss"


def test_a_target_without_numbers_is_never_a_pass() -> None:
    ours_only = Results(samples("interlock", "many", "steps_per_s", 1.0))
    for target in TARGETS:
        assert verdict(target, measured(target, Results([]))) == "not measured"
        if target.against is not None:
            assert measured(target, ours_only) is None


@pytest.mark.parametrize(
    ("value", "visible"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (0.5, "0.500"),
        (1.0, "1.00"),
        (12.34, "12.3"),
        (123.4, "123"),
        (999.6, "1,000"),
        (12_345, "12,300"),
        (123_456, "123,000"),
    ],
)
def test_numbers_show_three_digits(value: float, visible: str) -> None:
    assert number(value) == visible


def test_a_cell_shows_the_range_only_when_there_is_one() -> None:
    assert cell(Spread(median=2.0, low=1.0, high=4.0), " s") == "2.00 s (1.00 to 4.00)"
    assert cell(Spread(median=2.0, low=2.0, high=2.0)) == "2.00"
    assert cell(None) == "-"


def test_the_table_divides_by_the_ceiling_and_by_each_peer() -> None:
    results = Results(
        [
            *samples("ceiling", "many", "steps_per_s", 20000, 20000, 20000),
            *samples("interlock", "many", "steps_per_s", 10000, 12000, 14000),
            *samples("dbos", "many", "steps_per_s", 500, 500, 500),
        ]
    )
    rows = throughput_table(results, "many", "ceiling").splitlines()[2:]
    cells = [[cell.strip() for cell in row.split("|")[2:5]] for row in rows]
    assert cells == [
        ["20,000", "1.00", "0.600 (0.500 to 0.700)"],
        ["12,000 (10,000 to 14,000)", "0.600 (0.500 to 0.700)", "1.00"],
        ["500", "0.0250", "24.0 (20.0 to 28.0)"],
    ]


def test_the_page_names_what_is_missing_and_what_was_rejected() -> None:
    page = write(
        Report(
            scale=FULL,
            machine={"Python": "3.11.0"},
            versions={"burr": "1.0"},
            styles={"burr": {"many": "threads"}},
            results=Results([]),
            missing=["interlock"],
            rejections=["dbos, many: synchronous is [1], not FULL"],
        )
    )
    assert "- interlock: program missing, not measured." in page
    assert "- REJECTED, not counted: dbos, many: synchronous is [1], not FULL" in page
    assert "1,000 cases, each with three of seven steps done" in page


def honest(**changes: object) -> Outcome:
    facts: dict[str, object] = {
        "job": "throughput",
        "cases": 10,
        "inflight": 2,
        "style": "",
        "versions": {},
        "database": "bench.db",
        "steps_sql": "",
        "journal_modes": ["wal", "wal"],
        "synchronous": [2, 2],
        "main_at": 1.0,
        "first_ask_at": 2.0,
        "done_at": 3.0,
        "wall_s": 1.0,
        "cpu_s": 1.0,
        "asks": 70,
        "peak_rss_bytes": 1,
    }
    return Outcome(**{**facts, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "steps", "fault"),
    [
        (honest(), 70, None),
        (honest(), 69, "69 steps in the database, not 70"),
        (honest(asks=77), 70, "the agent was asked 77 times, not 70"),
        (honest(journal_modes=["wal", "delete"]), 70, "journal_mode is ['wal', 'delete'], not WAL"),
        (honest(journal_modes=[]), 70, "journal_mode is not reported, not WAL"),
        (honest(synchronous=[2, 1]), 70, "synchronous is [2, 1], not FULL"),
        (honest(synchronous=[]), 70, "synchronous is not reported, not FULL"),
        (honest(cases=9), 70, "ran 9 cases with 2 in flight"),
    ],
)
def test_a_result_that_does_not_add_up_is_rejected(
    outcome: Outcome, steps: int, fault: str | None, request: pytest.FixtureRequest
) -> None:
    asked = Request(("program",), request.config.rootpath, cases=10, inflight=2)
    found = find_faults(outcome, asked, steps=steps, asks=70)
    assert found == ([fault] if fault else [])


def test_every_round_starts_with_another_program_and_leaves_none_out() -> None:
    rounds = [list(one_round(PROGRAMS, number, FULL)) for number in (1, 2, 4)]
    assert rounds[0][0].program != rounds[1][0].program
    measures = [{(task.program.name, task.measure) for task in tasks} for tasks in rounds]
    assert measures[0] == measures[1]
    assert {measure for _, measure in measures[2]} == {"many", "single"}


def test_the_scale_covers_all_values_in_whole_decades() -> None:
    scale = scale_for([("burr", Spread(20.0, 15.0, 30.0)), ("dbos", Spread(300.0, 200.0, 900.0))])
    assert (scale.first, scale.last) == (1, 3)
    assert scale.x(1000.0) - scale.x(100.0) == pytest.approx(scale.x(100.0) - scale.x(10.0))


def test_the_picture_leaves_out_what_was_not_measured() -> None:
    picture = draw(Results(samples("burr", "many", "steps_per_s", 1000, 2000)))
    assert picture.count('class="peer"') == 1
    assert ">Burr</text>" in picture
    assert "Interlock</text>" not in picture
