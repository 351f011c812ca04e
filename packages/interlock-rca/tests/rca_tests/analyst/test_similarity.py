"""Similarity: what is alike, what is not, and laws that hold for any two failures.

Bands: failures alike share one, strangers do not, and every process makes the same.
"""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.similarity import (
    compare_failures,
    compute_bands,
    decode_traits,
    encode_traits,
    extract_traits,
    score_similarity,
)
from interlock_rca.records import Failure
from rca_tests.analyst.failing import FAILURES, refused, shut, wrong


def like(one: Failure, other: Failure) -> float:
    return compare_failures(extract_traits(one), extract_traits(other)).score


def test_the_same_again_with_another_number() -> None:
    found = compare_failures(extract_traits(shut(1)), extract_traits(shut(2, lid=8)))
    assert found.score > 0.99
    assert found.why.startswith("type, message and frames 1.00, test names 1.00, innermost product")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (shut(1), shut(2, name="Crate")),
        (shut(1), shut(2, line=99)),
        (refused(1, "cart"), refused(2, "ledger")),
    ],
    ids=["another test", "a moved line", "one set-up"],
)
def test_one_cause(one: Failure, other: Failure) -> None:
    assert like(one, other) > 0.7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (shut(1), refused(2, "box")),
        (wrong(1, "Cart", "expected:<1> was:<2>"), wrong(2, "Ledger", "expected:<5> was:<6>")),
        (wrong(1, "Cart", ""), wrong(2, "Ledger", "")),
    ],
    ids=["another error", "plain assertions", "bare assertions"],
)
def test_two_causes(one: Failure, other: Failure) -> None:
    assert like(one, other) < 0.35


def test_a_failure_that_tells_nothing_is_like_nothing() -> None:
    silent = Failure(id="1", test_name="test_open", class_name="box.LidTest")
    assert like(silent, silent) == 0


def test_where_there_is_nothing_else_the_log_speaks() -> None:
    log = "starting\nERROR ledger {} of region north cannot be reached, giving up\n"
    one, other = (Failure(id="1", log=log.format(number)) for number in (7, 8))
    assert like(one, other) > 0.5
    assert like(one, Failure(id="2", log="ERROR oven is cold\n")) < 0.1


@given(FAILURES, FAILURES)
def test_likeness_is_a_share_and_symmetric(one: Failure, other: Failure) -> None:
    left, right = extract_traits(one), extract_traits(other)
    assert 0 <= score_similarity(left, right) <= 1
    assert (
        score_similarity(left, right)
        == score_similarity(right, left)
        == compare_failures(left, right).score
    )


@given(FAILURES, FAILURES, st.floats(0.05, 0.95))
def test_less_than_asked_for_is_nothing_and_all_else_is_as_it_is(
    one: Failure, other: Failure, least: float
) -> None:
    left, right = extract_traits(one), extract_traits(other)
    found = score_similarity(left, right)
    assert score_similarity(left, right, least) == (found if found >= least else 0.0)


@given(FAILURES)
def test_traits_are_kept_and_restored(failure: Failure) -> None:
    known = extract_traits(failure)
    assert decode_traits(encode_traits(known)) == known
    assert encode_traits(decode_traits(encode_traits(known))) == encode_traits(known)


def shares(one: Failure, other: Failure) -> bool:
    return not set(compute_bands(extract_traits(one))).isdisjoint(
        compute_bands(extract_traits(other))
    )


def test_failures_alike_share_a_band() -> None:
    assert shares(shut(1), shut(2, lid=99, line=80))
    assert shares(shut(1), shut(2, name="Crate"))
    assert shares(refused(1, "cart"), refused(2, "ledger"))


def test_strangers_share_none() -> None:
    assert not shares(shut(1), refused(2, "cart"))
    assert not shares(wrong(1, "Cart", "no"), wrong(2, "Ledger", "no"))


def test_what_tells_nothing_has_none() -> None:
    assert (
        compute_bands(extract_traits(Failure(id="1", test_name="opens", class_name="box.LidTest")))
        == ()
    )


def test_another_process_makes_the_same() -> None:
    code = (
        "from rca_tests.analyst.failing import shut; "
        "from interlock_rca.analyst.similarity import compute_bands, extract_traits; "
    )
    found = subprocess.run(
        [sys.executable, "-c", code + "print(compute_bands(extract_traits(shut(1))))"],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(filter(None, sys.path)) + ":."},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.strip()
    assert found == str(compute_bands(extract_traits(shut(1))))


@given(FAILURES)
def test_bands_fit_a_signed_column_and_rise(failure: Failure) -> None:
    found = compute_bands(extract_traits(failure))
    assert list(found) == sorted(set(found))
    assert all(0 <= band < 1 << 63 for band in found)


@pytest.mark.parametrize(
    ("message", "other"),
    [
        ("Ожидался статус заказа оплачен, получен отменён {}", "База данных недоступна сегодня {}"),
        ("订单状态应为已支付 实际为已取消 {}", "数据库连接已经关闭 请稍后再试 {}"),
        ("Αναμενόταν πληρωμένη παραγγελία, βρέθηκε ακυρωμένη {}", "δεν απαντά πλέον {}"),
    ],
)
def test_words_of_all_scripts_count(message: str, other: str) -> None:
    one, again, else_ = (
        extract_traits(Failure(id=str(at), test_name=f"test_{name}", message=text.format(at)))
        for at, (name, text) in enumerate([("a", message), ("b", message), ("c", other)], 11)
    )
    assert len(one.own_words) > 4
    assert score_similarity(one, again) > 0.5 > score_similarity(one, else_)
