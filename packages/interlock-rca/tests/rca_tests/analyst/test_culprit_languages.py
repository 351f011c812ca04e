"""From the failing test's own file and name to the code it is about, in several languages, without
a stack that leads into the product."""

from pathlib import Path
from typing import NamedTuple

import pytest

from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.definitions import find_definitions
from interlock_rca.analyst.imports import ImportGraph
from interlock_rca.analyst.mentions import collect_mentions
from interlock_rca.analyst.scene import FailureScene
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo


class Language(NamedTuple):
    """A little product in one language: two files, a test of the first, and how its runner says
    that it failed."""

    code: tuple[str, str]
    broken: tuple[str, str]
    """What is changed in the first file."""
    other: tuple[str, str]
    test: tuple[str, str]
    failure: Failure


GO = Language(
    ("mast/mast.go", "package mast\n\nfunc Hoist(sail int) int {\n\treturn sail + 2\n}\n"),
    ("sail + 2", "sail + 3"),
    ("mast/rope.go", "package mast\n\nfunc Splice(rope int) int {\n\treturn rope * 2\n}\n"),
    (
        "mast/mast_test.go",
        (
            'package mast\n\nimport "testing"\n\nfunc TestHoist(t *testing.T) {\n'
            '\tif got := Hoist(1); got != 3 {\n\t\tt.Errorf("got %d", got)\n\t}\n}\n'
        ),
    ),
    Failure(
        id="go",
        test_name="TestHoist",
        class_name="example.org/boat/mast",
        message="Failed",
        stack="=== RUN   TestHoist\n    mast_test.go:7: got 4\n--- FAIL: TestHoist (0.00s)\n",
    ),
)
SCRIPT = Language(
    ("lib/mast.js", "exports.hoist = function hoist (sail) {\n  return sail + 2\n}\n"),
    ("sail + 2", "sail + 3"),
    ("lib/rope.js", "exports.splice = function splice (rope) {\n  return rope * 2\n}\n"),
    (
        "test/rigging.js",
        (
            "var mast = require('../lib/mast')\n\ndescribe('rigging', function () {\n"
            "  it('goes up', function () {\n    assert.equal(mast.hoist(1), 3)\n  })\n})\n"
        ),
    ),
    Failure(
        id="js",
        test_name="goes up",
        class_name="rigging",
        type="AssertionError",
        message="4 == 3",
    ),
)
JAVA = Language(
    (
        "src/main/java/org/boat/Mast.java",
        (
            "package org.boat;\n\npublic class Mast {\n    public int hoist(final int sail) {\n"
            "        return sail + 2;\n    }\n}\n"
        ),
    ),
    ("sail + 2", "sail + 3"),
    (
        "src/main/java/org/boat/Rope.java",
        (
            "package org.boat;\n\npublic class Rope {\n    public int splice(final int rope) {\n"
            "        return rope * 2;\n    }\n}\n"
        ),
    ),
    (
        "src/test/java/org/boat/RiggingTest.java",
        (
            "package org.boat;\n\nclass RiggingTest {\n    @Test\n    void goesUp() {\n"
            "        assertEquals(3, new Mast().hoist(1));\n    }\n}\n"
        ),
    ),
    Failure(
        id="java",
        test_name="goesUp()",
        class_name="org.boat.RiggingTest",
        type="org.opentest4j.AssertionFailedError",
        message="expected: <3> but was: <4>",
    ),
)
RUBY = Language(
    ("lib/boat/mast.rb", "module Boat\n  def self.hoist(sail)\n    sail + 2\n  end\nend\n"),
    ("sail + 2", "sail + 3"),
    ("lib/boat/rope.rb", "module Boat\n  def self.splice(rope)\n    rope * 2\n  end\nend\n"),
    (
        "spec/rigging_spec.rb",
        (
            "require 'boat/mast'\n\ndescribe 'rigging' do\n  it 'goes up' do\n"
            "    expect(Boat.hoist(1)).to eq(3)\n  end\nend\n"
        ),
    ),
    Failure(id="rb", test_name="rigging goes up", message="expected: 3\n got: 4"),
)
RUST = Language(
    ("src/mast.rs", "pub fn hoist(sail: i32) -> i32 {\n    sail + 2\n}\n"),
    ("sail + 2", "sail + 3"),
    ("src/rope.rs", "pub fn splice(rope: i32) -> i32 {\n    rope * 2\n}\n"),
    (
        "tests/rigging.rs",
        "use boat::mast::hoist;\n\n#[test]\nfn goes_up() {\n    assert_eq!(hoist(1), 3);\n}\n",
    ),
    Failure(
        id="rs",
        test_name="goes_up",
        message="assertion `left == right` failed\n left: 4\n right: 3",
    ),
)
SHARP = Language(
    (
        "Boat/Mast.cs",
        (
            "namespace Boat\n{\n    public class Mast\n    {\n        public int Hoist(int sail)\n"
            "        {\n            return sail + 2;\n        }\n    }\n}\n"
        ),
    ),
    ("sail + 2", "sail + 3"),
    (
        "Boat/Rope.cs",
        (
            "namespace Boat\n{\n    public class Rope\n    {\n        public int Splice(int rope)\n"
            "        {\n            return rope * 2;\n        }\n    }\n}\n"
        ),
    ),
    (
        "Boat.Tests/RiggingTests.cs",
        (
            "namespace Boat.Tests\n{\n    public class RiggingTests\n    {\n        [Fact]\n"
            "        public void GoesUp()\n        {\n"
            "            Assert.Equal(3, new Mast().Hoist(1));\n        }\n    }\n}\n"
        ),
    ),
    Failure(
        id="cs",
        test_name="GoesUp",
        class_name="Boat.Tests.RiggingTests",
        message="Assert.Equal() Failure\nExpected: 3\nActual:   4",
    ),
)
NATIVE = Language(
    ("src/mast.cpp", '#include "mast.h"\n\nint hoist(int sail)\n{\n    return sail + 2;\n}\n'),
    ("sail + 2", "sail + 3"),
    ("src/rope.cpp", '#include "rope.h"\n\nint splice(int rope)\n{\n    return rope * 2;\n}\n'),
    (
        "tests/rigging_test.cpp",
        '#include "mast.h"\n\nTEST(Rigging, GoesUp)\n{\n    EXPECT_EQ(hoist(1), 3);\n}\n',
    ),
    Failure(
        id="cpp",
        test_name="GoesUp",
        class_name="Rigging",
        message="Expected equality of these values:\n  hoist(1)\n    Which is: 4\n  3",
    ),
)
LANGUAGES = [GO, SCRIPT, JAVA, RUBY, RUST, SHARP, NATIVE]


def rank(folder: Path, green: str, failure: Failure) -> list[CulpritLead]:
    repository = Repository(Repo(name="boat", path=str(folder)))
    return rank_commits(failure, [CommitRange(repository, repository.list_commits_since(green))])


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.failure.id)
def test_a_check_without_a_stack_leads_to_the_code_it_is_about(
    tmp_path: Path, language: Language
) -> None:
    git = GitRepo(tmp_path / "boat")
    (path, code), (other, rope) = language.code, language.other
    git.commit("Build the boat", {path: code, other: rope, "NOTES": "1"})
    git.commit("Test the rigging", dict([language.test]))
    green = git.commit("Note it", {"NOTES": "2"})
    git.commit("Tighten the rope", {other: rope.replace("* 2", "* 4")})
    planted = git.commit("Clean up", {path: code.replace(*language.broken)})
    git.commit("Loosen the rope", {other: rope.replace("* 2", "* 3")})
    first, *others = rank(git.folder, green, language.failure)
    assert first.commit.hash == planted, [(each.commit.subject, each.clues) for each in others]
    assert first.score > 2 * max(each.score for each in others)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.failure.id)
def test_a_lone_commit_beside_the_failing_test_is_a_suspect(
    tmp_path: Path, language: Language
) -> None:
    git = GitRepo(tmp_path / "boat")
    path, code = language.code
    green = git.commit("Build the boat", dict([language.code, language.other, language.test]))
    planted = git.commit("Clean up", {path: code.replace(*language.broken)})
    (only,) = rank(git.folder, green, language.failure)
    assert only.commit.hash == planted
    assert only.score > 0.5
    assert only.why, "and it says why"


def test_a_cause_two_imports_away_is_reached(tmp_path: Path) -> None:
    """The test calls what calls what was changed."""
    git = GitRepo(tmp_path / "boat")
    files = {
        "boat/winch.py": "def wind(turns):\n    return turns * 2\n",
        "boat/mast.py": "from boat.winch import wind\n\ndef hoist(sail):\n    return wind(sail)\n",
        "boat/api.py": "from .mast import hoist\n\ndef sail_away(sail):\n    return hoist(sail)\n",
        "boat/lamp.py": "def shine(oil):\n    return oil * 2\n",
        "tests/test_api.py": "from boat.api import sail_away\n\n\ndef test_away():\n"
        "    assert sail_away(1) == 2\n",
    }
    green = git.commit("Build the boat", files)
    git.commit("Shine", {"boat/lamp.py": files["boat/lamp.py"].replace("2", "3")})
    planted = git.commit("Hurry", {"boat/winch.py": files["boat/winch.py"].replace("2", "3")})
    git.commit("Shine more", {"boat/lamp.py": files["boat/lamp.py"].replace("2", "4")})
    said = "AssertionError: assert 3 == 2\n +  where 3 = sail_away(1)"
    failure = Failure(
        id="a",
        test_name="test_away",
        class_name="tests.test_api",
        type="AssertionError",
        message=said,
    )
    first = rank(git.folder, green, failure)[0]
    assert first.commit.hash == planted
    repository = Repository(Repo(name="boat", path=str(git.folder)))
    reach = ImportGraph(repository, repository.tip).find_reach(["tests/test_api.py"])
    assert reach == {
        "tests/test_api.py": 0,
        "boat/api.py": 1,
        "boat/mast.py": 2,
        "boat/winch.py": 3,
    }
    scene = FailureScene(failure, collect_mentions(failure), repository, "")
    steps = [scene.calls[name] for name in ("sail_away", "hoist", "wind")]
    assert steps == sorted(steps)
    assert "shine" not in scene.calls


def test_what_a_test_uses_is_kept_for_the_next_analysis(tmp_path: Path) -> None:
    git = GitRepo(tmp_path / "boat")
    git.commit("Build", {"lamp.js": "exports.a = 1\n", "a.test.js": "require('./lamp')\n"})
    cache = tmp_path / "cache"
    repo = Repo(name="boat", path=str(git.folder))
    first = Repository(repo, cache=cache)
    assert ImportGraph(first, first.tip).find_reach(["a.test.js"]) == {"a.test.js": 0, "lamp.js": 1}
    again = Repository(repo, cache=cache)
    assert b"lamp.js" in (again.find_derived("imports 1", again.tip) or b"")
    assert ImportGraph(again, again.tip).list_imports("a.test.js") == ("lamp.js",)
    again.keep_derived("imports 1", again.tip, b"no graph")
    broken = Repository(repo, cache=cache)
    assert ImportGraph(broken, broken.tip).list_imports("a.test.js") == ("lamp.js",)


TABLE = """package mast

import "testing"

func TestHoist(t *testing.T) {
\ttests := []struct{ name, sail, want string }{
\t\t{"jib", "small", `
a text of several lines
`},
\t\t{"main sail", "large", "slow"},
\t}
\tfor _, tt := range tests {
\t\tt.Run(tt.name, func(t *testing.T) { check(t, tt.sail, tt.want) })
\t}
}

func check(t *testing.T, sail, want string) {
\tif got := Hoist(sail); got != want {
\t\tt.Errorf("hoist %q: got %q", sail, got)
\t}
}
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("TestHoist/main_sail", 'mast_test.go:19: got "fast"'),
        ("TestHoist", 'mast_test.go:19: hoist "large": got "fast", want "slow"'),
    ],
)
def test_the_row_of_a_table_of_cases_is_what_failed(
    tmp_path: Path, name: str, message: str
) -> None:
    """Who wrote the row wrote the code it is about: its later writer is suspected, not the one of
    the rest of the table."""
    git = GitRepo(tmp_path / "boat")
    code = 'package mast\n\nfunc Hoist(sail string) string {\n\tif sail == "small" {\n'
    code += '\t\treturn quickly(sail)\n\t}\n\treturn "fast"\n}\n'
    row = '\t\t{"main sail", "large", "slow"},\n'
    git.commit("Build", {"mast.go": code, "mast_test.go": TABLE.replace(row, "")})
    fixed = code.replace('return "fast"', "return carefully(sail)")
    git.commit("Hoist large sails slowly", {"mast.go": fixed, "mast_test.go": TABLE})
    green = git.commit("Note it", {"NOTES": "1"})
    other = fixed.replace("quickly(sail)", "quickly(sail + sail)")
    git.commit("Hurry the jib", {"mast.go": other})
    planted = git.commit("Clean up", {"mast.go": other.replace("carefully(sail)", '"fast"')})
    stack = f"=== RUN   {name}\n    {message}\n--- FAIL: {name} (0.00s)\n"
    failure = Failure(
        id="a", test_name=name, class_name="example.org/boat", message=message, stack=stack
    )
    repository = Repository(Repo(name="boat", path=str(git.folder)))
    scene = FailureScene(failure, collect_mentions(failure), repository, "")
    assert TABLE.split("\n")[scene.test.rows[0] - 1] == row.rstrip("\n")
    first = rank(git.folder, green, failure)[0]
    assert first.commit.hash == planted
    assert "it changed lines that came with the failing test" in first.why


def test_texts_of_several_lines_end_no_function() -> None:
    (found,) = [each for each in find_definitions(TABLE) if each.name == "TestHoist"]
    ends = TABLE.split("\n").index("}") + 1
    assert found.first < ends <= found.last < TABLE[: TABLE.index("func check")].count("\n") + 1


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.failure.id)
def test_functions_are_found_by_their_layout(language: Language) -> None:
    found = {each.name.casefold(): each for each in find_definitions(language.code[1])}
    hoist = found["hoist"]
    lines = language.code[1].split("\n")
    assert any("sail + 2" in line for line in lines[hoist.first : hoist.last])
