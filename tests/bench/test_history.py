"""The long history is what it says, and a reading that misses commits is no result."""

from pathlib import Path

import pytest

from bench.history import AGAIN, FIRST, make, one_round, read
from bench.report import history_table
from bench.results import Results, Sample


def test_a_short_long_history(tmp_path: Path) -> None:
    repository = tmp_path / "long.git"
    make(repository, commits=60)
    samples = [Sample(*result[:2], 1, result[2]) for result in one_round(repository, 1, commits=60)]
    assert [(one.program, one.measure) for one in samples] == [
        ("git", FIRST),
        ("interlock", FIRST),
        ("interlock", AGAIN),
    ]
    assert all(one.values["read_s"] > 0 for one in samples)
    assert history_table(Results(samples)).count("\n") == 4


def test_a_reading_that_misses_commits_is_refused(tmp_path: Path) -> None:
    repository = tmp_path / "long.git"
    make(repository, commits=20)
    with pytest.raises(ValueError, match="not all commits after the first of 21 were read"):
        read(repository, tmp_path / "cache", commits=21)
