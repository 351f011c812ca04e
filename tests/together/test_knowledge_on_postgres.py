"""What rca keeps is the same on a server."""

from pathlib import Path

from interlock.journal.address import PostgresAddress
from rca_tests.worlds.suite_database import Inquiry, failed, investigated, launched, triaged


def test_an_analysis_learns_on_postgresql(tmp_path: Path, postgres: PostgresAddress) -> None:
    inquiry = Inquiry(tmp_path, postgres)
    inquiry.open(launched(failed("a", "f1", bands=(1, -(2**62))), failed("b", "f1", bands=(1,))))
    inquiry.effect(1, triaged(), investigated(1))
    inquiry.effect(2, triaged(), investigated(1))
    assert inquiry.one("select occurrence_count from symptoms") == 2
    assert inquiry.rows("select band from symptom_bands order by 1") == [(-(2**62),), (1,)]
    assert inquiry.faults() == []
