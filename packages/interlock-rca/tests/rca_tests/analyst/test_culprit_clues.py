"""Each clue of the table, on a repository as it was before, the changes made to it, and the clues
that each change must and must not have."""

from pathlib import Path
from typing import NamedTuple

import pytest

from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.culprits import CLUES, CommitRange, rank_commits
from interlock_rca.analyst.scoring import load_model
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

Files = dict[str, str]
SAIL = "def reef(sail):\n    return sail / 2\n"
TEST = "from boat.sail import reef\n\n\ndef test_reef():\n    assert reef(4) == 2\n"
REEF = Failure(id="a", test_name="test_reef", class_name="tests.test_sail", message="4 != 2")
JAVADOC = "/**\n     Reefs sails.\n     Twice.\n*/\nint reef(int sail) {\n    return sail;\n}\n"
DOCSTRING = (
    'def reef(sail):\n    """Reefs.\n\n    Twice.\n    """\n    text = """\n    Two.\n    """\n'
)
WORDS = ("Twice", "Thrice")


class Row(NamedTuple):
    """A repository before, one change, and its clues."""

    before: Files
    change: Files
    has: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    failure: Failure = REEF


def missing(module: str) -> Failure:
    return Failure(id="a", test_name="test_reef", message=f"No module named '{module}'")


def named(*clues: str) -> frozenset[str]:
    return frozenset(clues)


BOAT = {"boat/sail.py": SAIL, "boat/hull.py": "A = 1\n", "tests/test_sail.py": TEST}
DEEPER = {"boat/sail.py": SAIL.replace("/ 2", "/ 4")}
ROWS = {
    "the file that the test is of": Row(
        BOAT, DEEPER, named("subject", "named alike", "likeness", "parts of the name")
    ),
    "a file of the stack": Row(
        BOAT,
        {"boat/hull.py": "A = 2\n"},
        named("named alike"),
        named("subject", "changed no code"),
        Failure(id="a", test_name="test_reef", stack='File "boat/hull.py", line 1, in weigh\n'),
    ),
    "a file that nothing points at": Row(
        BOAT, {"boat/hull.py": "A = 2\n"}, lacks=named("subject", "parts of the name")
    ),
    "a file that is gone": Row(BOAT, {"boat/sail.py": ""}, named("subject")),
    "words of documents": Row(BOAT, {"NOTES": "reef the sail\n"}, named("changed no code")),
    "another test": Row(
        BOAT,
        {"tests/test_hull.py": "def test_hull():\n    assert reef\n"},
        named("changed no code"),
    ),
    "the failing test itself": Row(
        BOAT,
        {"tests/test_sail.py": TEST.replace("== 2", "== 3")},
        named("changed the failing test"),
        named("changed no code"),
    ),
    "words of a comment": Row({"Sail.java": JAVADOC}, {"Sail.java": JAVADOC.replace(*WORDS)}),
    "a comment and code": Row(
        {"Sail.java": JAVADOC},
        {"Sail.java": JAVADOC.replace(*WORDS).replace("return sail", "return 2")},
        named("likeness"),
    ),
    "words of a docstring": Row(
        {"boat/sail.py": DOCSTRING}, {"boat/sail.py": DOCSTRING.replace(*WORDS)}
    ),
    "a text inside of a function": Row(
        {"boat/sail.py": DOCSTRING, "tests/test_sail.py": TEST},
        {"boat/sail.py": DOCSTRING.replace("Two", "Three")},
        named("subject"),
    ),
    "an address": Row(
        {**BOAT, "tests/test_sail.py": f"{TEST}    # see https://harbour.example/moorings\n"},
        {"boat/hull.py": "A = 2  # https://harbour.example/moorings/3\n"},
        lacks=named("likeness"),
    ),
    "where the test was checked out": Row(
        {"boat/hull.js": "A = 1\n", "test/reef.js": "require('../boat/sail');\n"},
        {"boat/hull.js": "harbour = nodes\n"},
        lacks=named("parts of the name", "likeness"),
        failure=Failure(id="a", test_name="/home/harbour/nodes/test/reef.js", message="failed"),
    ),
    "a dependency that is missed": Row(
        {"requirements.txt": "oarlock==1.0\n", "boat/oarlock.py": ""},
        {"requirements.txt": "\n"},
        named("dependency"),
        named("changed no code"),
        missing("oarlock"),
    ),
    "the project's own version": Row(
        {"boat/__init__.py": "", "boat/sail.py": SAIL, "requirements/docs.txt": "boat==1.0\n"},
        {"requirements/docs.txt": "boat==1.1\n"},
        lacks=named("dependency"),
        failure=Failure(id="a", test_name="test_reef", message="no reef in boat.sail"),
    ),
    "what examples are built with": Row(
        {"_examples/go.mod": "require oarlock v1.0.0\n"},
        {"_examples/go.mod": "require oarlock v1.1.0\n"},
        lacks=named("dependency"),
        failure=Failure(id="a", test_name="test_reef", message="oarlock broke"),
    ),
    "a makefile that the failure names": Row(
        {"Makefile": "all:\n\ttrue\n", **BOAT},
        {"Makefile": "all:\n\ttar -c hold\n"},
        named("named by the failure"),
        named("changed no code"),
        Failure(id="a", test_name="boat", message="make: *** [Makefile:2: all] Error 2"),
    ),
}


def judge(folder: Path, row: Row) -> CulpritLead:
    git = GitRepo(folder)
    green = git.commit("Begin", row.before)
    git.commit("Change", row.change)
    repository = Repository(Repo(name="boat", path=str(folder)))
    found = CommitRange(repository, repository.list_commits_since(green))
    (lead,) = rank_commits(row.failure, [found])
    return lead


@pytest.mark.parametrize("name", ROWS)
def test_a_change_has_its_clues_and_no_others(tmp_path: Path, name: str) -> None:
    row = ROWS[name]
    clues = judge(tmp_path, row).clues.keys()
    assert row.has <= clues
    assert not row.lacks & clues


@pytest.mark.parametrize("name", ["words of a comment", "words of a docstring"])
def test_who_only_changes_words_is_inert(tmp_path: Path, name: str) -> None:
    lead = judge(tmp_path, ROWS[name])
    assert lead.is_inert
    assert not lead.clues


def test_every_clue_has_a_weight() -> None:
    assert {clue.name for clue in CLUES} == load_model("culprit").weights.keys()


def test_only_who_takes_back_what_came_with_the_test_has_that_clue(tmp_path: Path) -> None:
    git = GitRepo(tmp_path)
    git.commit("Begin", {"boat/hull.py": "A = 1\n", "boat/sail.py": "", "tests/test_sail.py": "\n"})
    sail = "def reef(sail):\n    return sail.area / 2\n"
    green = git.commit("Reef", {"boat/sail.py": sail, "tests/test_sail.py": TEST})
    git.commit("Weigh", {"boat/hull.py": "A = weigh(hull)\n"})
    planted = git.commit("Clean up", {"boat/sail.py": sail.replace("area / 2", "area / 3")})
    repository = Repository(Repo(name="boat", path=str(tmp_path)))
    leads = rank_commits(REEF, [CommitRange(repository, repository.list_commits_since(green))])
    assert [lead.commit.hash for lead in leads if "took back" in lead.clues] == [planted]
    assert leads[0].commit.hash == planted
