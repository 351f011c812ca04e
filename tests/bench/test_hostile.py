"""Text made to be slow, 200,000 characters of it in every field: every reader still answers."""

import pytest

from bench.analyst import cluster_failures, rank_suspects
from bench.classifier import extract_features
from interlock_rca.analyst.similarity import compute_bands, extract_traits
from interlock_rca.analyst.triage import CATEGORIES, triage_failure
from interlock_rca.records import Failure

FIELDS = ("test_name", "class_name", "type", "message", "stack", "log")
BITS = (
    "a",
    "a.",
    "a/",
    "a:",
    "at a.",
    "aB_test",
    "Downloaded /",
    "expected ",
    "#1 (",
    "\x1b[",
    "\0",
)


@pytest.mark.parametrize("bit", BITS)
def test_long_repetitions(bit: str) -> None:
    text = bit * (200_000 // len(bit))
    lines = "\n".join(text[at : at + 200] for at in range(0, len(text), 200))
    failures = [Failure(id=field, **{field: text}) for field in FIELDS]  # type: ignore[arg-type]
    failures.append(Failure(id="lines", log=lines, stack=lines))
    for failure in failures:
        assert triage_failure(failure).category in CATEGORIES
        assert len(rank_suspects(failure, ("a.b.C", "a/b.py", "a.b:c"))) <= 3
        assert len(compute_bands(extract_traits(failure))) < 20
        assert len(extract_features(failure)) < 20_000
    assert len(cluster_failures(failures)) == len(failures)
