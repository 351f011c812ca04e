"""Test repairs: made once for all tasks while the others wait, or decided by a human."""

from pathlib import Path

import pytest

from delivery_tests.test_rework import in_turn, says
from delivery_tests.world import messages
from delivery_tests.world.delivery_world import (
    Agent,
    DeliveryWorld,
    audit,
    develop,
    plan,
    ready,
    task,
)
from interlock.carriers.contract import Ask
from interlock_delivery.checks.records import CheckText

HEALTHY = says(messages.healthy())
TOOL = "| Tool | ALL | `sh tool.sh` | 0 | the project's own tool |\n"
"""A check that needs a program which is missing until somebody repairs the script."""
BROKEN, MENDED = "exec no-such-program\n", "exit 0\n"


def with_tool(folder: Path, *tasks: str, text: str = BROKEN) -> DeliveryWorld:
    site = DeliveryWorld(folder, plan(*tasks, more=TOOL))
    (site.repo / "tool.sh").write_text(text)
    site.commit("a tool")
    return site


def mends(ask: Ask, folder: Path) -> str:
    (folder / "tool.sh").write_text(MENDED)
    return messages.repaired()


def blocked_until_mended(ask: Ask, folder: Path) -> str:
    """Look for the program, as an agent would."""
    if (folder / "tool.sh").read_text() == BROKEN:
        return messages.blocked(ask.case_id)
    return develop(ask, folder)


def test_a_repair_is_merged_and_found_by_whoever_reported_it(tmp_path: Path) -> None:
    site = with_tool(tmp_path, task("sub"))
    site.begin()
    script = {"developer": blocked_until_mended, "remediation": mends, "health-auditor": HEALTHY}
    assert site.work(script, twice=True) == "done"
    assert site.rules("sub")[1:7] == [
        "blocked",
        "repaired",
        "holds",
        "healthy",
        "fixed",
        "written",
    ]
    assert site.merged() == ["Repair, for sub", "Add sub"]


def test_the_others_wait_and_find_it_repaired(tmp_path: Path) -> None:
    site = with_tool(tmp_path, task("sub"), task("dif", files="dif.py"))
    site.begin()

    def apart(ask: Ask, folder: Path) -> str:
        result = blocked_until_mended(ask, folder)
        if result.startswith("READY") and ask.case_id == "dif":
            (folder / "calc.py").write_text(
                (folder / "calc.py").read_text().split("\n\n")[0] + "\n"
            )
            (folder / "test_dif.py").unlink()
            (folder / "dif.py").write_text("dif = 1\n")
        return result

    script: dict[str, Agent] = {
        "developer": apart,
        "remediation": mends,
        "health-auditor": HEALTHY,
    }
    assert site.work(script) == "done"
    both = site.rules("sub") + site.rules("dif")
    assert both.count("repaired") == 1, "one repair for everybody"
    assert both.count("blocked") == 1
    assert both.count("under-repair") <= 1
    steps = [ask.step for ask in site.asked]
    first, last = steps.index("REMEDIATE"), steps.index("HEALTH_AUDIT")
    assert steps[first : last + 1] == ["REMEDIATE", "HEALTH_AUDIT"], "nobody else was asked"


def test_a_check_that_cannot_run_is_nobody_s_fault(tmp_path: Path) -> None:
    site = with_tool(tmp_path, task("sub"))
    site.begin()
    script = {"remediation": mends, "health-auditor": HEALTHY}
    assert site.work(script, twice=True) == "done"
    assert site.rules("sub")[:4] == ["prepared", "written", "unavailable", "repaired"]
    assert len(site.prompts("sub", "IMPLEMENT")) == 1, "the developer was not asked again"
    assert site.merged() == ["Repair, for sub", "Add sub"]


@pytest.mark.soak
def test_an_audit_that_is_blocked_is_asked_again(tmp_path: Path) -> None:
    site = with_tool(tmp_path, task("sub"), text="exit 0\n")
    site.begin()
    auditor = in_turn(says(messages.audit_blocked("sub")), audit)

    def changes(ask: Ask, folder: Path) -> str:
        (folder / "tool.sh").write_text("true\n")
        return messages.repaired()

    script = {"auditor": auditor, "remediation": changes, "health-auditor": HEALTHY}
    assert site.work(script, twice=True) == "done"
    assert [line.split()[0] for line in site.story("sub")].count("IMPLEMENT") == 1
    assert site.merged() == ["Repair, for sub", "Add sub"]


def test_healthy_is_a_claim_that_our_own_checks_refute(tmp_path: Path) -> None:
    site = with_tool(tmp_path, task("sub"))
    site.begin()
    script = {"remediation": says(messages.repaired()), "health-auditor": HEALTHY}
    assert site.work(script, thresholds={"max_remediation": 2}) == "waiting"
    assert "unhealthy" in site.rules("sub")
    assert "healthy" not in site.rules("sub"), "the auditor was never asked"
    assert site.rules("sub")[-1] == "unhealthy-spent"


def spent(site: DeliveryWorld) -> dict[str, Agent]:
    script: dict[str, Agent] = {
        "developer": in_turn(says(messages.blocked("sub")), develop),
        "remediation": says(messages.repaired()),
        "health-auditor": says(messages.unhealthy()),
    }
    assert site.work(script, thresholds={"max_remediation": 1}) == "waiting"
    assert site.rules("sub")[-1] == "unhealthy-spent"
    return script


def test_a_human_lets_it_be_tried_again(tmp_path: Path) -> None:
    site = DeliveryWorld(tmp_path, plan(task("sub")))
    site.begin()
    script = spent(site)
    site.answer(decision="retry", text="restart the box")
    status = site.work({**script, "health-auditor": HEALTHY}, thresholds={"max_remediation": 1})
    assert status == "done"
    assert "restart the box" in site.prompts("sub", "REMEDIATE")[-1]


@pytest.mark.soak
def test_a_human_goes_on_as_it_is(tmp_path: Path) -> None:
    site = DeliveryWorld(tmp_path, plan(task("sub")))
    site.begin()
    script = spent(site)
    site.answer(decision="override", text="it is only the linter")
    assert site.work(script, thresholds={"max_remediation": 1}) == "done"
    assert "A human decided to go on" in site.prompts("sub", "IMPLEMENT")[-1]


def test_a_human_halts_a_broken_world(tmp_path: Path) -> None:
    site = DeliveryWorld(tmp_path, plan(task("sub"), task("dif", after="sub")))
    site.begin()
    script = spent(site)
    site.answer(decision="halt")
    site.work(script, thresholds={"max_remediation": 1})
    assert site.ends() == {"sub": "HALTED", "dif": "open"}


@pytest.mark.soak
def test_infrastructure_said_otherwise_is_infrastructure(tmp_path: Path) -> None:
    site = DeliveryWorld(tmp_path, plan(task("sub")))
    site.begin()
    developer = in_turn(says(messages.incomplete("sub", "infrastructure")), develop)
    script: dict[str, Agent] = {
        "developer": developer,
        "remediation": says(messages.repaired()),
        "health-auditor": HEALTHY,
    }
    assert site.work(script) == "done"
    assert site.rules("sub")[1] == "incomplete-world"


def test_a_check_that_floods_is_ended(tmp_path: Path) -> None:
    site = DeliveryWorld(tmp_path, plan(task("sub"), command="python3 hang.py"))
    (site.repo / "hang.py").write_text("print('fine')\n")
    site.commit("a check")
    site.begin()

    def floods(ask: Ask, folder: Path) -> str:
        (folder / "hang.py").write_text("while True:\n    print('x' * 100000)\n")
        return ready(ask.case_id)

    assert site.work({"developer": floods}, thresholds={"max_checks": 0}) == "unhealthy"
    (found,) = site.findings("sub", "CHECK")
    assert "printing more than" in found["results"][0]["note"]


def test_a_check_that_hangs_is_ended(tmp_path: Path) -> None:
    site = DeliveryWorld(tmp_path, plan(task("sub")))
    (site.repo / "stop.py").write_text("print('fine')\n")
    site.commit("a check")
    site.begin(checks=(CheckText(name="Stop", command="python3 stop.py", timeout="2s"),))

    def hangs(ask: Ask, folder: Path) -> str:
        (folder / "stop.py").write_text("import threading\nthreading.Event().wait()\n")
        return develop(ask, folder)

    assert site.work({"developer": hangs}, thresholds={"max_checks": 0}) == "unhealthy"
    (found,) = site.findings("sub", "CHECK")
    assert "it was stopped after 2 s" in [row["note"] for row in found["results"]]


def test_a_merge_cut_short_undoes_nobody_s_work(tmp_path: Path) -> None:
    """Test a merge that is cut short while it sends one of two conflicting tasks back."""
    site = DeliveryWorld(tmp_path, plan(task("sub"), task("dif")))
    site.begin()

    assert site.work(twice=True) == "done"
    visible = site.read_published("calc.py")
    assert "def sub" in visible
    assert "def dif" in visible
    assert sorted(site.merged()) == ["Add dif", "Add sub"]
