"""analyze as a user meets it: what goes in, what comes out, and what happens the second time."""

import json
import random
import shutil
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.journal.database import hold_writer_lock
from interlock_rca.cli.analyze import shorten_waiting_lines
from interlock_rca.demo.world import DemoWorld as Demo
from interlock_rca.report.document import Document
from rca_tests.worlds.rca_oracle import PLAIN, walks
from rca_tests.worlds.red_repository import (
    CAUSE,
    DISK,
    F0,
    F1,
    F3,
    F5,
    KEY,
    KEY_TOO,
    TRIAGE,
    TYPE,
    junit,
)
from rca_tests.worlds.reportportal import PROJECT, TOKEN, a_portal, an_item
from tests.world.command_line import COMMAND, LIMIT, CliResult, World, decisions, until

REPORT = ("report.html", "report.md", "report.json", "regression-report.md")
NO_REPOS = "No history is known"


def analyze_json(world: World, *words: str, code: int = 4) -> dict[str, Any]:
    """The one object analyze prints with --json."""
    result = world.say("analyze", *words, "--json")
    assert result.code == code, result.err
    return dict(result.json)


def settings(demo: Demo) -> str:
    repos = "".join(
        f'[[repo]]\nname = "{each.name}"\npath = "{each.path}"\npurpose = "{each.purpose}"\n'
        for each in demo.repos
    )
    greens = "".join(f'{name} = "{rev}"\n' for name, rev in demo.last_green.items())
    return f"[last_green]\n{greens}\n{repos}"


def script(world: World, **steps: Any) -> tuple[str, ...]:
    """The words for an agent that answers these steps so, and all others plainly."""
    answers = {**PLAIN, F3: [CAUSE], **steps}
    agents = {"*": {step: [{"answer": one} for one in many] for step, many in answers.items()}}
    world.write("crew.json", json.dumps(agents))
    return ("--agent", "script:crew.json")


def test_a_red_run_with_repositories_of_the_project(world: World, demo: Demo) -> None:
    world.write("interlock.toml", settings(demo))
    result = world.say("analyze", str(demo.today), "--suite", "nightly")
    assert result.code == 4
    assert result.out.startswith("nightly\n37 failures, ")
    folder = world.folder / "interlock-report" / "nightly"
    assert {path.name for path in folder.iterdir()} == {*REPORT, "jira-drafts"}
    found = json.loads((folder / "report.json").read_text())["findings"]
    tests = {f"{each['class_name']}.{each['test_name']}" for each in found["cases"]}
    assert tests == {test for each in demo.truth for test in each.tests}
    assert [each["path"] for each in found["repos"]] == ["", "", ""]
    assert {each["name"] for each in found["repos"]} == {repo.name for repo in demo.repos}
    suspects = [one for each in found["cases"] for one in each["suspects"]]
    assert suspects
    evidence = [one["verdict"] for each in found["cases"] for one in each["evidence"]]
    assert set(evidence) == {"found"}
    green = set(demo.last_green.values())
    assert not green & {one["commit"] for one in suspects}
    trail = [[turn["rule"] for turn in each["trail"]] for each in found["cases"]]
    assert all(rules and rules[0] == "H2" for rules in trail)


def test_the_same_repositories_by_flags_find_the_same(world: World, demo: Demo) -> None:
    flags = [word for each in demo.repos for word in ("--repo", f"{each.name}={each.path}")]
    flags += [
        word for name, rev in demo.last_green.items() for word in ("--last-green", f"{name}={rev}")
    ]
    first = analyze_json(world, str(demo.today), *flags)
    workspace = {"repos": [{"name": each.name, "path": each.path} for each in demo.repos]}
    world.write("workspace.yaml", json.dumps(workspace))
    greens = flags[flags.index("--last-green") :]
    again = analyze_json(world, str(demo.today), "--new", "--workspace", "workspace.yaml", *greens)
    suspects = [[each["suspect"] for each in one["summary"]["families"]] for one in (first, again)]
    assert suspects[0] == suspects[1]
    assert any(suspects[0])


def test_what_was_seen_in_an_earlier_run_and_passed_since_came_back(
    world: World, demo: Demo
) -> None:
    world.write("interlock.toml", settings(demo))
    earlier = analyze_json(
        world, str(demo.earlier), "--review", "auto", "--review-above", "0.0", code=0
    )
    assert earlier["summary"]["by_state"] == {"closed": earlier["summary"]["failures"]}
    today = analyze_json(world, str(demo.today))
    seen = [each for each in today["summary"]["families"] if each["seen_before"]]
    columns = next(each for each in demo.truth if each.seen_before)
    told = [(each["failures"], each["regression"], each["suspect"]) for each in seen]
    assert told == [(len(columns.tests), True, columns.commit)]
    found = walks(world.say("logs", "--json").json["entries"])
    assert any(walked[0] == (F0, "H3", F1) for walked in found.values())


def test_killed_at_random_moments_the_same_command_finds_the_same(
    tmp_path: Path, demo: Demo
) -> None:
    calm, killed = World(tmp_path / "calm"), World(tmp_path / "killed")
    words = ("analyze", str(demo.today), "--json")
    for each in (calm, killed):
        each.folder.mkdir()
        each.write("interlock.toml", settings(demo))
    wanted = analyze_json(calm, str(demo.today))
    total, chance = decisions(calm), random.Random(7)
    for number in range(4):
        process = subprocess.Popen(
            [*COMMAND, *words], cwd=killed.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        goal = 0.8 * total * number / 4
        until(lambda: process.poll() is not None or decisions(killed) > goal, "it works")  # noqa: B023
        try:
            process.wait(chance.uniform(0.0, 0.05))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)
    found = analyze_json(killed, str(demo.today))
    assert found["summary"] == {**wanted["summary"], "families": found["summary"]["families"]}
    digests = [each.say("status", "--json").json["digest"] for each in (calm, killed)]
    assert digests[0] == digests[1]
    assert _findings(killed) == _findings(calm)
    assert killed.say("doctor", "--deep").code == 0


def _findings(world: World) -> Any:
    """The report's cases, without times."""
    (file,) = world.folder.glob("interlock-report/*/report.json")
    found = json.loads(file.read_text())["findings"]
    for case in found["cases"]:
        case["first_seen"] = ""
        for turn in case["trail"]:
            turn["at"] = ""
    return found["cases"], found["families"]


@pytest.fixture
def pile(world: World) -> World:
    """A folder of reports, one of them green."""
    world.write("out/cart.xml", junit(KEY, KEY_TOO))
    world.write("out/deep/card.xml", junit(TYPE))
    world.write("out/green.xml", junit())
    return world


@pytest.mark.parametrize(
    ("words", "name", "failures"),
    [
        (("out",), "out", 3),
        (("out/",), "out", 3),
        (("out/cart.xml",), "cart", 2),
        (("out/cart.xml", "out/deep/card.xml"), "cart", 3),
        (("out/*.xml",), "out", 2),
        (("out/**/*.xml",), "out", 3),
        (("build-1.2",), "build-1.2", 3),
        (("out.zip",), "out", 3),
        (("out", "--suite", "Night of May / 5"), "Night of May / 5", 3),
    ],
)
def test_what_can_be_given(pile: World, words: tuple[str, ...], name: str, failures: int) -> None:
    shutil.copytree(pile.folder / "out", pile.folder / "build-1.2")
    with zipfile.ZipFile(pile.folder / "out.zip", "w") as archive:
        for path in (pile.folder / "out").rglob("*.xml"):
            archive.write(path, path.relative_to(pile.folder))
    found = analyze_json(pile, *words)
    assert found["summary"]["failures"] == failures
    assert pile.say("report").out.splitlines()[0] == name
    assert all((pile.folder / file).exists() for file in found["files"])


def test_the_folder_one_stands_in_gives_the_suite_its_name(pile: World) -> None:
    assert analyze_json(pile, ".")["summary"]["failures"] == 3
    assert pile.say("report").out.splitlines()[0] == pile.folder.name


def test_what_analyze_prints_as_json_is_a_report(pile: World) -> None:
    found = analyze_json(pile, ".")
    written = json.loads(
        (pile.folder / "interlock-report" / pile.folder.name / "report.json").read_text()
    )
    report = msgspec.convert(found | {"schema_version": 1}, Document, strict=True)
    assert report.summary.failures == 3
    assert set(written) <= {*found, "schema_version"}
    assert found["summary"] == written["summary"]
    assert [case["case_id"] for case in found["findings"]["cases"]] == ["C1", "C2", "C3"]


def test_where_nothing_failed_the_json_is_a_report_too(world: World) -> None:
    world.write("green.xml", '<testsuite tests="1"><testcase name="a" classname="b"/></testsuite>')
    found = analyze_json(world, "green.xml", code=0)
    assert (found["suite_id"], found["tests"], found["failures"]) == (None, 1, 0)
    report = msgspec.convert(found | {"schema_version": 1}, Document, strict=True)
    assert (report.summary.verdict, report.findings.cases) == (
        "No failures. There is nothing to explain.",
        (),
    )


def test_an_envelope(world: World) -> None:
    failures = [
        {"id": 11, "name": "one", "status": "FAILED", "description": "KeyError: no total"},
        {"id": 12, "name": "pays", "status": "FAILED", "description": "TypeError: no number"},
    ]
    envelope = {"run_id": "33", "name": "night", "failure_list": failures}
    world.write("launch.json", json.dumps(envelope))
    assert analyze_json(world, "launch.json")["summary"]["failures"] == 2
    assert analyze_json(world, "launch.json")["summary"]["failures"] == 2


def test_a_launch_of_reportportal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key = world.write("rp.key", TOKEN)
    key.chmod(0o600)
    with a_portal() as portal:
        monkeypatch.setenv("ASTERISK_RP_URL", portal.url)
        monkeypatch.setenv("ASTERISK_RP_PROJECT", PROJECT)
        portal.add(an_item(501, "one"), ("ERROR", "KeyError: no total"))
        portal.add(an_item(502, "pays"), ("ERROR", "TypeError: a card is no number"))
        found = analyze_json(world, "rp:7001", "--rp-key", "rp.key")
        assert found["summary"]["failures"] == 2
        portal.add(an_item(503, "boots"), ("ERROR", "OSError: disk is full"))
        result = world.say(
            "analyze",
            f"{portal.url}/ui/#{PROJECT}/launches/all/7001",
            "--suite",
            "rp:7001",
            "--rp-key",
            "rp.key",
        )
        assert result.err == "suite 1 (rp:7001) goes on with 1 new failure\n"
        portal.fault("401", times=9)
        refused = world.say("analyze", "rp:7001", "--rp-key", "rp.key")
        assert (refused.code, refused.out) == (2, "")
        assert TOKEN not in refused.err


def test_run_twice_nothing_is_new_and_a_larger_folder_brings_only_the_new(pile: World) -> None:
    first = analyze_json(pile, "out")
    before = decisions(pile)
    again = pile.say("analyze", "out", "--json")
    assert again.err == "suite 1 (out) goes on with 0 new failures\n"
    for document in (first, repeated := again.json):
        del document["findings"]["made_at"]
    assert repeated == first
    assert decisions(pile) == before

    pile.write("out/node.xml", junit(DISK))
    more = pile.say("analyze", "out", "--json")
    assert more.err == "suite 1 (out) goes on with 1 new failure\n"
    assert more.json["summary"]["failures"] == 4
    found = walks(pile.say("logs", "--json").json["entries"])
    assert set(found) == {"C1", "C2", "C3", "C4"}
    assert len({each["run_id"] for each in pile.say("runs", "--json").json["runs"]}) == 1


def test_another_suite_begins_by_name_or_when_told_so(pile: World) -> None:
    ids = [
        analyze_json(pile, "out")["suite_id"],
        analyze_json(pile, "out", "--suite", "other")["suite_id"],
        analyze_json(pile, "out", "--new")["suite_id"],
        analyze_json(pile, "out")["suite_id"],
    ]
    assert ids == [1, 2, 3, 3]


def test_a_closed_suite_is_closed_and_reports_again(pile: World) -> None:
    done = analyze_json(pile, "out", *script(pile), "--review", "auto", code=0)
    assert done["status"] == "done"
    assert done["summary"]["by_state"] == {"closed": 3}
    again = analyze_json(pile, "out", code=0)
    assert (again["suite_id"], again["summary"]) == (done["suite_id"], done["summary"])
    pile.write("out/node.xml", junit(DISK))
    after = analyze_json(pile, "out", code=0)
    assert (after["suite_id"], after["summary"]["failures"]) == (1, 4)


@pytest.mark.parametrize(
    ("score", "code", "states"),
    [(0.91, 0, {"closed": 1}), (0.9, 0, {"closed": 1}), (0.89, 4, {"waiting": 1})],
)
def test_review_by_rule_at_above_and_below_its_threshold(
    world: World, score: float, code: int, states: dict[str, int]
) -> None:
    world.write("red.xml", junit(KEY))
    words = script(world, **{F3: [{**CAUSE, "convergence_score": score}]})
    review = ("--review", "auto", "--review-above", "0.9")
    found = analyze_json(world, "red.xml", *words, *review, code=code)
    assert found["summary"]["by_state"] == states
    told_why = world.say("explain", "C1").out
    assert ("approved by rule: 0.9" in told_why) == (code == 0)
    if code:
        assert len(world.say("inbox", "--json").json["questions"]) == 1


def test_who_reviews_can_change_when_it_goes_on(world: World) -> None:
    """From whoever is asked to a human, and from a human to a rule."""
    world.write("red.xml", junit(KEY, TYPE))
    words = script(world, **{F5: [{"decision": "reassess", "loop_target": F3}]})
    spent = ("--review", "dispatch", "--budget", "dispatches=9")
    analyze_json(world, "red.xml", *words, *spent, code=5)
    waiting = analyze_json(world, "red.xml", "--review", "human", "--budget", "dispatches=99")
    assert waiting["summary"]["by_state"] == {"waiting": 2}
    assert len(world.say("inbox", "--json").json["questions"]) == 2
    done = analyze_json(world, "red.xml", "--review", "auto", code=0)
    assert done["summary"]["by_state"] == {"closed": 2}


@pytest.mark.parametrize(
    "steps",
    [
        {F3: [{**CAUSE, "convergence_score": 0.3}]},
        {F1: [{**TRIAGE, "symptom_category": "flake", "defect_type_hypothesis": "nd001"}]},
        {F3: [{**CAUSE, "convergence_score": 1.0, "evidence_refs": []}]},
    ],
    ids=["spent", "not investigated", "without evidence"],
)
def test_review_by_rule_never_approves_what_nothing_supports(
    world: World, steps: dict[str, Any]
) -> None:
    world.write("red.xml", junit(KEY))
    found = analyze_json(world, "red.xml", *script(world, **steps), "--review", "auto")
    assert found["summary"]["by_state"] == {"waiting": 1}


def test_a_case_that_ends_unhealthy_says_so_by_its_code(world: World) -> None:
    world.write("red.xml", junit(KEY))
    world.write("crew.json", json.dumps({"*": {"F0_RECALL": {"crash": "no memory left"}}}))
    found = analyze_json(world, "red.xml", "--agent", "script:crew.json", "--recall-asked", code=3)
    assert found["status"] == "unhealthy"


@pytest.mark.parametrize(
    ("flags", "project", "looks"),
    [
        ((), "", 3),
        (("--set", "max_investigate_loops=0"), "", 1),
        ((), "max_investigate_loops = 1", 2),
        (("--set", "max_investigate_loops=0"), "max_investigate_loops = 2", 1),
        (("--set", "convergence_sufficient=0.3"), "max_investigate_loops = 0", 1),
    ],
)
def test_thresholds_come_from_flags_and_from_the_project(
    world: World, flags: tuple[str, ...], project: str, looks: int
) -> None:
    world.write("interlock.toml", f"[thresholds]\n{project}\n")
    world.write("red.xml", junit(KEY))
    agents = script(world, **{F3: [{**CAUSE, "convergence_score": 0.3}]})
    analyze_json(world, "red.xml", *agents, *flags)
    (walked,) = walks(world.say("logs", "--json").json["entries"]).values()
    assert sum(step == F3 for step, _, _ in walked) == looks
    again = world.say("analyze", "red.xml", *flags)
    assert again.err == "suite 1 (red) goes on with 0 new failures\n"
    other = world.say("analyze", "red.xml", "--set", "recall_hit=0.9")
    keeps = "note: a suite keeps the thresholds it began with; --new begins another\n"
    assert other.err.startswith(keeps)


def test_ones_own_template_is_used_in_the_place_of_ours(world: World) -> None:
    world.write("red.xml", junit(KEY))
    world.write("mine/triage/classify-symptoms.md", "Say what {{ failure.name }} is. ÆØ")
    world.write("mine/triage/classify.md", "never read")
    result = world.say("analyze", "red.xml", *script(world), "--prompt-dir", "mine")
    unused = "rca has no template triage/classify.md; it is not used"
    assert (result.code, result.err) == (4, f"note: --prompt-dir mine: {unused}\n")
    prompts = world.say("explain", "C1", "--prompts").out
    assert "Say what one is. ÆØ" in prompts
    assert "# F2" in prompts
    shutil.rmtree(world.folder / "mine")
    assert world.say("analyze", "red.xml").code == 4


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (
            "triage/classify-symptoms.md",
            "{% if %}",
            "it is not a valid template: Expected an expression",
        ),
        ("triage/classify-symptoms.md", "{{ mood }}", "it reads unknown names: 'mood'; "),
        ("triage/unknown.md", "hello", "mine has none of correlate/match-cases.md, "),
    ],
)
def test_a_template_that_cannot_be_used_stops_before_anything_begins(
    world: World, file: str, text: str, problem: str
) -> None:
    world.write("red.xml", junit(KEY))
    world.write(f"mine/{file}", text)
    result = world.say("analyze", "red.xml", *script(world), "--prompt-dir", "mine")
    assert (result.code, result.out) == (2, "")
    place = f"mine/{file}: " if "unknown" not in file else "--prompt-dir "
    assert result.err.startswith(f"interlock: {place}{problem}")
    assert result.err.count("\n") == 1
    assert world.say("runs", "--json").json["runs"] == []


def test_a_folder_with_other_things_is_not_written_into_and_nothing_is_analysed(
    world: World,
) -> None:
    world.write("red.xml", junit(KEY))
    world.write("mine/notes.txt", "dear diary")
    result = world.say("analyze", "red.xml", "--out", "mine")
    problem = "interlock: mine holds other things; name an empty folder with --out\n"
    assert result == CliResult(1, "", problem)
    assert not world.db.exists()
    assert world.say("analyze", "red.xml", "--out", "mine/notes.txt").code == 2
    assert world.say("analyze", "red.xml", "--out", "theirs").code == 4
    assert world.say("analyze", "red.xml", "--out", "theirs").code == 4
    assert world.say("report", "--out", "mine").code == 1
    assert [path.name for path in (world.folder / "mine").iterdir()] == ["notes.txt"]


def test_a_report_that_was_killed_while_it_was_written_is_written_anew(world: World) -> None:
    """Also if it got no further than the first bytes of the first file."""
    world.write("red.xml", junit(KEY))
    with subprocess.Popen(["true"]) as gone:
        pass
    world.write(f"half/.report.json.{gone.pid}-1.new", "{")
    assert world.say("analyze", "red.xml", "--out", "half").code == 4
    assert {path.name for path in (world.folder / "half").iterdir()} == {*REPORT, "jira-drafts"}


def test_two_analyses_at_once_on_one_store(world: World) -> None:
    world.write("red.xml", junit(KEY))
    analyze_json(world, "red.xml")
    with hold_writer_lock(world.db):
        result = world.say("analyze", "red.xml")
        assert (result.code, result.out) == (1, "")
        assert "is in use by process PID on HOST" in result.err
        assert world.say("report", "--json").code == 0
        assert world.say("inbox").code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("gone.xml",), "gone.xml does not exist"),
        (("*.nope",), "*.nope matches no file"),
        (("rp:12",), "Set ASTERISK_RP_URL"),
        (("http://x/y",), "is not the address of a ReportPortal launch"),
        (("red.xml", "--agent", "oracle"), "'oracle' names no agent; use exec:COMMAND"),
        (("red.xml", "--agent", "pilot=basic"), "no step has the role 'pilot'"),
        (("red.xml", "--last-green", "app=HEAD"), "repositories are none; name one with --repo"),
        (("red.xml", "--set", "beer=6"), "rca has no threshold 'beer'"),
        (("red.xml", "--prompt-dir", "gone"), "--prompt-dir gone: there is no such folder"),
        (("red.xml", "--dispatch", "file", "--agent", "basic"), "--dispatch is for roles without"),
        (("red.xml", "--review", "dispatch"), "the built-in analyst reviews nothing: use --review"),
        (("red.xml", "--agent", "human=basic"), "the built-in analyst reviews nothing: use"),
        (("red.xml", "--review-above", "1.5"), "Invalid value for '--review-above'"),
    ],
)
def test_words_that_are_wrong_begin_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], problem: str
) -> None:
    monkeypatch.delenv("ASTERISK_RP_URL", raising=False)
    world.write("red.xml", junit(KEY))
    result = world.say("analyze", *words, "--json")
    assert (result.code, result.out) == (2, "")
    assert problem in result.err
    assert "Traceback" not in result.err
    assert world.say("runs", "--json").json["runs"] == [] if world.db.exists() else True


def test_nothing_failed(world: World) -> None:
    world.write("green.xml", junit())
    result = world.say("analyze", "green.xml")
    assert result == CliResult(
        0,
        "nothing failed: 1 test and no failure, so nothing to analyse\n",
        "note: there are no failures in there\n",
    )
    found = analyze_json(world, "green.xml", code=0)
    assert (found["suite_id"], found["tests"], found["failures"]) == (None, 1, 0)


def test_a_green_log_is_no_proof_unless_it_says_how_the_job_ended(world: World) -> None:
    green = "==== 12 passed in 0.31s ====\n"
    world.write("console.log", green)
    unknown = world.say("analyze", "console.log")
    assert (unknown.code, unknown.out) == (2, "")
    assert "Cannot tell whether the job succeeded: in console.log 12 tests ran" in unknown.err
    assert world.say("analyze", "console.log", "--job-exit", "0").code == 0
    world.write("console.log", f"{green}Finished: SUCCESS\n")
    assert world.say("analyze", "console.log").code == 0
    world.write("console.log", f"{green}a.py:3:1: F401 unused\nYour build exited with 1\n")
    failed = world.say("analyze", "console.log")
    assert failed.code == 4, "a human reviews what was found"
    assert "no test failed, but the job failed (lint, line 2)" in failed.err


def test_a_report_that_ends_in_the_middle_is_read_as_far_as_it_goes(world: World) -> None:
    world.write("half.xml", junit(KEY, TYPE)[:-60])
    result = world.say("analyze", "half.xml", "--json")
    assert result.code == 4
    assert "note: half.xml: it ends too early" in result.err
    assert result.json["summary"]["failures"] == 2
    world.write("junk.xml", "this is no report at all")
    junk = world.say("analyze", "junk.xml")
    assert junk.code in (0, 2)
    assert "Traceback" not in junk.err


def test_without_a_repository_it_says_what_is_missing(world: World) -> None:
    world.write("red.xml", junit(KEY))
    result = world.say("analyze", "red.xml")
    assert "No commit is suspected, because no repository was named." in result.out


def test_a_repository_that_is_not_there_is_said_and_the_rest_goes_on(world: World) -> None:
    world.write("red.xml", junit(KEY))
    result = world.say("analyze", "red.xml", "--repo", "app=/nowhere:the product")
    assert result.code == 4
    assert result.err == (
        "note: repository app: /nowhere does not exist; correct the path, or clone it there\n"
    )


def test_report_writes_the_newest_or_the_one_that_is_named(pile: World) -> None:
    analyze_json(pile, "out/cart.xml")
    analyze_json(pile, "out/deep/card.xml")
    shutil.rmtree(pile.folder / "interlock-report")
    assert pile.say("report").out.splitlines()[0] == "card"
    one = pile.say("report", "1", "--json")
    assert (one.code, one.json["suite_id"], one.json["status"]) == (0, 1, "waiting")
    assert [Path(file).name for file in one.json["files"]] == [*REPORT, "jira-drafts"]
    none = pile.say("report", "9")
    assert none == CliResult(
        1, "", "interlock: there is no suite 9; 'interlock analyze SOURCE' makes one\n"
    )


def test_hundreds_of_steps_by_hand_do_not_hide_the_summary() -> None:
    waiting = [f"case C{n} waits" for n in range(1, 41)]
    assert shorten_waiting_lines(waiting[:5], 3) == waiting[:5]
    assert shorten_waiting_lines(waiting, 3) == [
        *waiting[:5],
        "35 more cases wait in the same way: 'interlock status 3' lists them",
    ]
    assert shorten_waiting_lines(waiting[:6], 3)[5].startswith("1 more case waits")
