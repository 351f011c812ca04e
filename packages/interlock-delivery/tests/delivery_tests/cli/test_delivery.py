"""Test deliver as a user types it: results, status, and exit codes."""

import signal
import subprocess
from pathlib import Path

import pytest

from delivery_tests.world.delivery_project import AGENT, lay_out
from tests.world.command_line import COMMAND, LIMIT, World, ended, until
from tests.world.git_repo import git

RUN = ("deliver", "plan.md", "--agent", AGENT)


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Run four tasks, for reading only: merged, failed, blocked by that one, and asking."""
    world = lay_out(tmp_path_factory.mktemp("waiting"), "adds", "lies", "after>lies", "asks")
    result = world.say(*RUN, "--set", "max_checks=1")
    assert result.code == 4, result.err
    world.write("said", result.out)
    return world


def test_the_end_of_a_run_says_all_there_is_to_do(waiting: World) -> None:
    commit, number = git(waiting.folder, "rev-parse", "interlock/plan")[:10], asked(waiting)
    lines = (waiting.folder / "said").read_text().splitlines()
    assert lines[0].startswith(
        "run 1 PAUSED: 4 tasks: 1 complete, 1 asks, 1 blocked, 1 failed; 14 dispatches, "
    )
    assert lines[1:16] == [
        "TASK   STATE     WHAT",
        f"adds   COMPLETE  {commit}  Wrote adds <script>alert(1)</script> and its test",
        "lies   FAILED    at CHECK: The checks failed more often than is allowed.",
        "after  BLOCKED   comes after lies, which is FAILED",
        f"asks   ASKS      question {number}: Which sign <b>shall</b> it have?",
        "",
        "AGENT                    ROLE       CLAIMED  VERIFIED  REFUTED  UNCHECKED",
        "exec:python3 workers.py  auditor    2        1         0        1",
        "exec:python3 workers.py  developer  9        4         5        0",
        "",
        "needs a human (2):",
        (
            "  lies: FAILED at CHECK: The checks failed more often than is allowed. "
            "(Unit Tests (native): exit code 1 instead of 0; it passed before)"
        ),
        "    interlock explain lies --run 1",
        "  asks: Which sign <b>shall</b> it have?",
        f'    interlock answer {number} answer -m "…"',
    ]
    assert f"  then 'interlock deliver {waiting.folder}/plan.md' continues" in lines
    assert "1 task merged on branch interlock/plan; take it with: git merge interlock/plan" in lines


def test_status(waiting: World) -> None:
    visible = waiting.say("deliver", "status").out.splitlines()
    assert visible[1].split() == ["TASK", "STATE", "STEP", "TRIES", "CHECKS", "COMMIT", "LAST"]
    assert visible[2].split()[:5] == ["adds", "COMPLETE", "MERGE", "1", "4/4"]
    assert visible[3].split()[:6] == ["lies", "FAILED", "CHECK", "2", "1/3", "-"]
    assert visible[3].endswith("CHECK failing-spent: The checks failed more often than is allowed.")
    assert visible[4].split()[:6] == ["after", "BLOCKED", "-", "-", "-", "-"]
    assert visible[5].endswith(f"question {asked(waiting)}: Which sign <b>shall</b> it have?")


def test_status_for_machines(waiting: World) -> None:
    output = waiting.say("deliver", "status", "1", "--json").json
    assert (output["outcome"], output["branch"]) == ("PAUSED", "interlock/plan")
    assert output["counts"] == {
        "complete": 1,
        "at work": 0,
        "asks": 1,
        "waits": 0,
        "blocked": 1,
        "failed": 1,
        "skipped": 0,
    }
    adds, lies, after, asks = output["tasks"]
    assert adds["commit"] == git(waiting.folder, "rev-parse", "interlock/plan")
    assert adds["evidence"] == {"passed": 4, "failed": 0}
    assert adds["claims"] == {"claimed": 5, "verified": 3, "refuted": 1, "unchecked": 1}
    assert adds["changed"] == ["adds.py", "test_adds.py"]
    assert (lies["end"], lies["attempts"], lies["last"]["rule"]) == ("FAILED", 2, "failing-spent")
    assert Path(lies["tree"], "test_lies.py").is_file()
    assert (after["word"], after["dispatches"], after["last"]) == ("blocked", 0, None)
    assert asks["question"] == "Which sign <b>shall</b> it have?"
    assert [need["task_id"] for need in output["needs"]] == ["lies", "asks"]


def test_the_repository_stays_clean(waiting: World) -> None:
    assert git(waiting.folder, "status", "--porcelain") == "?? said"
    assert git(waiting.folder, "branch", "--format=%(refname:short)").split() == [
        "interlock/plan",
        "main",
    ]


def test_an_answer_goes_to_the_agent_and_the_run_on(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "asks")
    assert world.say(*RUN).code == 4
    assert world.say("answer", asked(world), "answer", "-m", "a plus it is").code == 0
    result = world.say("deliver", "plan.md")
    assert result.code == 0
    assert result.err.startswith("continuing run 1 of this plan (--new starts another)\n")
    assert result.out.startswith("run 1 COMPLETE: 1 task: 1 complete; ")
    assert "needs a human" not in result.out


def test_a_continued_run_keeps_its_agents_unless_others_are_named(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "asks")
    assert world.say(*RUN).code == 4
    world.say("answer", asked(world), "answer", "-m", "a plus it is")
    result = world.say("deliver", "plan.md", "--agent", "critic=exec:false", "--json")
    task = result.json["tasks"][0]
    assert (result.code, task["word"]) == (4, "asks"), result.err
    assert (task["author"], task["last"]["step"]) == (AGENT, "REVIEW")
    assert task["last"]["agent"] == "exec:false"


def asked(world: World) -> str:
    """Return the number of the only open question."""
    output = world.say("deliver", "status", "--json").json
    return str(max(task["question_id"] for task in output["tasks"]))


def test_the_report_is_written_at_the_end_and_on_demand(waiting: World, tmp_path: Path) -> None:
    home = waiting.folder / ".interlock" / "delivery" / "plan"
    assert f"report: {home}/report.html" in (waiting.folder / "said").read_text()
    html = (home / "report.html").read_text(encoding="utf-8")
    assert "Wrote adds &lt;script&gt;alert(1)&lt;/script&gt; and its test" in html
    assert "<script>alert" not in html
    result = waiting.say(
        "deliver", "report", "--markdown", str(tmp_path / "new" / "r.md"), "--json"
    )
    assert result.json["files"] == [str(tmp_path / "new" / "r.md")]
    text = (tmp_path / "new" / "r.md").read_text(encoding="utf-8")
    assert text.startswith("# Calculator: PAUSED\n")
    assert "| Unit Tests (native) | passed 1 test | passed 2 tests |" in text
    by_plan = waiting.say("deliver", "report", "plan.md", "--json")
    assert by_plan.json["files"] == waiting.say("deliver", "report", "1", "--json").json["files"]
    result = waiting.say("deliver", "report", "--html", str(tmp_path))
    assert (result.code, result.err) == (
        2,
        f"interlock: {tmp_path} is a folder; name a file for the report\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_status_while_it_is_at_work_and_after_a_kill(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds")
    slow = world.write("slow.py", "import sys, time\nsys.stdin.read()\ntime.sleep(60)\n")
    process = world.start("deliver", "plan.md", "--agent", f"exec:python3 {slow}")

    def stands() -> str:
        if not world.db.exists():
            return ""
        result = world.say("deliver", "status", "--json")
        task = result.json["tasks"][0] if result.code == 0 else {"step": ""}
        return f"{result.json['outcome']} {task['word']} {task['step']}" if task["step"] else ""

    try:
        until(lambda: stands() == "RUNNING at work IMPLEMENT", "the developer is asked")
    finally:
        process.kill()
        ended(process)
    # An agent that was just being started may hold the lock for a moment longer.
    until(lambda: stands() == "PAUSED at work IMPLEMENT", "it is seen to rest")
    plan = tmp_path / "plan.md"
    assert f"'interlock deliver {plan}'" in world.say("deliver", "status").out.splitlines()[-1]
    assert world.say(*RUN).code == 0


def test_a_rehearsal_touches_nothing(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "after>adds")
    before = sorted(tmp_path.rglob("*"))
    result = world.say(*RUN, "--dry-run", "--budget", "dispatches=9")
    assert sorted(tmp_path.rglob("*")) == before
    assert result.code == 0
    lines = result.out.splitlines()
    base = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert lines[:7] == [
        "Calculator: 2 tasks would be worked on",
        f"from {base}, merged to a new branch interlock/plan",
        "",
        "TASK   TITLE      ROUND  AFTER",
        "adds   Add adds   1",
        "after  Add after  2      adds",
        "can start now: adds; at most 8 agents at a time",
    ]
    assert "developer         exec:python3 workers.py  ready" in lines
    assert "Unit Tests  native       0     python3 -m unittest -v" in lines
    assert "at most 400 dispatches per task, 800 in all" in lines
    assert lines[-2:] == ["the budget stops it earlier: dispatches=9", "nothing was touched"]


def test_a_rehearsal_says_what_is_in_the_way(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "after>gone")
    words = ("deliver", "plan.md", "--dry-run", "--base", "nowhere", "--json")
    result = world.say(*words, "--agent", "critic=exec:no-such-command")
    assert (result.code, result.json["can_go"]) == (6, False)
    assert result.json["problems"][0].startswith("'nowhere' names no commit in ")
    assert [each["code"] for each in result.json["findings"]] == ["task.unknown-blocker"]
    problems = {each["role"]: each["problem"] for each in result.json["roles"]}
    assert problems["developer"] == "nobody plays it; use --agent developer=AGENT"
    assert problems["critic"].startswith("exec:no-such-command: there is no command")
    assert not (tmp_path / ".interlock").exists()


def test_words_that_cannot_work_begin_no_run(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds")
    result = world.say(*RUN, "--base", "nowhere")
    assert (result.code, result.err.split(";")[0]) == (
        2,
        f"interlock: 'nowhere' names no commit in {tmp_path}",
    )
    result = world.say("deliver", "plan.md", "--agent", "developer=exec:true")
    assert result.code == 2
    assert result.err.startswith(
        "interlock: who plays auditor, critic, expert, expert-maker, health-auditor? "
        "Use --agent claude for all roles or --agent auditor=codex for one"
    )
    assert world.say("deliver", "status").err == (
        "interlock: there is no delivery yet; 'interlock deliver PLAN' starts one\n"
    )


def test_resume_goes_on_as_deliver_does(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "asks")
    assert world.say(*RUN).code == 4
    world.say("answer", asked(world), "answer", "-m", "a plus it is")
    result = world.say("resume")
    assert result.code == 0
    assert result.out.startswith("run 1 COMPLETE: 1 task: 1 complete; ")
    assert "asks: MERGE artifact -> COMPLETE\n" in result.err


def test_a_human_can_halt_it(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "asks", "after>asks")
    assert world.say(*RUN).code == 4
    world.say("answer", asked(world), "halt")
    result = world.say(*RUN, "--json")
    assert (result.code, result.json["outcome"]) == (1, "HALTED")
    assert world.say("deliver", "status", "--json").json["outcome"] == "HALTED"
    again = world.say("deliver", "plan.md")
    assert again.code == 1
    assert again.err == (
        "interlock: run 1 was halted by a human and is over; "
        "'interlock deliver PLAN --new' starts another\n"
    )
    assert world.say("resume").err.startswith("interlock: run 1 is over (unhealthy)")


def test_once_is_one_turn_for_each_task(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds")
    steps = []
    for turn in range(3):
        result = world.say(*RUN, "--once", "--json")
        assert result.code == 0, result.err
        steps.append((result.json["outcome"], result.json["tasks"][0]["last"]["to"]))
        assert result.json["run_id"] == 1, turn
    assert steps == [("PAUSED", "REVIEW"), ("PAUSED", "AUDIT"), ("COMPLETE", "COMPLETE")]


def test_once_says_how_to_go_on_or_whom_it_waits_for(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "asks")
    result = world.say(*RUN, "--once")
    assert result.code == 4
    assert result.out.count("interlock answer") == 3
    assert f"  then 'interlock deliver {tmp_path}/plan.md' continues\n" in result.out
    world.say("answer", asked(world), "skip")
    result = world.say(*RUN, "--once")
    assert result.out.startswith("run 1 PAUSED: 2 tasks: 1 waits, 1 skipped; ")
    assert (result.code, result.out.splitlines()[-1]) == (
        0,
        f"one round is done; 'interlock deliver {tmp_path}/plan.md --once' starts the next",
    )


def test_clean_takes_away_what_is_nowhere_needed(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds")
    home = tmp_path / ".interlock" / "delivery" / "plan"
    assert world.say(*RUN, "--once").code == 0
    assert world.say("deliver", "clean").err == (
        "interlock: run 1 is not over and needs its worktrees; finish it, or use --force\n"
    )
    assert world.say(*RUN).code == 0
    visible = world.say("deliver", "clean", "--dry-run")
    assert (visible.code, (home / "trees").is_dir()) == (0, True)
    assert f"would remove {home}/repo.git\n" in visible.out
    done = world.say("deliver", "clean", "--json")
    assert [row["kept_because"] for row in done.json["rows"]] == [""] * len(done.json["rows"])
    assert sorted(path.name for path in home.iterdir()) == ["report.html", "report.md"]
    assert git(tmp_path, "log", "-1", "--format=%s", "interlock/plan") == "Add adds"
    assert world.say("deliver", "status", "--json").json["outcome"] == "COMPLETE"
    assert world.say(*RUN).err == (
        "interlock: the workspace of run 1 was removed, so the run cannot continue; "
        "'interlock deliver PLAN --new' starts another\n"
    )


def test_clean_keeps_what_is_nowhere_else(waiting: World) -> None:
    result = waiting.say("deliver", "clean", "--dry-run")
    assert result.code == 3
    assert "trees/lies: its work is recorded but not merged; merge it, or use --force" in result.out


def test_what_cannot_be_looked_at(waiting: World, tmp_path: Path) -> None:
    empty = World(tmp_path)
    assert empty.say("deliver", "status").err.startswith("interlock: there is no database at ")
    assert waiting.say("deliver", "status", "9").err == (
        "interlock: there is no run 9; 'interlock runs' lists them\n"
    )
    assert waiting.say("deliver", "status", str(2**70)).code == 1


def test_a_report_that_cannot_be_written_hides_nothing(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds")
    assert world.say(*RUN, "--once").code == 0
    report = tmp_path / ".interlock" / "delivery" / "plan" / "report.html"
    report.unlink()
    report.mkdir()
    result = world.say(*RUN)
    assert result.code == 0
    assert result.out.startswith("run 1 COMPLETE: 1 task: 1 complete; ")
    assert (
        f"note: no report was written: {report} is a folder; name a file for the report"
        in result.err
    )


def test_the_first_interrupt_lets_come_in_what_is_out(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "waits")
    process = world.start(*RUN)
    until(lambda: world.db.exists() and "IMPLEMENT" in world.say("deliver", "status").out, "asked")
    process.send_signal(signal.SIGINT)
    world.write("go", "")
    result = ended(process)
    assert result.code == 130
    assert result.out.endswith(f"'interlock deliver {tmp_path}/plan.md' continues\n")
    assert world.say(*RUN).code == 0


def test_a_reader_that_leaves_early_does_not_end_the_work(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "more>adds")
    words = [*COMMAND, *RUN]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        assert "adds: PREPARE artifact -> IMPLEMENT" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(LIMIT) == 0
    assert world.say("deliver", "status", "--json").json["outcome"] == "COMPLETE"
    assert (tmp_path / ".interlock" / "delivery" / "plan" / "report.html").exists()
