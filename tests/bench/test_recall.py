"""The measure of recall, in small: it answers, and it notices wrong answers."""

from pathlib import Path

from bench import recall
from interlock_rca.analyst.similarity import extract_traits, score_similarity


def test_speeds(tmp_path: Path) -> None:
    found = recall.speeds(tmp_path, symptoms=3_000, clustered=400)
    assert found["right_share"] > 0.95
    assert 10 <= found["families"] <= 40
    assert all(found[name] > 0 for name in ("exact_ms", "fuzzy_ms", "cluster_s"))


def test_failures_of_one_cause_differ_but_are_alike() -> None:
    one, again, other = recall.failure(3, 1), recall.failure(3, 2), recall.failure(4, 1)
    assert one.message != again.message
    assert (
        score_similarity(extract_traits(one), extract_traits(again))
        > 0.7
        > score_similarity(extract_traits(one), extract_traits(other))
    )
