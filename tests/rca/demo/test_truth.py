"""The truth is complete: every culprit is a commit since last green, and changes what fails."""

from pathlib import Path

from interlock.rca.demo.world import World
from interlock.system.git import SEED, Git

CODES = {"product": "pb001", "automation": "ab001", "infra": "si001", "flake": "nd001"}


def test_kinds_and_codes_go_together(world: World) -> None:
    assert {each.category for each in world.truth} == set(CODES)
    assert all(each.defect_type == CODES[each.category] for each in world.truth)
    assert len({each.family_id for each in world.truth}) == len(world.truth) == 6
    assert [each.family_id for each in world.truth if each.cascade] == ["channel"]


def test_every_culprit_came_since_last_green(world: World) -> None:
    for each in world.truth:
        if each.category == "flake":
            assert (each.repo, each.commit) == ("", "")
            continue
        folder = world.folder / "repos" / each.repo
        since = Git(folder, SEED).ask("rev-list", "last-green..main").split()
        assert each.commit in since[1:], "the newest commit would be too easy a guess"


def test_the_truth_is_not_told_where_an_analysis_looks(world: World) -> None:
    looked_at = [world.today, world.earlier, *(Path(repo.path) for repo in world.repos)]
    for title in (each.title for each in world.truth):
        for folder in looked_at:
            files = (path for path in folder.rglob("*") if path.is_file())
            assert all(title.encode() not in path.read_bytes() for path in files)
