"""What is said of a suspect must be so: each of these said something else once."""

from pathlib import Path

from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.definitions import find_definitions
from interlock_rca.lookups import is_one_test
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

SAIL = "def reef(sail):\n    return sail / 2\n"
REEF_TEST = "from boat.sail import reef\n\n\ndef test_reef():\n    assert reef(4) == 2\n"
REEF = Failure(id="a", test_name="test_reef", class_name="tests.test_sail", message="4 != 2")


def judge(
    folder: Path, before: dict[str, str], *changes: dict[str, str], failure: Failure = REEF
) -> list[CulpritLead]:
    """What is said of each change, in the order they were made."""
    git = GitRepo(folder)
    green = git.commit("Begin", before)
    made = [git.commit(f"Change {number}", change) for number, change in enumerate(changes)]
    repository = Repository(Repo(name="boat", path=str(folder)))
    leads = rank_commits(failure, [CommitRange(repository, repository.list_commits_since(green))])
    return sorted(leads, key=lambda lead: made.index(lead.commit.hash))


def test_a_project_does_not_depend_on_itself(tmp_path: Path) -> None:
    before = {"boat/__init__.py": "", "boat/sail.py": SAIL, "requirements/docs.txt": "boat==1.0\n"}
    failure = Failure(id="a", test_name="test_reef", message="no reef in boat.sail")
    (lead,) = judge(tmp_path, before, {"requirements/docs.txt": "boat==1.1\n"}, failure=failure)
    assert "dependency" not in lead.clues
    failure = Failure(id="a", test_name="test_reef", message="No module named 'oarlock'")
    before = {"requirements.txt": "oarlock==1.0\n", "boat/oarlock.py": ""}
    (lead,) = judge(tmp_path / "b", before, {"requirements.txt": "\n"}, failure=failure)
    assert lead.clues["dependency"] == 1.0, "one that is missing is meant all the same"


def test_what_examples_are_built_with_is_no_dependency_of_the_product(tmp_path: Path) -> None:
    failure = Failure(id="a", test_name="test_reef", message="oarlock broke")
    before = {f"{folder}go.mod": "require oarlock v1.0.0\n" for folder in ("", "_examples/")}
    after = "require oarlock v1.1.0\n"
    example, product = judge(
        tmp_path, before, {"_examples/go.mod": after}, {"go.mod": after}, failure=failure
    )
    assert "dependency" not in example.clues
    assert "dependency" in product.clues


def test_the_folder_of_a_named_module_is_not_named_itself(tmp_path: Path) -> None:
    failure = Failure(id="a", test_name="test_it", message="schooner.mainsail.f is not the same")
    before = {"schooner/__init__.py": "", "schooner/mainsail.py": SAIL}
    package, module = judge(
        tmp_path,
        before,
        {"schooner/__init__.py": "A = 1\n"},
        {"schooner/mainsail.py": "B\n"},
        failure=failure,
    )
    assert package.clues["named alike"] < module.clues["named alike"]
    told = "it changed schooner/mainsail.py, which has the name of something in the failure"
    assert any(why.startswith(told) for why in module.why)
    assert not any("something in the failure" in why for why in package.why)


def test_words_inside_of_a_comment_are_no_code(tmp_path: Path) -> None:
    source = "/**\n     Reefs sails.\n     Twice.\n*/\nint reef(int sail) {\n    return sail;\n}\n"
    words, code, loss = judge(
        tmp_path,
        {"Sail.java": source},
        {"Sail.java": source.replace("Twice", "Thrice")},
        {"Sail.java": source.replace("Twice", "Thrice").replace("return sail", "return 2")},
        {"Sail.java": source.replace("     Twice.\n", "").replace("return sail", "return 2")},
    )
    assert "alters no behaviour" in words.clues
    assert "alters no behaviour" in loss.clues
    assert "alters no behaviour" not in code.clues


def test_what_documents_a_function_is_no_code(tmp_path: Path) -> None:
    source = (
        'def reef(sail):\n    """Reefs.\n\n    Twice.\n    """\n    text = """\n    Two.\n    """\n'
    )
    before = {"boat/sail.py": source}
    words, code = judge(
        tmp_path,
        before,
        {"boat/sail.py": source.replace("Twice", "Thrice")},
        {"boat/sail.py": source.replace("Twice", "Thrice").replace("Two", "Three")},
    )
    assert "alters no behaviour" in words.clues
    assert "alters no behaviour" not in code.clues, "a text is more than words to its function"


def test_what_stands_after_a_function_is_not_in_it(tmp_path: Path) -> None:
    source = "function reef(sail) {\n  return sail / 2;\n}\n\nreef.sizes = [\n  'a'\n];\n"
    test = "const reef = require('./sail');\n\ntest('reefs', () => {\n  reef(4);\n});\n"
    failure = Failure(id="a", test_name="reefs", file="sail.test.js", message="2 != 4")
    before = {"sail.js": source, "sail.test.js": test}
    after, inside = judge(
        tmp_path,
        before,
        {"sail.js": source.replace("'a'", "'b'")},
        {"sail.js": source.replace("'a'", "'b'").replace("/ 2", "/ 4")},
        failure=failure,
    )
    assert "called by the test" not in after.clues
    assert "the test names what it changed: reef" in inside.why


def test_a_call_with_a_function_in_its_brackets_is_no_heading() -> None:
    source = "Boat.prototype = {\n  reef(sail) {\n    each(sail, function (knot) {\n      tie();\n"
    source += "    });\n  },\n};\n"
    assert [each.name for each in find_definitions(source)] == ["reef"]
    bare = "func reef() {\n\tdefer func() {\n\t\ttie()\n\t}()\n}\n"
    assert [each.name for each in find_definitions(bare)] == ["reef"]


def test_addresses_are_nobodys_words(tmp_path: Path) -> None:
    test = REEF_TEST + "    # see https://harbour.example/moorings\n"
    before = {"boat/sail.py": SAIL, "boat/hull.py": "A = 1\n", "tests/test_sail.py": test}
    (lead,) = judge(
        tmp_path, before, {"boat/hull.py": "A = 2  # https://harbour.example/moorings/3\n"}
    )
    assert "words of the test" not in lead.clues


def test_words_of_a_comment_are_not_what_the_code_is_about(tmp_path: Path) -> None:
    before = {"boat/sail.py": SAIL, "boat/hull.py": "A = 1\n"}
    before["tests/test_sail.py"] = REEF_TEST + "    assert mooring(Boat) == jetty\n"
    remark, code = judge(
        tmp_path,
        before,
        {"boat/hull.py": "# the jetty\nA = 2\n"},
        {"boat/hull.py": "# the jetty\nA = mooring\n"},
    )
    assert remark.clues["words of the test"], "it counts all the same"
    assert not any("jetty" in why for why in remark.why)
    assert "it changed code about mooring" in code.why


def test_words_are_told_as_the_test_writes_them(tmp_path: Path) -> None:
    test = REEF_TEST + "    assert looseKnots(Boat) == 3\n"
    before = {"boat/sail.py": SAIL, "boat/hull.py": "A = 1\n", "tests/test_sail.py": test}
    (lead,) = judge(tmp_path / "a", before, {"boat/hull.py": "A = looseknots\n"})
    assert "it changed code about looseKnots" in lead.why
    failure = Failure(id="a", test_name="test_brass_knot")
    (lead,) = judge(tmp_path / "b", before, {"boat/hull.py": "brass = 2\n"}, failure=failure)
    assert "it shares parts of names with the test: brass" in lead.why


def test_who_is_reached_is_only_said_of_a_name_that_one_file_has(tmp_path: Path) -> None:
    sail = "from boat import knot\n\n\ndef reef(sail):\n    return knot.splice(sail)\n"
    knot = "def splice(sail):\n    return 2\n"
    before = {"boat/sail.py": sail, "boat/knot.py": knot, "tests/test_sail.py": REEF_TEST}
    change = {"boat/knot.py": knot.replace("return 2", "return 4")}
    (lead,) = judge(tmp_path / "a", before, change)
    assert "the test reaches what it changed: splice" in lead.why
    before["boat/sail.py"] = sail.replace("import knot", "import knot, rope")
    (lead,) = judge(tmp_path / "b", before | {"boat/rope.py": knot}, change)
    assert "called further away" in lead.clues
    assert not any("reaches" in why for why in lead.why)


def test_a_named_function_is_only_said_to_be_changed_if_its_file_is_meant(tmp_path: Path) -> None:
    knot = "def splice(sail):\n    return 2\n"
    before = {"boat/sail.py": SAIL, "boat/knot.py": knot, "boat/rope.py": knot}
    before["tests/test_sail.py"] = (
        "from boat import knot, rope\n\n\ndef test_reef():\n    rope.f()\n"
    )
    stack = 'File "boat/knot.py", line 2, in splice\n    return 2\nKeyError: 2\n'
    failure = Failure(id="a", test_name="test_reef", message="KeyError: 2", stack=stack)
    other, meant = judge(
        tmp_path,
        before,
        {"boat/rope.py": knot.replace("return 2", "return 4")},
        {"boat/knot.py": knot.replace("return 2", "return 4 - 2")},
        failure=failure,
    )
    assert "called at once" in other.clues
    assert not any("the failure names" in why for why in other.why)
    assert "the failure names what it changed: splice" in meant.why


def test_one_line_among_many_did_not_come_with_the_test(tmp_path: Path) -> None:
    git = GitRepo(tmp_path)
    bare = {"boat/hull.py": "A = 1\n", "boat/sail.py": "", "tests/test_sail.py": "A = 1\n"}
    git.commit("Begin", bare)
    sail = "def reef(sail):\n    return sail.area / 2\n"
    green = git.commit("Reef", {"boat/sail.py": sail, "tests/test_sail.py": REEF_TEST})
    more = "".join(f"area_{number} = area(sail, {number})\n" for number in range(20))
    other = git.commit("Weigh", {"boat/hull.py": f"{more}return sail.area / 2\n"})
    planted = git.commit("Clean up", {"boat/sail.py": sail.replace("area / 2", "area / 3")})
    more = more.replace("area(", "size(")
    git.commit("Weigh less", {"boat/hull.py": more})
    repository = Repository(Repo(name="boat", path=str(tmp_path)))
    leads = rank_commits(REEF, [CommitRange(repository, repository.list_commits_since(green))])
    told = [
        lead.commit.hash
        for lead in leads
        if "it changed lines that came with the failing test" in lead.why
    ]
    assert told == [planted]
    assert sum("took back" in lead.clues for lead in leads) > 1
    assert other not in told


def test_where_a_test_was_checked_out_is_no_part_of_its_name(tmp_path: Path) -> None:
    before = {"boat/hull.js": "A = 1\n", "test/reef.js": "require('../boat/sail');\n"}
    before["boat/sail.js"] = "A = 1\n"
    failure = Failure(id="a", test_name="/home/harbour/nodes/test/reef.js", message="test failed")
    place, used = judge(
        tmp_path,
        before,
        {"boat/hull.js": "harbour = nodes\n"},
        {"boat/sail.js": "A = 2\n"},
        failure=failure,
    )
    assert "parts of the name" not in place.clues
    assert "words of the test" not in place.clues
    assert "used by the test" in used.clues, "the name is the test's file"


def test_a_subtest_and_its_test_are_one() -> None:
    whole, part, other = (
        Failure(id=name, test_name=name, class_name="boat")
        for name in ("TestReef", "TestReef/half", "TestReefing")
    )
    assert is_one_test(whole, part)
    assert is_one_test(part, whole)
    assert not is_one_test(whole, other)
    assert not is_one_test(whole, Failure(id="a", test_name="TestReef/half", class_name="ship"))
