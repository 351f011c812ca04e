"""The memory at the command line: what a CI job hands in, and what people are told."""

import pytest

from tests.world.command_line import World

MARKS = {".": "", "F": '<failure message="no route" type="OSError">x</failure>'}
MARKS["x"] = '<flakyFailure message="late"/>'


def hand_in(world: World, number: int, mark: str, *flags: str, run: str = "") -> str:
    world.write(
        "r.xml",
        '<testsuite name="pytest"><testcase classname="shop" name="pays" time="0.2">'
        f'{MARKS[mark]}</testcase><testcase classname="shop" name="ships" time="0.1"/></testsuite>',
    )
    commit, day = f"{number:02d}" * 20, f"2026-10-{number:02d}T02:00:00Z"
    words = ["--run", run or str(number), "--commit", commit, "--branch", "main", "--at", day]
    result = world.say("ingest", "r.xml", *words, *flags)
    assert result.code == 0, result.err
    return result.out


@pytest.fixture
def plain(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "INTERLOCK_STORE", "JENKINS_URL", "CIRCLECI"):
        monkeypatch.delenv(name, raising=False)
    return world


def test_history_of_a_test_from_ingest_to_words(plain: World) -> None:
    world = plain
    result = world.say("history", "top")
    assert "history starts here: nothing was remembered in .interlock/history" in result.err
    for number, mark in enumerate("....x.....x.FF", 1):
        out = hand_in(world, number, mark)
    assert out == (
        "2 tests: 1 passed; 1 failed\nrun 14, commit 141414141414, default branch: remembered\n"
    )
    assert "already known, nothing changed" in hand_in(world, 14, "F")
    # What a pull request brings changes nothing here.
    for number in range(15, 19):
        out = hand_in(world, number, "F", "--pr", "3")
    assert "pull request 3: remembered" in out
    result = world.say("history", "top")
    assert "flaky" in result.out
    assert "2/14, 4.0-39.9 %" in result.out
    assert "....x.....x.FF" in result.out
    assert "fails for 2 sources" in result.out
    assert "ships" not in result.out
    result = world.say("history", "test", "pays", "--limit", "2")
    for line in (
        "  all jobs: flaky (it passed and failed on the same source, on several sources)",
        "    flips 2/14, 4.0-39.9 %; 2 other failures, 14 verdicts in all",
        "    failing since 2026-10-13 02:00 UTC (131313131313), on 2 sources",
        "    last pass 2026-10-12 02:00 UTC (121212121212)",
        "    last flip 3 d ago, 1 pass",
        "    2026-10-14 02:00 UTC  141414141414  run 14#1, failed, SECONDS s",
        "      OSError: no route",
    ):
        assert line in result.out.splitlines()
    fields = world.say("history", "test", "pays", "--scope", "pull-request", "--json").json
    assert [job["summary"]["strip"] for job in fields["jobs"]] == ["F"]
    assert fields["jobs"][0]["results"][0]["at"] == "2026-10-18T02:00:00Z"
    visible = world.say("history", "show", "--limit", "1").out
    assert "results (default history): 14 sources" in visible
    rows = world.say("history", "export", "--test", "pays").out.splitlines()
    assert len(rows) == 18
    assert sum('"tries":"FP"' in row for row in rows) == 2
    assert world.say("history", "prune", "--older-than", "7d", "--dry-run").out == (
        "10 jobs older than 7d: would be forgotten\n"
    )
    assert world.say("history", "prune", "--older-than", "7d").out.startswith("10 jobs")
    assert "results (default history): 4 sources" in world.say("history", "show").out


def test_legs_of_a_matrix_are_merged_and_a_missing_shard_is_said(plain: World) -> None:
    world = plain
    for leg in ("1/3", "2/3"):
        words = ("--shard", leg, "--variant", "os=linux", "--store", f"leg-{leg[0]}")
        hand_in(world, 3, ".", *words, run="8")
    result = world.say("history", "merge", "leg-1", "leg-2", "leg-1")
    assert result.out == "2 jobs added, 1 known already\n"
    assert "a shard is missing" in world.say("history", "show").out
    assert "os=linux" in world.say("history", "show").out
    result = world.say("history", "merge", "nowhere")
    assert (result.code, "nowhere is not there" in result.err) == (2, True)


def test_a_pull_request_cannot_speak_for_the_default_branch(
    plain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = plain
    hand_in(world, 3, "F", "--store", "forged")
    monkeypatch.setenv("INTERLOCK_PR", "66")
    result = world.say("history", "merge", "forged")
    assert result.out == "0 jobs added, 0 known already\n"
    assert (
        "claim to be of the default history, but this job belongs to pull request 66" in result.err
    )


def test_bad_input_is_answered_in_words(plain: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = plain
    world.write("empty.xml", "<testsuite/>")
    result = world.say("ingest", "empty.xml")
    assert (result.code, "no JUnit XML with test results" in result.err) == (3, True)
    assert world.say("ingest", "nothing-there").code == 2
    hand_in(world, 1, ".")
    for words, why in (
        (("history", "test", "nobody"), "no test that is remembered there is called like 'nobody'"),
        (("history", "test", "s"), "means 2 tests"),
        (("history", "top", "--state", "odd"), "--state odd: states are flaky"),
        (("history", "top", "--project", "x/y"), "nothing is remembered of the project x/y"),
        (("history", "prune", "--older-than", "soon"), "is not a duration"),
        (("ingest", "r.xml", "--at", "noon"), "write a time such as"),
        (("ingest", "r.xml", "--shard", "9/3"), "the shard must be written 3/12"),
    ):
        result = world.say(*words)
        assert (result.code, why in result.err) == (2, True), result.err
    for table, why in (
        ("flaky_rate = 3", "history.flaky_rate must be above 0 and at most 1, not 3"),
        ("window_days = 0", "history.window_days must be at least 1, not 0"),
        ("windows = 1", "unknown field `windows`"),
        ("x = [", "interlock.toml"),
    ):
        world.write("interlock.toml", f"[history]\n{table}\n")
        result = world.say("history", "top")
        assert (result.code, why in result.err) == (2, True), result.err
    (world.folder / "interlock.toml").unlink()
    # A memory that cannot be reached warns, and the build goes on.
    result = world.say("ingest", "r.xml", "--store", "http://127.0.0.1:1/")
    assert (result.code, result.err.startswith("warning: ")) == (
        0,
        True,
    )
    hand_in(world, 2, ".", "--project", "shop/web")
    result = world.say("history", "top", "--branch", "topic", "--project", "shop/web")
    assert "nothing is remembered there; there is: the default branch" in result.err
    result = world.say("history", "top")
    assert "several projects are remembered ((no name), shop/web)" in result.err
    assert world.say("history", "top", "--project", "(no name)").code == 0
    monkeypatch.setenv("INTERLOCK_PROJECT", "shop/web")
    assert world.say("history", "top").code == 0
    world.write("blocked", "a file")
    result = world.say("ingest", "r.xml", "--store", "blocked")
    assert (result.code, "blocked is a file" in result.err) == (2, True)
