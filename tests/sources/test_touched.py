"""Commits are found by the files of a stack, under every name the files have had."""

from pathlib import Path

from tests.world.git_repo import GitRepo

from interlock.apps.rca.launch import Repo
from interlock.sources.git_log import Change, Commit
from interlock.sources.repository import Repository
from interlock.sources.touched import Touched


def commit(name: str, *changes: Change) -> Commit:
    return Commit(name, "Ada", "", name, changes)


def touching(commits: list[Commit], *words: str) -> list[tuple[str, str, list[str]]]:
    matches = Touched(commits).touching(words)
    return [(one.word, one.path, [found.hash for found in one.things]) for one in matches]


def test_newest_first_and_only_those_that_touched() -> None:
    commits = [
        commit("c", Change("src/shop/cart.py", "M")),
        commit("b", Change("src/shop/till.py", "M")),
        commit("a", Change("src/shop/cart.py", "A"), Change("src/shop/till.py", "A")),
    ]
    assert touching(commits, "shop/cart.py", "shop.till.ring", "gone.py") == [
        ("shop/cart.py", "src/shop/cart.py", ["c", "a"]),
        ("shop.till.ring", "src/shop/till.py", ["b", "a"]),
    ]


def test_a_moved_file_is_known_by_both_names() -> None:
    commits = [
        commit("d", Change("basket.py", "M")),
        commit("c", Change("basket.py", "R", "cart.py", 90)),
        commit("b", Change("cart.py", "R", "old.py", 100)),
        commit("a", Change("old.py", "A")),
    ]
    assert touching(commits, "basket.py") == [("basket.py", "basket.py", ["d", "c", "b", "a"])]
    assert touching(commits, "cart.py") == [("cart.py", "cart.py", ["c", "b"])]


def test_a_copy_does_not_take_the_history_along() -> None:
    commits = [commit("b", Change("new.py", "C", "old.py", 90)), commit("a", Change("old.py", "M"))]
    assert touching(commits, "new.py") == [("new.py", "new.py", ["b"])]


def test_on_a_real_history(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    green = world.commit("Begin", {"shop/cart.py": "a = 1\nb = 2\nc = 3\n", "x.py": "1\n"})
    world.commit("Culprit", {"shop/cart.py": "a = 1\nb = 0\nc = 3\n"})
    world.commit("Else", {"x.py": "2\n"})
    world.move("shop/cart.py", "shop/basket.py")
    world.commit("Move")
    commits = Repository(Repo(name="shop", path=str(world.folder))).commits_since(green)
    (match,) = Touched(commits).touching(["/build/shop/basket.py"])
    assert [one.subject for one in match.things] == ["Move", "Culprit"]
