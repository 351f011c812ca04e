"""Moves, reformats and words are told from behaviour; in doubt it is behaviour."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.records import Repo
from interlock_rca.sources.git.change import judge_by_files, judge_hunks, read_hunks
from interlock_rca.sources.git.history import ChangedFile, Commit
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

CASES: dict[str, list[tuple[str, str | bytes, str | bytes]]] = {
    "behaviour": [
        ("a.py", "x = 1\n", "x = 2\n"),
        ("a.py", "if a:\n    b()\n    c()\n", "if a:\n    b()\nc()\n"),
        ("a.py", "def f(a, b=1):\n", "def f(a: int, b=2):\n"),
        ("a.py", "x = (a,)\n", "x = (a)\n"),
        ("a.py", "x = y[a:b]\n", "x = y[a:c]\n"),
        ("a.yaml", "a:\n  b: 1\n", "a:\nb: 1\n"),
        ("a.js", 'say("a b");\n', 'say("a  b");\n'),
        ("a.js", "ab;\n", "a b;\n"),
        ("a.java", "int x = 1; // one\n", "int x = 2; // one\n"),
        ("a.java", "x\n    * rate;\n", "x\n    * price;\n"),
        ("a.c", "*p = 1;\n", "*p = 2;\n"),
        ("a.py", "# x\n", "x = 1\n"),
        ("a.json", '{"a": 1}\n', '{"a": 2}\n'),
        ("a.txt", "a b\n", "a  b\n"),
        ("a.sh", "#!/bin/sh\n", "#!/bin/bash\n"),
        ("a.py", "a()\nb()\n", "b()\na()\n"),
        ("a.py", "--- a\n", "++ b\n"),
        ("a.py", "f()\n", 'f()\n"""\n\ng()\n"""\n'),
        ("a.py", "f(\n)\n", 'f(\n"""one\ntwo""",\n)\n'),
        ("a.bin", b"\0\1\2", b"\0\1\3"),
    ],
    "whitespace": [
        ("a.java", "int x=1;\n", "int  x = 1 ;\n"),
        ("a.java", "f(a, b);\n", "f(\n    a,\n    b);\n"),
        ("a.py", "x = 1\n", "x = 1   \n\n\n"),
        ("a.py", "x = 1\r\n", "x = 1\n"),
        ("a.py", "x = foo(a, b)\n", "x = foo(\n    a,\n    b,\n)\n"),
        ("a.py", "x = 'a'\n", 'x = "a"\n'),
        ("a.go", "if x {\ny()\n}\n", "if x {\n\ty()\n}\n"),
    ],
    "annotations": [
        ("a.py", "def f(a, b=1):\n", "def f(a: int, b: str = 1) -> dict[str, int]:\n"),
        ("a.py", "import os\n", "import os\nfrom typing import Any\n"),
        ("a.py", "    self.x = {}\n", "    self.x: dict[str, int] = {}\n"),
    ],
    "comments": [
        ("a.py", "# one\nx = 1\n", "# two\nx = 1\n"),
        ("a.py", "x = 1\n", "# why\nx = 1\n"),
        ("A.java", "/**\n * The old words.\n */\n", "/**\n * The new words here.\n */\n"),
        ("a.go", "// one\nx\n", "// two\n\tx\n"),
        ("a.py", "def f():\n    g()\n", 'def f():\n    """\n    Does g.\n    """\n    g()\n'),
        (
            "a.py",
            "def f():\n    g()\n",
            'def f():\n    """Does g.\n\n    And no more.\n    """\n    g()\n',
        ),
    ],
    "documents": [("README.md", "one\n", "two\n"), ("docs/a.rst", "one\n", "two\n")],
    "empty": [("a.py", "x = 1\n", "x = 1\n")],
}


@pytest.mark.parametrize(
    ("kind", "path", "before", "after"),
    [(kind, *case) for kind, cases in CASES.items() for case in cases],
)
def test_the_nature_of_a_change(
    tmp_path: Path, kind: str, path: str, before: str | bytes, after: str | bytes
) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Begin", {path: before, "other.py": "1\n"})
    world.commit("Change", {path: after})
    repository = Repository(Repo(name="shop", path=str(world.folder)))
    (found,) = repository.list_commits_since("HEAD~1")
    nature = repository.read_change(found).nature
    assert nature.kind == kind
    assert nature.is_behavioural is (kind == "behaviour")
    assert nature.why


def test_moves_merges_modes_and_roots(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Begin", {"a.py": "x = 1\ny = 2\nz = 3\n", "b.py": "1\n"})
    world.branch("side")
    world.commit("Side", {"b.py": "2\n"})
    world.checkout("main")
    world.move("a.py", "deep/a.py")
    world.commit("Move")
    world.move("deep/a.py", "c.py")
    world.commit("Move and change", {"c.py": "x = 1\ny = 2\nz = 4\n"})
    (world.folder / "b.py").chmod(0o755)
    world.commit("Mode")
    world.merge("side", "Merge")
    repository = Repository(Repo(name="shop", path=str(world.folder)))
    natures = {
        commit.subject: repository.read_change(commit).nature.kind
        for commit in repository.list_commits_since(None)
    }
    assert natures == {
        "Begin": "behaviour",
        "Side": "behaviour",
        "Move": "moved",
        "Move and change": "behaviour",
        "Mode": "unknown",
        "Merge": "merge",
    }


def test_a_merge_that_changes_lines_on_its_own_is_behaviour(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    lines = [f"x{number} = 1\n" for number in range(30)]
    green = world.commit("Begin", {"a.py": "".join(lines)})
    world.branch("side")
    world.commit("Side", {"a.py": "".join([*lines[:-1], "last = 1\n"])})
    world.checkout("main")
    world.commit("Main", {"a.py": "".join(["first = 1\n", *lines[1:]])})
    world.merge("side", "Merge")
    repository = Repository(Repo(name="shop", path=str(world.folder)))
    clean = repository.list_commits_since(green)[0]
    assert [change.path for change in clean.files] == ["a.py"]
    assert repository.read_change(clean).nature.kind == "merge"
    world.write({"a.py": "".join(["first = 1\n", *lines[1:15], "evil = 1\n", *lines[15:]])})
    world.git("commit", "--quiet", "--all", "--amend", "-m", "Evil merge")
    repository = Repository(Repo(name="shop", path=str(world.folder)))
    assert (
        repository.read_change(repository.list_commits_since(green)[0]).nature.kind == "behaviour"
    )


def test_a_commit_with_more_files_than_are_listed_is_behaviour() -> None:
    nature = judge_by_files(Commit("a", "", "", "", (ChangedFile("README.md", "M"),), 1, 5_000))
    assert nature is not None
    assert nature.why == "it changes 5,001 files"


@given(st.text(max_size=400))
def test_any_text_can_be_judged(text: str) -> None:
    assert judge_hunks(read_hunks(text)).why
    assert judge_hunks(read_hunks(f"+++ b/a.js\n@@ -1 +1,2 @@\n{text}")).why
