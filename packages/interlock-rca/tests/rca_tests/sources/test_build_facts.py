"""What properties tell about a build."""

import pytest

from interlock_rca.records import Launch
from interlock_rca.sources.build_facts import add_build_facts, filter_facts


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("git.commit", "commit"),
        ("GITHUB_SHA", "commit"),
        ("env.GIT_COMMIT", "commit"),
        ("commit", "commit"),
        ("GITHUB_HEAD_REF", "branch"),
        ("branch", "branch"),
        ("BUILD_NUMBER", "version"),
        ("version", "version"),
        ("git-url", "remote"),
        ("BUILD_URL", "ci_url"),
    ],
)
def test_the_usual_names_are_known_however_they_are_written(name: str, field: str) -> None:
    assert getattr(add_build_facts(Launch(launch_id="1"), {name: "v"}), field) == "v"


def test_better_names_come_first_and_what_is_known_stays() -> None:
    output = {
        "build_number": "77",
        "version": "1.2",
        "java.version": "17",
        "branch": "refs/heads/x",
    }
    found = add_build_facts(Launch(launch_id="1", commit="known"), output | {"commit": "new"})
    assert (found.version, found.branch, found.commit) == ("1.2", "x", "known")


@pytest.mark.parametrize(
    "name", ["DB_PASSWORD", "GITHUB_TOKEN", "client-secret", "aws.access.key", "Authorization"]
)
def test_what_is_secret_by_name_is_not_taken_over(name: str) -> None:
    assert filter_facts({name: "s", "author": "mo"}) == {"author": "mo"}


def test_facts_are_bounded() -> None:
    assert filter_facts({"class.path": "x" * 301}) == {}
    assert len(filter_facts({f"p{n}": "v" for n in range(1000)})) == 200
