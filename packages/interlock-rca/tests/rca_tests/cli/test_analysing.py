"""The terms of an analysis: the command line overrules what a file or an earlier run said."""

import pytest

from interlock_rca.config import RcaConfig, change_config
from interlock_rca.records import Repo

REPOS = tuple(Repo(name=name, path=name) for name in ("shop", "tests"))


@pytest.mark.parametrize(
    ("words", "greens"),
    [
        ([], {"shop": "v1", "tests": "v2"}),
        (["shop=v3"], {"shop": "v3", "tests": "v2"}),
        (["v3"], {"": "v3"}),
        (["v3", "tests=v4"], {"": "v3", "tests": "v4"}),
    ],
)
def test_the_last_green_revision_that_was_typed_counts(
    words: list[str], greens: dict[str, str]
) -> None:
    before = RcaConfig(repos=REPOS, last_green={"shop": "v1", "tests": "v2"})
    assert change_config(before, None, None, words).last_green == greens
