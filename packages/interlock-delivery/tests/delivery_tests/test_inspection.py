"""Test the environment of a delivery: disjoint ports, the checks of a task, trees by step."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery_tests.briefs import CIRCUIT
from delivery_tests.world.delivery_world import DeliveryWorld, plan, task
from delivery_tests.world.workspace_bench import Workbench
from interlock.carriers.contract import Ask
from interlock.carriers.function import AsyncHandler
from interlock.engine.case import Case
from interlock.journal.database import open_reader
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError
from interlock_delivery import steps
from interlock_delivery.checks.records import Check, Environment
from interlock_delivery.config import DeliveryConfig, DeliverySettings
from interlock_delivery.handlers import DeliveryHandlers
from interlock_delivery.inspection import TaskEnvironment
from interlock_delivery.open_tasks import OpenTasks
from interlock_delivery.plan.plan import Plan, Task
from interlock_delivery.worktrees.tree import TaskTree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace
from tests.world.crashes import boom, check_crash

PLAN = Plan(
    tasks=(Task("one"), Task("two", environment="box")),
    checks=(Check("Tests", ("true",)), Check("Lint", ("true",), environment="Desk")),
    environments=(Environment("Desk"), Environment("Box", ("docker", "run"))),
)


def build_config(workspace: DeliveryWorkspace, work: DeliverySettings) -> DeliveryConfig:
    return DeliveryConfig(
        plan="p", source="s", home=str(workspace.home), slug="plan", secret="x", work=work
    )


def ground(workspace: DeliveryWorkspace, work: DeliverySettings) -> TaskEnvironment:
    return TaskEnvironment(workspace, build_config(workspace, work), PLAN)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> DeliveryWorkspace:
    return Workbench(tmp_path_factory.mktemp("bench")).open_workspace()


class BrokenEnvironment(TaskEnvironment):
    def find_task(self, task_id: str) -> Task:
        return Task(str(boom()))

    def tree_of(self, case_id: str, step: str) -> TaskTree:
        return TaskTree(boom(), boom())


@pytest.mark.parametrize("step", [steps.PREPARE, steps.CHECK, steps.MERGE])
async def test_an_unexpected_error_in_our_own_work_ends_the_dispatch(
    workspace: DeliveryWorkspace, tmp_path: Path, step: str
) -> None:
    project = DeliveryWorld(tmp_path / "project", plan(task("one")))
    project.begin()
    here = BrokenEnvironment(workspace, build_config(workspace, DeliverySettings()), PLAN)
    ask = Ask(7, 1, "one", step, 1, "interlock", "", case_no=1, case=Case("one", step))
    with open_reader(project.db) as connection:
        tasks = OpenTasks(connection, 1, CIRCUIT, here)
        handlers = DeliveryHandlers(here, tasks, SystemClock(), boom)
        await check_crash(AsyncHandler(handlers), ask, tmp_path)


@given(
    first=st.integers(1, 65_000),
    ports=st.integers(1, 100),
    cases=st.sets(st.integers(1, 10_000), max_size=9),
)
def test_blocks_of_ports_are_legal_and_whole(
    workspace: DeliveryWorkspace, first: int, ports: int, cases: set[int]
) -> None:
    here = ground(workspace, DeliverySettings(first_port=first, ports=ports))
    for case_no in cases:
        found = here.ports_of(case_no)
        assert found is not None
        assert found[1] == ports
        assert (found[0] - first) % ports == 0
        assert first <= found[0] <= max(first, 65_536 - ports)


def test_no_ports_unless_asked_for(workspace: DeliveryWorkspace) -> None:
    assert ground(workspace, DeliverySettings()).ports_of(7) is None


def test_a_task_is_checked_where_it_says(workspace: DeliveryWorkspace) -> None:
    here = ground(workspace, DeliverySettings())
    assert [cell.pair for cell in here.build_cells(here.find_task("one"))] == [
        ("Tests", "Desk"),
        ("Tests", "Box"),
        ("Lint", "Desk"),
    ]
    assert [cell.pair for cell in here.build_cells(here.find_task("two"))] == [("Tests", "Box")]
    assert len(here.build_cells()) == 3


def test_a_task_that_is_not_there_is_an_error_that_says_so(workspace: DeliveryWorkspace) -> None:
    with pytest.raises(SourceError, match="not in the plan any more"):
        ground(workspace, DeliverySettings()).find_task("three")


def test_a_repair_has_a_tree_of_its_own(workspace: DeliveryWorkspace) -> None:
    here = ground(workspace, DeliverySettings())
    own, repair = here.tree_of("one", "CHECK"), here.tree_of("one", "HEALTH_CHECK")
    assert own.root != repair.root
    assert here.tree_of("one", "REMEDIATE") is repair
    assert Path(own.folder).is_dir()
