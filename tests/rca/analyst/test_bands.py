"""Bands: failures alike share one, strangers do not, and every process makes the same."""

import subprocess
import sys

from hypothesis import given
from tests.rca.analyst.failing import refused, shut, wrong
from tests.rca.analyst.test_likeness import FAILURES

from interlock.rca.analyst.similarity import bands
from interlock.rca.records import Failure


def shares(one: Failure, other: Failure) -> bool:
    return not set(bands(one)).isdisjoint(bands(other))


def test_failures_alike_share_a_band() -> None:
    assert shares(shut(1), shut(2, lid=99, line=80))
    assert shares(shut(1), shut(2, name="Crate"))
    assert shares(refused(1, "cart"), refused(2, "ledger"))


def test_strangers_share_none() -> None:
    assert not shares(shut(1), refused(2, "cart"))
    assert not shares(wrong(1, "Cart", "no"), wrong(2, "Ledger", "no"))


def test_what_tells_nothing_has_none() -> None:
    assert bands(Failure(id="1", test_name="opens", class_name="box.LidTest")) == ()


def test_another_process_makes_the_same() -> None:
    code = (
        "from tests.rca.analyst.failing import shut; "
        "from interlock.rca.analyst.similarity import bands; "
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code + "print(bands(shut(1)))"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path)) + ":."},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert found == [str(bands(shut(1)))] * 2


@given(FAILURES)
def test_bands_fit_a_signed_column_and_rise(failure: Failure) -> None:
    found = bands(failure)
    assert list(found) == sorted(set(found))
    assert all(0 <= band < 1 << 63 for band in found)
