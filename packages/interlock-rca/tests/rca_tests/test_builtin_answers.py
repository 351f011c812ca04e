"""The built-in analyst at work: real repositories, a real store, no agent.

Set-up failures: what fails before the test begins, in the words of many frameworks.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.journal.database import open_writer
from interlock_rca.builtin_answers import is_setup_failure
from interlock_rca.config import RcaConfig
from interlock_rca.knowledge.causes import DAY, set_rca_status, sweep_dormant
from interlock_rca.records import Failure, Repo
from interlock_rca.steps import F3, F5
from rca_tests.analyst.test_culprits import BROKEN, FAILURE, KEEL, STACK, SampleRepository
from rca_tests.worlds.analysis_world import (
    APPROVE,
    CAUSE,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)
from tests.world.git_repo import GitRepo


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    return AnalysisWorld(tmp_path)


def weigh(name: str = "test_weigh", **more: Any) -> Failure:
    """The planted failure, as a source tells it."""
    given = {"class_name": "tests.test_keel", "message": FAILURE.message, "stack": STACK}
    return Failure(id=name, test_name=name, **given | more)


def terms(*folders: Path, green: str = "", **more: Any) -> RcaConfig:
    repos = tuple(Repo(name=folder.name, path=str(folder), purpose="floats") for folder in folders)
    return RcaConfig(repos=repos, last_green={"": green} if green else {}, **more)


def approve_all(room: AnalysisWorld, agreed: RcaConfig, run_id: int = 1) -> None:
    for question in room.questions().values():
        room.say(question, **APPROVE)
    room.work_on(None, agreed, run_id=run_id)


IMPORT = """\
tests/test_keel.py:1: in <module>
    from hull.keel import Keel
hull/keel.py:1: in <module>
    import lead_ballast
E   ModuleNotFoundError: No module named 'lead_ballast'
"""


@pytest.mark.parametrize("is_new", [True, False])
def test_the_environment_is_not_to_blame_for_a_new_line(
    room: AnalysisWorld, tmp_path: Path, is_new: bool
) -> None:
    sample = SampleRepository(tmp_path / "boat")
    planted = sample.git.commit("Buy ballast", {"hull/keel.py": f"import lead_ballast\n{KEEL}"})
    later = sample.git.commit("Say more", {"README.md": "A good boat.\n"})
    sample.git.commit("Say it all", {"README.md": "A very good boat.\n"})
    missing = "ModuleNotFoundError: No module named 'lead_ballast'"
    room.take_in(launch(weigh(message=missing, type="ModuleNotFoundError", stack=IMPORT)))
    agreed = terms(sample.git.folder, green=sample.green if is_new else later)
    room.work_on(None, agreed)
    (found,) = room.findings(agreed).cases
    assert (found.category == "product") is is_new
    assert [each.commit for each in found.suspects][:1] == ([planted] if is_new else [])


@pytest.mark.parametrize(("path", "kind"), [("tests/sea.csv", "infra"), ("tests/lake.csv", "")])
def test_a_file_that_git_has_was_lost_where_the_tests_ran(
    room: AnalysisWorld, tmp_path: Path, path: str, kind: str
) -> None:
    sample = SampleRepository(tmp_path / "boat")
    sample.git.commit("Chart the sea", {"tests/sea.csv": "salt\n"})
    sample.green = sample.git.commit("Tag it", {"VERSION": "1"})
    sample.git.commit("Say more", {"README.md": "A good boat.\n"})
    lost = f"FileNotFoundError: [Errno 2] No such file or directory: '/ci/boat/{path}'"
    stack = f"tests/test_keel.py:5: in test_weigh\n    open(path)\nE   {lost}\n"
    room.take_in(launch(weigh(message=lost, type="FileNotFoundError", stack=stack)))
    agreed = terms(sample.git.folder, green=sample.green)
    room.work_on(None, agreed)
    (found,) = room.findings(agreed).cases
    assert (found.category == "infra") is (kind == "infra")


def test_the_planted_commit_is_the_suspect_and_evidence_is_there(
    room: AnalysisWorld, tmp_path: Path
) -> None:
    sample = SampleRepository(tmp_path / "boat")
    sample.git.commit("Say more", {"README.md": "A good boat.\n"})
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    room.take_in(launch(weigh()))
    agreed = terms(sample.git.folder, green=sample.green)
    assert room.work_on(None, agreed) == "waiting"
    (found,) = room.findings(agreed).cases
    assert found.suspects[0].commit == planted
    assert planted[:12] in found.message
    assert found.evidence
    assert {each.verdict for each in found.evidence} == {"found"}
    assert found.status == "investigated"
    approve_all(room, agreed)
    assert room.statuses() == {"C1": "closed"}
    assert room.faults() == []


@pytest.mark.parametrize("place", ["gone", "empty", "none"])
def test_without_a_history_it_says_so_and_a_human_sees_it(
    room: AnalysisWorld, tmp_path: Path, place: str
) -> None:
    if place == "empty":
        GitRepo(tmp_path / place)
    agreed = RcaConfig() if place == "none" else terms(tmp_path / place)
    room.take_in(launch(weigh()))
    assert room.work_on(None, agreed) == "waiting"
    (found,) = room.findings(agreed).cases
    assert (found.step, found.suspects) == (F5, ())
    assert found.score is None or found.score <= 0.5
    assert room.faults() == []


def test_nothing_changed_since_green(room: AnalysisWorld, tmp_path: Path) -> None:
    sample = SampleRepository(tmp_path / "boat")
    room.take_in(launch(weigh()))
    agreed = terms(sample.git.folder, green=sample.green)
    room.work_on(None, agreed)
    (found,) = room.findings(agreed).cases
    assert found.suspects == ()
    assert found.step == F5


def test_only_the_later_of_two_like_causes_takes_over_the_earlier(
    room: AnalysisWorld, tmp_path: Path
) -> None:
    """Two families, one commit: one root cause stays, whoever came first."""
    sample = SampleRepository(tmp_path / "boat")
    deeper = BROKEN.replace("self.ballast * 2", "self.ballast * 2 + anchor_depth")
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": deeper})
    stack = STACK.replace("line 9, in weigh", "line 12, in depth").replace(
        "test_weigh", "test_deep"
    )
    other = weigh("test_deep", stack=stack, message="NameError: anchor_depth")
    room.take_in(launch(weigh(), other))
    agreed = terms(sample.git.folder, green=sample.green)
    room.work_on(None, agreed)
    found = room.findings(agreed).cases
    assert {case.suspects[0].commit for case in found if case.suspects} == {planted}
    assert "H15" not in room.rules("C1")
    assert "H15" in room.rules("C2")
    assert room.rows("select case_no from rcas where status = 'open'") == [(1,)]
    assert room.faults() == []


# F0


def known(room: AnalysisWorld, version: str = "1.0") -> None:
    """One failure, explained and agreed on."""
    room.take_in(launch(make_failure("alpha"), version=version), name="before")
    room.work_on(write_script())


def recalled(room: AnalysisWorld, failure: Failure, version: str = "1.0") -> tuple[str, float]:
    """The rule F0 takes for it in a new suite, and how sure the analyst was."""
    opened = room.take_in(launch(failure, version=version, launch_id="L2"), name="now")
    room.work_on(None, run_id=opened.run_id)
    row: Any = room.rows(
        "select b.data from journal j join blobs b on b.blob_id = j.answer"
        f" join cases c on c.case_no = j.case_no where c.run_id = {opened.run_id} order by j.seq"
    )[0][0]
    answer = msgspec.json.decode(row)
    return room.rules("C1", opened.run_id)[0], answer["confidence"]


def test_the_same_again_is_a_hit(room: AnalysisWorld) -> None:
    known(room)
    assert recalled(room, make_failure("alpha")) == ("H1", 0.95)
    assert room.cases(2)["C1"].recalled


def test_in_another_version_it_is_a_hit_and_the_version_is_noted(room: AnalysisWorld) -> None:
    known(room)
    assert recalled(room, make_failure("alpha"), "2.0") == ("H1", 0.855)
    rca = room.cases(2)["C1"].rca
    assert rca is not None
    assert rca.affected_versions == ("1.0", "2.0")


def test_what_slept_is_a_candidate(room: AnalysisWorld) -> None:
    known(room)
    room.clock.time += 100 * DAY
    with open_writer(room.db) as connection:
        assert sweep_dormant(connection, room.clock.time) == 1
    assert recalled(room, make_failure("alpha")) == ("H3", 0.475)
    assert room.cases(2)["C1"].is_regression


@pytest.mark.parametrize("statuses", [["resolved"], ["resolved", "verified"]])
def test_what_was_resolved_is_never_a_hit(room: AnalysisWorld, statuses: list[str]) -> None:
    known(room)
    with open_writer(room.db) as connection:
        for status in statuses:
            set_rca_status(connection, 1, status, room.clock.time)
    assert recalled(room, make_failure("alpha")) == ("H3", 0.6)
    assert room.cases(2)["C1"].is_regression


def test_a_resolved_symptom_is_never_a_hit(room: AnalysisWorld) -> None:
    known(room)
    with open_writer(room.db) as connection:
        connection.raw.execute("update symptoms set status = 'resolved'")
        connection.raw.commit()
    assert recalled(room, make_failure("alpha")) == ("H3", 0.6)


@pytest.mark.parametrize("passed_since", [True, False])
def test_what_passed_since_is_a_regression_and_its_new_culprit_is_found(
    room: AnalysisWorld, tmp_path: Path, passed_since: bool
) -> None:
    sample = SampleRepository(tmp_path / "boat")
    first = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    agreed = terms(sample.git.folder, green=sample.green)
    room.take_in(launch(weigh()), name="before")
    room.work_on(None, agreed)
    approve_all(room, agreed)
    fixed = sample.git.commit("Weigh it as before", {"hull/keel.py": KEEL})
    again = sample.git.commit("Weigh the anchor again", {"hull/keel.py": BROKEN})
    agreed = terms(sample.git.folder, green=fixed if passed_since else sample.green)
    opened = room.take_in(launch(weigh(), launch_id="L2"), name="now")
    room.work_on(None, agreed, run_id=opened.run_id)
    (found,) = room.findings(agreed, opened.run_id).cases
    told = (room.rules("C1", opened.run_id)[0], found.regression, found.suspects[0].commit)
    assert told == (("H3", True, again) if passed_since else ("H1", False, first))
    assert room.faults() == []


def test_what_nobody_agreed_on_is_no_match(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script({F5: {"silent": True}}))
    assert recalled(room, make_failure("alpha")) == ("H2", 0.0)


def test_what_nothing_is_near_to_is_new(room: AnalysisWorld) -> None:
    known(room)
    assert recalled(room, make_failure("omega", "gears jam at noon")) == ("H2", 0.0)


def test_a_near_one_is_no_more_than_it_is_alike(room: AnalysisWorld) -> None:
    known(room)
    near = make_failure("alpha", "alpha sank in the beta basin at noon")
    rule, confidence = recalled(room, near)
    assert rule in ("H1", "H3")
    assert 0.35 <= confidence < 0.95


def test_a_second_look_counts_what_others_suspect_but_not_itself(
    room: AnalysisWorld, tmp_path: Path
) -> None:
    sample = SampleRepository(tmp_path / "boat")
    sample.git.commit("Weigh the anchor", {"hull/keel.py": KEEL.replace("+ anchor", "- anchor")})
    room.take_in(launch(weigh()))
    agreed = terms(sample.git.folder, green=sample.green)
    room.work_on(None, agreed)
    for question in room.questions().values():
        room.say(question, decision="reassess", loop_target=F3)
    room.work_on(None, agreed)
    (found,) = room.findings(agreed).cases
    assert not any("other findings" in each.why for each in found.suspects)


def test_an_agents_cause_is_not_overwritten_by_ours(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("alpha")))
    room.work_on(write_script({F3: CAUSE}))
    room.work_on(None)
    rca = room.cases()["C1"].rca
    assert rca is not None
    assert rca.description == CAUSE["rca_message"]


@pytest.mark.parametrize(
    "text",
    [
        "in setUpClass",
        "at com.yard.HullTest.setUp(HullTest.java:12)",
        "yard/conftest.py:9: in setup_module",
        '"before each" hook: beforeEach',
        "at Suite.BeforeAll",
        "OneTimeSetUp: crane is missing",
        "hull_test.go:12 SetupSuite",
        "fixture 'crane' not found",
        "initializationError",
    ],
)
def test_the_set_up_is_known_by_its_names(text: str) -> None:
    assert is_setup_failure(Failure(id="a", stack=text))
    assert is_setup_failure(Failure(id="a", message=text))
    assert is_setup_failure(Failure(id="a", test_name=text))


@pytest.mark.parametrize("text", ["", "test_setup_fee_is_added", "the hull leaks", "setuptools"])
def test_other_words_are_no_set_up(text: str) -> None:
    assert not is_setup_failure(Failure(id="a", test_name=text, message=text, stack=text))


def test_a_log_and_the_depth_of_a_huge_stack_say_nothing() -> None:
    assert not is_setup_failure(Failure(id="a", log="setUpClass"))
    assert not is_setup_failure(Failure(id="a", stack="x" * 2_000_000 + " setUpClass"))
