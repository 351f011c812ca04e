"""The measure of large reports."""

from pathlib import Path

from bench.junit import streaming, write_report


def test_the_report_has_the_size_and_the_failures_it_claims(tmp_path: Path) -> None:
    failed = write_report(tmp_path / "r.xml", 300_000)
    text = (tmp_path / "r.xml").read_text()
    assert len(text) >= 300_000
    assert text.count("<failure ") == failed


def test_reading_it_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    found = streaming(tmp_path, 300_000)
    assert set(found) == {"rss_mb", "mb_s"}
    assert min(found.values()) > 0
    assert list(tmp_path.iterdir()) == []
