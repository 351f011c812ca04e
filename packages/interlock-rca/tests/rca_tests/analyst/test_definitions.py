"""Functions by the layout of their source, the row of a table of cases, and words as stems."""

from pathlib import Path

import pytest

from interlock_rca.analyst.change_words import split_into_stems, stem_words
from interlock_rca.analyst.definitions import find_definitions
from interlock_rca.analyst.test_source import find_test_source
from interlock_rca.lookups import is_one_test
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

SOURCES = {
    "go": "package mast\n\nfunc Hoist(sail int) int {\n\treturn sail + 2\n}\n",
    "js": "exports.hoist = function hoist (sail) {\n  return sail + 2\n}\n",
    "java": "public class Mast {\n    public int hoist(final int sail) {\n"
    "        return sail + 2;\n    }\n}\n",
    "rb": "module Boat\n  def self.hoist(sail)\n    sail + 2\n  end\nend\n",
    "rs": "pub fn hoist(sail: i32) -> i32 {\n    sail + 2\n}\n",
    "cs": "public class Mast\n{\n    public int Hoist(int sail)\n    {\n"
    "        return sail + 2;\n    }\n}\n",
    "cpp": "int hoist(int sail)\n{\n    return sail + 2;\n}\n",
}
ROW = '\t\t{"main sail", "large", "slow"},\n'
TABLE = f"""package mast

import "testing"

func TestHoist(t *testing.T) {{
\ttests := []struct{{ name, sail, want string }}{{
\t\t{{"jib", "small", `
a text of several lines
`}},
{ROW}\t}}
\tfor _, tt := range tests {{
\t\tt.Run(tt.name, func(t *testing.T) {{ check(t, tt.sail, tt.want) }})
\t}}
}}

func check(t *testing.T, sail, want string) {{
\tif got := Hoist(sail); got != want {{
\t\tt.Errorf("hoist %q: got %q", sail, got)
\t}}
}}
"""


@pytest.mark.parametrize("language", SOURCES)
def test_functions_are_found_by_their_layout(language: str) -> None:
    source = SOURCES[language]
    hoist = {each.name.casefold(): each for each in find_definitions(source)}["hoist"]
    assert any("sail + 2" in line for line in source.split("\n")[hoist.first : hoist.last])


def test_texts_of_several_lines_end_no_function() -> None:
    (found,) = [each for each in find_definitions(TABLE) if each.name == "TestHoist"]
    ends = TABLE.split("\n").index("}") + 1
    assert found.first < ends <= found.last < TABLE[: TABLE.index("func check")].count("\n") + 1


def test_a_call_with_a_function_in_its_brackets_is_no_heading() -> None:
    source = "Boat.prototype = {\n  reef(sail) {\n    each(sail, function (knot) {\n      tie();\n"
    source += "    });\n  },\n};\n"
    assert [each.name for each in find_definitions(source)] == ["reef"]
    bare = "func reef() {\n\tdefer func() {\n\t\ttie()\n\t}()\n}\n"
    assert [each.name for each in find_definitions(bare)] == ["reef"]


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
    git = GitRepo(tmp_path)
    git.commit("Build", {"mast_test.go": TABLE})
    stack = f"=== RUN   {name}\n    {message}\n--- FAIL: {name} (0.00s)\n"
    failure = Failure(id="a", test_name=name, class_name="boat", message=message, stack=stack)
    repository = Repository(Repo(name="boat", path=str(tmp_path)))
    source = find_test_source(failure, repository, "", ())
    assert source is not None
    assert TABLE.split("\n")[source.rows[0] - 1] == ROW.rstrip("\n")


def test_case_and_number_do_not_tell_words_apart() -> None:
    assert stem_words(["subdomains", "Subdomain", "SUBDOMAIN"]) == {"subdomain"}
    assert split_into_stems(["truncate_lines", "maxWidth"]) == {"truncate", "line", "width"}


def test_a_subtest_and_its_test_are_one() -> None:
    whole, part, other = (
        Failure(id=name, test_name=name, class_name="boat")
        for name in ("TestReef", "TestReef/half", "TestReefing")
    )
    assert is_one_test(whole, part)
    assert is_one_test(part, whole)
    assert not is_one_test(whole, other)
    assert not is_one_test(whole, Failure(id="a", test_name="TestReef/half", class_name="ship"))
