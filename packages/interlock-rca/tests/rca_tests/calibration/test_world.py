"""Planted worlds: real repositories, the same everywhere, and nothing outside of them."""

from pathlib import Path
from typing import Any

import pytest

from interlock.system.errors import SourceError
from interlock.system.git import SEED, Git
from interlock_rca.calibration.scenario import find_scenario
from interlock_rca.calibration.world import plant_worlds
from rca_tests.calibration.worlds import built, small


def test_a_world_is_its_history(tmp_path: Path) -> None:
    output = plant_worlds(built(small()), tmp_path)
    repo = tmp_path / "core"
    assert Git(repo, SEED).read_line("log", "--format=%an|%ae|%aI|%s").splitlines() == [
        "B|b@x|2026-01-02T00:00:00+02:00|Break it",
        "A|a@x|2026-01-01T00:00:00+00:00|Begin",
    ]
    assert (
        output["core"]["break"]
        == output["core"]["HEAD"]
        == Git(repo, SEED).read_line("rev-parse", "main").strip()
    )
    assert output["core"]["green"] == Git(repo, SEED).read_line("rev-parse", "green").strip()
    assert sorted(str(each.relative_to(repo)) for each in repo.rglob("*.py")) == [
        "a.py",
        "d/ü b.py",
    ]
    assert Git(repo, SEED).read_line("status", "--porcelain") == ""
    assert Git(repo, SEED).read_line("fsck", "--strict") == ""


def test_planting_twice_gives_the_same_hashes_and_never_writes_over_anything(
    tmp_path: Path,
) -> None:
    scenario = built(small())
    assert plant_worlds(scenario, tmp_path / "a") == plant_worlds(scenario, tmp_path / "b")
    with pytest.raises(SourceError, match="choose a new one"):
        plant_worlds(scenario, tmp_path / "a")


@pytest.mark.parametrize("name", ["web-shop", "network-daemon"])
def test_shipped_worlds_can_be_planted_and_hold_their_culprits(name: str, tmp_path: Path) -> None:
    scenario = find_scenario(name).scenario
    output = plant_worlds(scenario, tmp_path)
    for cause in scenario.rcas:
        if cause.culprit:
            repo, _, commit = cause.culprit.partition("@")
            assert Git(tmp_path / repo, SEED).read_line(
                "show", "--stat", "--format=", output[repo][commit]
            )


def commit(**fields: Any) -> dict[str, Any]:
    return {"author": "A <a@x>", "date": "2026-01-03T00:00:00Z", "message": "m", **fields}


@pytest.mark.parametrize(
    "world",
    [
        *(
            {"core": [commit(files={path: ""})]}
            for path in (
                "../out",
                "/etc/x",
                "a/../b",
                ".git/config",
                "a/.GIT/hooks/x",
                "",
                "a//b",
                "a\nb",
                'a"b',
                "a\\b",
                "x" * 1001,
            )
        ),
        {"core": [commit(files={"a": "", "a/b": ""})]},
        {"core": [commit(author="A")]},
        {"core": [commit(author="A <a@x>\ncommitter X <x@x> 0 +0000")]},
        {"core": [commit(date="yesterday")]},
        {"core": [commit(date="2026-01-03T00:00:00")]},
        {"core": [commit(message=" ")]},
        {"core": [commit(remove=["gone"])]},
        {"core": [commit(tags=["../x"])]},
        {"core": [commit(), commit(date="2025-01-01T00:00:00Z")]},
        {"../core": [commit()]},
        {"core.lock": [commit()]},
        {"core": []},
    ],
    ids=range(23),
)
def test_what_would_leave_the_repository_is_not_planted(
    world: dict[str, Any], tmp_path: Path
) -> None:
    plain = small()
    plain["worlds"] = world
    with pytest.raises(SourceError, match="cannot be planted"):
        plant_worlds(built(plain), tmp_path / "in")
    assert list(tmp_path.iterdir()) == []
