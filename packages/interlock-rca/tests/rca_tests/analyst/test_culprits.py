"""Culprits in real repositories: the planted commit first, innocents behind it, and no history."""

from pathlib import Path

import msgspec
import pytest

from interlock_rca.analyst.chances import CulpritLead, weigh_with_others
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.stack import locate_frames
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

KEEL = """\
\"\"\"The keel.\"\"\"


class Keel:
    def __init__(self, ballast):
        self.ballast = ballast

    def weigh(self, anchor):
        return self.ballast + anchor

    def depth(self):
        return self.ballast * 2
"""
BROKEN = KEEL.replace("self.ballast + anchor", "self.ballast + anchor + anchor")
SAIL = "def reef(sail, knots):\n    return sail / knots\n"
TEST = "from hull.keel import Keel\n\n\ndef test_weigh():\n    assert Keel(1).weigh(2) == 3\n"
STACK = """\
Traceback (most recent call last):
  File "tests/test_keel.py", line 5, in test_weigh
    assert Keel(1).weigh(2) == 3
  File "hull/keel.py", line 9, in weigh
    return self.ballast + anchor + anchor
ValueError: keel weighs 5
"""
FAILURE = Failure(
    id="a",
    test_name="test_weigh",
    class_name="tests.test_keel",
    type="ValueError",
    message="ValueError: keel weighs 5",
    stack=STACK,
)


class SampleRepository:
    """A repository with a green beginning."""

    def __init__(self, folder: Path) -> None:
        self.git = GitRepo(folder)
        files = {"hull/keel.py": KEEL, "rig/sail.py": SAIL, "tests/test_keel.py": TEST}
        self.green = self.git.commit("Build the boat", {**files, "README.md": "A boat.\n"})

    def repository(self) -> Repository:
        return Repository(Repo(name="boat", path=str(self.git.folder)))

    def leads(self, failure: Failure = FAILURE) -> list[CulpritLead]:
        repository = self.repository()
        commits = repository.list_commits_since(self.green)
        return rank_commits(failure, [CommitRange(repository, commits)])

    def order(self, failure: Failure = FAILURE) -> list[str]:
        return [lead.commit.hash for lead in self.leads(failure)]


@pytest.fixture
def sample(tmp_path: Path) -> SampleRepository:
    return SampleRepository(tmp_path / "boat")


def test_the_commit_that_broke_it_comes_first_and_says_why(sample: SampleRepository) -> None:
    sample.git.commit("Trim the sail", {"rig/sail.py": SAIL.replace("/ knots", "/ (knots + 1)")})
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    sample.git.commit("Say more", {"README.md": "A good boat.\n"})
    first = sample.leads()[0]
    assert first.commit.hash == planted
    assert (first.repo, first.path) == ("boat", "hull/keel.py")
    assert first.clues.keys() == {"named alike", "subject", "likeness", "parts of the name"}
    assert len(first.why) == len(first.clues) - 1, "all but the likeness is told"
    assert 0.5 < first.score <= 1


def test_a_newer_innocent_commit_in_the_same_file_does_not_win(sample: SampleRepository) -> None:
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    later = BROKEN.replace("self.ballast * 2", "self.ballast * 2 + 1")
    innocent = sample.git.commit("Sink deeper", {"hull/keel.py": later})
    assert sample.order()[:2] == [planted, innocent]


@pytest.mark.parametrize(
    "change",
    [
        ("return self.ballast", "# all of it\n        return self.ballast"),
        ('"""The keel."""', '"""The keel of the boat."""'),
    ],
)
def test_words_about_the_code_do_not_win(sample: SampleRepository, change: tuple[str, str]) -> None:
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    comment = sample.git.commit("Explain weigh", {"hull/keel.py": BROKEN.replace(*change)})
    found = sample.leads()
    assert found[0].commit.hash == planted
    result = next(lead for lead in found if lead.commit.hash == comment)
    assert result.is_inert


def test_a_file_that_only_moved_does_not_win(sample: SampleRepository) -> None:
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    sample.git.move("hull/keel.py", "hull/body/keel.py")
    moved = sample.git.commit("Tidy up")
    failure = Failure(
        **{
            **{
                name: getattr(FAILURE, name)
                for name in ("id", "test_name", "class_name", "message")
            },
            "stack": STACK.replace("hull/keel.py", "hull/body/keel.py"),
        }
    )
    order = sample.order(failure)
    assert planted in order
    assert moved not in order or order.index(planted) < order.index(moved)


def test_who_touches_nothing_of_it_is_no_suspect(sample: SampleRepository) -> None:
    sample.git.commit("Say more", {"README.md": "A good boat.\n"})
    assert sample.leads() == []
    assert sample.leads(Failure(id="b", message="it sank")) == []


CHECK = Failure(
    id="c",
    test_name="test_weigh",
    class_name="tests.test_boat",
    type="AssertionError",
    message="AssertionError: assert 'much too heavy' == 'heavy enough'",
    stack="tests/test_boat.py:5: in test_weigh\n    assert Keel(1).weigh(2) == 3\n",
)
LATER_TEST = "\n\n\ndef test_trim():\n    assert Sail(1).trim(2) == 3\n"


def test_a_change_of_other_tests_does_not_win(sample: SampleRepository) -> None:
    sample.git.commit("Add the boat's tests", {"tests/test_boat.py": TEST})
    sample.green = sample.git.commit("Tag it", {"VERSION": "1"})
    planted = sample.git.commit("Count twice", {"hull/keel.py": BROKEN})
    beside = sample.git.commit("Test trimming", {"tests/test_boat.py": TEST + LATER_TEST})
    order = sample.order(CHECK)
    assert order[0] == planted, "the test speaks of what it changed"
    assert beside in order


def test_a_change_of_the_failing_test_itself_wins(sample: SampleRepository) -> None:
    sample.git.commit("Add the boat's tests", {"tests/test_boat.py": TEST})
    sample.green = sample.git.commit("Tag it", {"VERSION": "1"})
    sample.git.commit("Sink deeper", {"hull/keel.py": KEEL.replace("ballast * 2", "ballast * 3")})
    itself = sample.git.commit("Expect more", {"tests/test_boat.py": TEST.replace("== 3", "== 4")})
    assert sample.order(CHECK)[0] == itself


def test_who_brought_the_failing_test_with_its_product_saw_it_pass(
    sample: SampleRepository,
) -> None:
    """What came later broke it: nobody commits what fails at once."""
    raft = "def raft(logs):\n    return logs * 2\n"
    brought = sample.git.commit("Add a raft", {"hull/raft.py": raft, "tests/test_boat.py": TEST})
    planted = sample.git.commit("Count twice", {"hull/keel.py": BROKEN})
    order = sample.order(CHECK)
    assert order[0] == planted
    assert brought not in order[:1]


def test_a_commit_is_followed_through_a_later_rename(sample: SampleRepository) -> None:
    planted = sample.git.commit("Hurry", {"hull/keel.py": BROKEN})
    sample.git.move("hull/keel.py", "hull/body.py")
    test = TEST.replace("hull.keel", "hull.body")
    sample.git.commit("Move the keel", {"tests/test_keel.py": test})
    stack = "tests/test_keel.py:5: in test_weigh\n    assert Keel(1).weigh(2) == 3\n"
    first = sample.leads(msgspec.structs.replace(CHECK, stack=stack))[0]
    assert first.commit.hash == planted
    assert first.path == "hull/body.py"


def test_words_of_every_alphabet_count(sample: SampleRepository) -> None:
    files = {
        "rig/якорь.py": "def поднять(цепь):\n    return цепь\n",
        "rig/帆.py": "def 张帆(绳):\n    return 绳\n",
    }
    sample.git.commit("Name things at home", files)
    sample.green = sample.git.commit("Tag it", {"VERSION": "1"})
    chain = sample.git.commit(
        "Цепь", {"rig/якорь.py": files["rig/якорь.py"].replace("return цепь", "return цепь * 2")}
    )
    rope = sample.git.commit(
        "Sail", {"rig/帆.py": files["rig/帆.py"].replace("return 绳", "return 张帆(绳)")}
    )
    for message, planted in (("цепь слишком длинная", chain), ("无法张帆", rope)):
        first = sample.leads(Failure(id="b", test_name="test_trade", message=message))[0]
        assert first.commit.hash == planted


def test_generated_lines_speak_of_nothing(sample: SampleRepository) -> None:
    sample.git.commit("Add the boat's tests", {"tests/test_boat.py": TEST})
    sample.green = sample.git.commit("Tag it", {"VERSION": "1"})
    sample.git.commit("Keep a report", {"report.xml": f"<a>{'test_weigh weigh keel ' * 99}</a>"})
    (lead,) = sample.leads(CHECK)
    assert lead.score < 0.1
    assert lead.why, "there is always something to say"
    assert lead.clues.keys() == {"changed no code"}


def test_a_file_in_which_only_words_were_changed_does_not_count(sample: SampleRepository) -> None:
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    comment = BROKEN.replace("return self.ballast", "# all of it\n        return self.ballast")
    other = sample.git.commit(
        "Explain and trim", {"hull/keel.py": comment, "rig/sail.py": SAIL + "\nKNOTS = 3\n"}
    )
    found = sample.leads()
    assert found[0].commit.hash == planted
    said = [lead for lead in found if lead.commit.hash == other]
    assert not any("keel" in why for lead in said for why in lead.why)


def test_code_that_nothing_points_at_is_unlikely_but_not_cleared(sample: SampleRepository) -> None:
    sample.git.commit("Trim", {"rig/sail.py": SAIL.replace("/ knots", "/ (knots + 1)")})
    (lead,) = sample.leads(CHECK)
    assert 0 < lead.score < 0.3


def test_what_other_families_point_at_is_likelier(sample: SampleRepository) -> None:
    sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    alone = sample.leads(CHECK)
    for count, words in ((1, "another failure points"), (2, "2 other failures point")):
        (first,) = weigh_with_others(alone, [alone] * count)
        assert first.score > alone[0].score
        assert f"{words} at it too" in first.why
    assert weigh_with_others(alone, [[], []]) == alone


def test_many_others_are_no_more_than_one_witness_each_and_never_certain(
    sample: SampleRepository,
) -> None:
    sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    alone = sample.leads(CHECK)
    scores = [weigh_with_others(alone, [alone] * count)[0].score for count in (0, 1, 2, 4, 90)]
    assert scores == sorted(scores)
    assert scores[-1] < 1


def test_what_others_come_from_needs_more_than_words_in_common(sample: SampleRepository) -> None:
    sail = "def weigh(keel):\n    return keel\n"
    sample.git.commit("Add the boat's tests", {"tests/test_boat.py": TEST})
    sample.green = sample.git.commit("Tag it", {"VERSION": "1"})
    sample.git.commit("Weigh sails", {"rig/hoist.py": sail})
    alone = sample.leads(CHECK)
    assert weigh_with_others(alone, [alone] * 3) == alone


def test_what_broke_elsewhere_by_itself_is_not_what_others_come_from(
    sample: SampleRepository,
) -> None:
    sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    stack = "tests/test_keel.py:5: in test_weigh\n    open(chart)\nE   OSError: no chart\n"
    lost = msgspec.structs.replace(
        FAILURE, type="OSError", message="OSError: no chart", stack=stack
    )
    alone = sample.leads(lost)
    assert weigh_with_others(alone, [sample.leads()] * 2) == alone


def test_leads_are_the_same_every_time(sample: SampleRepository) -> None:
    for number in range(12):
        broken = BROKEN + f"\n\ndef part_{number}():\n    return {number}\n"
        sample.git.commit(f"Add part {number}", {"hull/keel.py": broken})
    assert sample.leads() == sample.leads()
    assert len(sample.leads()) == 12
    scores = [lead.score for lead in sample.leads()[:8]]
    assert scores == sorted(scores, reverse=True)


# No history


def test_without_commits_since_green_there_is_no_lead(sample: SampleRepository) -> None:
    assert sample.leads() == []


@pytest.mark.parametrize("place", ["nowhere", "plain", "empty"])
def test_a_repository_that_cannot_be_read_leads_nowhere(tmp_path: Path, place: str) -> None:
    (tmp_path / "plain").mkdir()
    GitRepo(tmp_path / "empty")
    repository = Repository(Repo(name="boat", path=str(tmp_path / place)))
    assert locate_frames(FAILURE, repository) == []
    assert (
        rank_commits(FAILURE, [CommitRange(repository, repository.list_commits_since(None))]) == []
    )
    assert repository.problems


# Places of the stack


def test_spots_are_the_places_that_exist_the_product_first(sample: SampleRepository) -> None:
    found = locate_frames(FAILURE, sample.repository())
    assert [(spot.path, spot.line, spot.is_test) for spot in found] == [
        ("hull/keel.py", 9, False),
        ("tests/test_keel.py", 5, True),
    ]
    assert found[0].function == "weigh"


def test_places_of_libraries_and_of_nowhere_are_none(sample: SampleRepository) -> None:
    stack = (
        'File "/usr/lib/python3.11/json/decoder.py", line 3, in decode\n'
        'File "gone/away.py", line 1, in f\n'
    )
    assert locate_frames(Failure(id="a", stack=stack), sample.repository()) == []


def test_hostile_stacks_lead_nowhere(sample: SampleRepository) -> None:
    for word in ("../../etc/passwd", "-rf", "hull/keel.py\x00", "*", "a" * 5_000, ":(glob)**"):
        failure = Failure(id="a", stack=f'File "{word}", line 99999999999, in weigh\n')
        assert all(
            spot.path == "hull/keel.py" for spot in locate_frames(failure, sample.repository())
        )


def test_a_renamed_file_that_was_changed_too_is_no_mere_rename(sample: SampleRepository) -> None:
    """A number is a change, though no word is."""
    sample.git.move("hull/keel.py", "hull/keels.py")
    sample.git.write({"hull/keels.py": KEEL.replace("* 2", "* 3")})
    planted = sample.git.commit("Use the plural", {"NOTES": "1"})
    sample.git.commit("Trim", {"rig/sail.py": SAIL.replace("/ knots", "/ (knots + 1)")})
    check = msgspec.structs.replace(CHECK, class_name="tests.test_keel", stack="")
    first = sample.leads(check)[0]
    assert first.commit.hash == planted
    assert any("renamed or removed hull/keel.py" in why for why in first.why)
