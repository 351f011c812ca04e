"""Which clock rings when: a table of lives, and laws over all of them."""

from math import inf, nan

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.cli.timeouts import (
    CLOCK_NAMES,
    Alive,
    DueClock,
    RateLimited,
    ResultSeen,
    StreamSign,
    Timeouts,
    TimeoutWatch,
    ToolBegan,
    ToolEnded,
    WaitsForPermission,
)
from interlock.system.errors import SourceError

CLOCKS = Timeouts(first_byte=10, silence=100, after_result=20, tool=500, wall=5_000)
WALL = 1_000_000.0
Life = list[tuple[float, StreamSign | None]]


def watch(life: Life, clocks: Timeouts = CLOCKS) -> TimeoutWatch:
    """One that started at 0 and was heard at these times."""
    found = TimeoutWatch(clocks, 0.0, WALL)
    for at, sight in life:
        found.note_stdout(at)
        if sight is not None:
            found.note_sign(sight, at)
    return found


@pytest.mark.parametrize(
    ("life", "due"),
    [
        pytest.param([], DueClock("first_byte", 10), id="not a byte"),
        pytest.param([(3, None)], DueClock("silence", 103), id="spoke"),
        pytest.param([(3, None), (90, None)], DueClock("silence", 190), id="spoke again"),
        pytest.param([(3, ToolBegan("1"))], DueClock("tool", 503), id="a tool"),
        pytest.param(
            [(3, ToolBegan("1")), (9, None)], DueClock("tool", 509), id="it speaks meanwhile"
        ),
        pytest.param(
            [(3, ToolBegan("1")), (9, ToolEnded("1"))], DueClock("silence", 109), id="ended"
        ),
        pytest.param(
            [(3, ToolBegan("1")), (9, ToolEnded("2"))], DueClock("tool", 509), id="another"
        ),
        pytest.param(
            [(3, ToolBegan("1")), (4, ToolBegan("2")), (9, ToolEnded("1"))],
            DueClock("tool", 509),
            id="one of two",
        ),
        pytest.param([(3, ToolEnded("1"))], DueClock("silence", 103), id="the end of nothing"),
        pytest.param([(3, ResultSeen())], DueClock("after_result", 23), id="a result"),
        pytest.param(
            [(3, ResultSeen()), (9, None)], DueClock("after_result", 23), id="chatter after it"
        ),
        pytest.param(
            [(3, ResultSeen()), (9, Alive())], DueClock("after_result", 23), id="alive after it"
        ),
        pytest.param(
            [(3, ResultSeen()), (9, ResultSeen())], DueClock("after_result", 29), id="two results"
        ),
        pytest.param(
            [(3, ToolBegan("1")), (9, ResultSeen())],
            DueClock("after_result", 29),
            id="with a tool open",
        ),
        pytest.param([(3, WaitsForPermission("rm"))], DueClock("silence", 103), id="permission"),
        pytest.param(
            [(3, RateLimited())], DueClock("silence", 103), id="limited, who knows how long"
        ),
        pytest.param(
            [(3, RateLimited(WALL + 700))], DueClock("silence", 800), id="limited until then"
        ),
        pytest.param(
            [(3, RateLimited(WALL + 700)), (4, Alive())], DueClock("silence", 104), id="and goes on"
        ),
        pytest.param(
            [(3, RateLimited(WALL - 9))], DueClock("silence", 103), id="limited in the past"
        ),
        pytest.param([(3, RateLimited(inf))], DueClock("wall", 5_000), id="limited for ever"),
        pytest.param([(3, RateLimited(nan))], DueClock("silence", 103), id="limited until no time"),
        pytest.param([(4_950, None)], DueClock("wall", 5_000), id="near the end"),
    ],
)
def test_the_clock_that_rings_next(life: Life, due: DueClock) -> None:
    assert watch(life).next_due() == due


def test_stderr_is_a_sign_of_life_but_no_first_byte() -> None:
    found = TimeoutWatch(CLOCKS, 0.0, WALL)
    found.note_stderr(5.0)
    assert found.next_due() == DueClock("first_byte", 10)
    found.note_stdout(6.0)
    found.note_stderr(7.0)
    assert found.next_due() == DueClock("silence", 107)


@pytest.mark.parametrize(
    ("life", "due"),
    [
        ([], DueClock("first_byte", 60)),
        ([(3, None)], DueClock("silence", 150)),
        ([(3, ToolBegan("1"))], DueClock("tool", 550)),
        ([(3, ResultSeen())], DueClock("after_result", 70)),
    ],
)
def test_a_machine_that_slept_gives_its_agents_their_time_again(life: Life, due: DueClock) -> None:
    found = watch(life)
    assert found.check_suspend(50.0, WALL + 50 + 3_600)
    assert found.next_due() == due
    assert found.slept == 3_600


def test_a_nap_is_seen_once() -> None:
    found = watch([(3, None)])
    assert found.check_suspend(50.0, WALL + 50 + 3_600)
    assert not found.check_suspend(60.0, WALL + 60 + 3_600)
    assert not found.check_suspend(60.0, WALL - 3_600), "a clock that was set back is no nap"
    assert not found.check_suspend(70.0, WALL - 3_600 + 10 + 1), "a clock that is set right is none"
    assert found.slept == 3_600


def test_the_wall_may_count_the_sleep() -> None:
    counts = Timeouts(
        first_byte=10, silence=100, after_result=20, tool=500, wall=5_000, sleep_counts=True
    )
    found = watch([(3, None)], counts)
    found.check_suspend(50.0, WALL + 50 + 4_900)
    assert found.next_due() == DueClock("wall", 100)


@pytest.mark.parametrize("name", [*CLOCK_NAMES, "grace"])
@pytest.mark.parametrize("seconds", [-1.0, -inf, nan])
def test_no_clock_takes_this(name: str, seconds: float) -> None:
    with pytest.raises(SourceError, match=f"the clock {name} must be 0 or more seconds"):
        msgspec.convert({name: seconds}, Timeouts)


def test_clocks_can_be_turned_off() -> None:
    off = Timeouts(first_byte=inf, silence=inf, after_result=inf, tool=inf, wall=inf)
    assert watch([(3, None)], off).next_due().when == inf


def test_defaults_let_healthy_habits_pass() -> None:
    assert Timeouts().silence > 300
    assert Timeouts().after_result >= 6


def test_a_million_tools_are_not_kept() -> None:
    found = watch([(1, ToolBegan(str(number))) for number in range(10_000)])
    assert len(found.tools) == 1_000


def test_giant_words_are_not_kept() -> None:
    found = watch([(1, ToolBegan("x" * 10**6)), (2, WaitsForPermission("y" * 10**6))])
    assert len(*found.tools) == 200
    assert found.permission == "y" * 200
    found.note_sign(ToolEnded("x" * 10**6), 3)
    assert found.tools == {}


_SIGHTS = st.none() | st.sampled_from(
    [Alive(), ToolBegan("1"), ToolBegan("2"), ToolEnded("1"), WaitsForPermission(), RateLimited()]
)
_LIVES = st.lists(st.tuples(st.floats(0, 400), _SIGHTS)).map(
    lambda life: sorted(life, key=lambda x: x[0])
)


@given(_LIVES)
def test_it_never_waits_beyond_the_wall_and_is_never_without_a_clock(life: Life) -> None:
    due = watch(life).next_due()
    assert due.when <= CLOCKS.wall
    assert due.name in CLOCK_NAMES


@given(_LIVES.filter(bool))
def test_a_word_never_makes_the_end_come_sooner_unless_it_closes_a_tool(life: Life) -> None:
    found = watch(life)
    before = found.next_due()
    found.note_stdout(500.0)
    assert found.next_due().when >= before.when
