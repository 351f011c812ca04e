"""Answers of people: files that are found, and who may give them."""

import stat
from pathlib import Path

import pytest
from tests.world.carrier_bench import Bench, ask
from tests.world.clock import FakeClock

from interlock.agents.carrier import Reply
from interlock.agents.human import (
    EVERYBODY,
    AnswerPolicy,
    HumanAnswer,
    HumanCarrier,
    find_saved_answer,
    write_answer,
    write_refused_answer,
)

YES = HumanAnswer(1, "ann", {"decision": "approve"})
REPLY = Reply(1, b'{"decision":"approve"}', answered_by="ann")


def make_bench(folder: Path) -> Bench:
    clock = FakeClock()
    return Bench(HumanCarrier(folder / "answers", clock), clock)


def save(folder: Path, answer: HumanAnswer) -> Path:
    assert write_answer(folder, answer)
    return folder / f"{answer.question_id}.json"


def test_an_answer_is_written_whole_and_for_no_other_eyes(tmp_path: Path) -> None:
    path = save(tmp_path / "new" / "answers", YES)
    assert path.read_text() == '{"question_id":1,"by":"ann","data":{"decision":"approve"}}'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [*path.parent.iterdir()] == [path]


def test_the_first_answer_counts(tmp_path: Path) -> None:
    path = save(tmp_path, YES)
    assert not write_answer(tmp_path, HumanAnswer(1, "bob", {"decision": "reject"}))
    assert path.read_text() == '{"question_id":1,"by":"ann","data":{"decision":"approve"}}'
    assert find_saved_answer(tmp_path, 1) == YES
    assert [*tmp_path.iterdir()] == [path]


async def test_an_answer_that_does_not_count_is_handed_over_to_be_refused(tmp_path: Path) -> None:
    late = HumanAnswer(7, "bob", {"decision": "reject"}, 1, refused="Ann was first.")
    write_refused_answer(tmp_path / "answers", late)
    write_refused_answer(tmp_path / "answers", HumanAnswer(8, "bob", {}, 2, refused="Other run."))
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        content = b'{"decision":"reject","by":"bob"}'
        assert bench.replies == [Reply(7, content, refused="Stale", reason="Ann was first.")]
    left = [path.name.partition(".")[0] for path in (tmp_path / "answers").iterdir()]
    assert left == ["8"]


def test_a_shared_folder_shares_its_answers_with_the_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    path = save(tmp_path / "answers", YES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o2770


async def test_an_answer_that_was_there_before_the_question(tmp_path: Path) -> None:
    write_answer(tmp_path / "answers", YES)
    async with make_bench(tmp_path) as bench:
        assert bench.replies == []
        bench.carrier.send([ask(1)])
        assert bench.replies == [REPLY]


async def test_an_answer_that_comes_later(tmp_path: Path) -> None:
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        for _ in range(10):
            assert bench.clock.advance()
        assert bench.replies == []
        write_answer(tmp_path / "answers", YES)
        bench.clock.advance()
        assert bench.replies == [REPLY]


async def test_an_answer_is_kept_until_it_is_settled(tmp_path: Path) -> None:
    path = save(tmp_path / "answers", YES)
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        assert path.exists()
        bench.carrier.settle(1)
        assert not path.exists()


async def test_an_answer_for_a_closed_question_is_not_delivered(tmp_path: Path) -> None:
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1), ask(2)])
        bench.carrier.settle(1)
        write_answer(tmp_path / "answers", YES)
        write_answer(tmp_path / "answers", HumanAnswer(2, "", {}))
        bench.clock.advance()
        assert bench.replies == [Reply(2, b"{}", answered_by="somebody")]


async def test_it_looks_no_more_when_no_question_is_open(tmp_path: Path) -> None:
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        bench.carrier.settle(1)
        bench.clock.advance()
        assert not bench.clock.advance()


async def test_a_broken_answer_is_told_as_unreadable(tmp_path: Path) -> None:
    path = save(tmp_path / "answers", YES)
    path.write_text('{"question_id": 1, "by": "ann"')
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        assert bench.replies == [
            Reply(
                1,
                failure="unreadable",
                reason="1.json: Input data was truncated",
                answered_by="somebody",
            )
        ]


async def test_a_file_that_answers_another_question_answers_none(tmp_path: Path) -> None:
    path = save(tmp_path / "answers", YES)
    path.rename(path.with_name("2.json"))
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1), ask(2)])
        assert [(each.dispatch_id, each.failure, each.reason) for each in bench.replies] == [
            (2, "unreadable", "2.json answers question 1")
        ]


async def test_two_thousand_questions_are_looked_for_together(tmp_path: Path) -> None:
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(number) for number in range(1, 2_001)])
        write_answer(tmp_path / "answers", HumanAnswer(1_999, "ann", {}))
        bench.clock.advance()
        assert [each.dispatch_id for each in bench.replies] == [1_999]


async def test_a_day_of_waiting_takes_few_looks_and_the_first_minute_quick_ones(
    tmp_path: Path,
) -> None:
    async with make_bench(tmp_path) as bench:
        bench.carrier.send([ask(1)])
        started, looks, longest = bench.clock.time, 0, 0.0
        while bench.clock.time < started + 86_400:
            before = bench.clock.time
            assert bench.clock.advance()
            waited, pause = before - started, bench.clock.time - before
            assert pause <= max(0.25, waited / 60) + 1e-6
            looks, longest = looks + 1, max(longest, pause)
        assert looks < 10_000
        assert longest == pytest.approx(10.0)
        write_answer(tmp_path / "answers", YES)
        bench.clock.advance()
        assert bench.replies == [REPLY]


POLICY = AnswerPolicy(("ann", "bob"), ("ann",), {"publish": ("bob", "cy"), "open": ()})


@pytest.mark.parametrize(
    ("step", "by", "user", "problem"),
    [
        ("review", "ann", "ann", ""),
        ("review", "bob", "ann", ""),
        ("review", "ann", "bob", "bob may not answer in the name of ann; [inbox] proxies says who"),
        ("review", "eve", "ann", "eve may not answer at review; these may: ann, bob"),
        ("review", "ann", "eve", "eve may not answer at review; these may: ann, bob"),
        ("review", "cy", "cy", "cy may not answer at review"),
        ("publish", "cy", "cy", ""),
        ("publish", "ann", "ann", "ann may not answer at publish; these may: bob, cy"),
        ("open", "eve", "eve", ""),
    ],
)
def test_who_may(step: str, by: str, user: str, problem: str) -> None:
    found = POLICY.find_problem(step, by, user)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_without_names_everybody_may_in_any_name() -> None:
    assert EVERYBODY.find_problem("review", "ann", "eve") == ""
