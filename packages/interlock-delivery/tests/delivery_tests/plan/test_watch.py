"""Test editing the plan during its run: what is added, read again and reported."""

from pathlib import Path

from delivery_tests.world.delivery_world import DeliveryWorld, develop, plan, task
from interlock.carriers.contract import Ask

OLD = "Add a function called"


class Editor:
    """A developer during whose first task the plan's file is rewritten."""

    def __init__(self, delivery: DeliveryWorld, text: str) -> None:
        self.world = delivery
        self.text = text
        self.done = False

    def __call__(self, ask: Ask, folder: Path) -> str:
        if not self.done:
            self.done = True
            self.world.plan.write_text(self.text)
            self.world.clock.ahead += 5
        return develop(ask, folder)


def edited(folder: Path, before: str, after: str) -> tuple[DeliveryWorld, str]:
    delivery = DeliveryWorld(folder, before)
    delivery.begin()
    status = delivery.work({"developer": Editor(delivery, after)}, parallel=1)
    return delivery, status


def test_a_new_task_joins(tmp_path: Path) -> None:
    one, two = task("sub"), task("dif", after="sub")
    delivery, status = edited(tmp_path, plan(one), plan(one, two))
    assert status == "done"
    assert delivery.ends() == {"sub": "COMPLETE", "dif": "COMPLETE"}


def test_a_changed_task_is_read_anew_with_what_it_waits_for(tmp_path: Path) -> None:
    changed = task("dif", after="mod").replace(OLD, "Please write one called")
    before = plan(task("sub"), task("dif", after="sub"), task("mod", after="sub"))
    after = plan(task("sub"), changed, task("mod", after="sub"))
    delivery, status = edited(tmp_path, before, after)
    assert status == "done"
    assert "Please write one called" in delivery.prompts("dif", "IMPLEMENT")[0]
    asked = [(ask.case_id, ask.step) for ask in delivery.asked]
    assert asked.index(("mod", "AUDIT")) < asked.index(("dif", "IMPLEMENT"))


def test_a_plan_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    one, two = task("sub"), task("dif", after="sub")
    delivery, status = edited(tmp_path, plan(one, two), plan(one, task("dif", after="nobody")))
    assert status == "done"
    (note,) = [note for note in delivery.notes if "edited" in note]
    assert "nobody" in note


def test_what_is_taken_out_is_still_finished_and_that_is_told(tmp_path: Path) -> None:
    one, two = task("sub"), task("dif", after="sub")
    delivery, status = edited(tmp_path, plan(one, two), plan(one))
    assert status == "done"
    assert delivery.ends() == {"sub": "COMPLETE", "dif": "COMPLETE"}
    assert any("dif: no longer in the plan" in note for note in delivery.notes)


def test_between_two_sittings_too(tmp_path: Path) -> None:
    """Test tasks that were removed, added and changed while nobody worked on the run."""
    delivery = DeliveryWorld(
        tmp_path, plan(task("sub"), task("dif", after="sub"), task("mod", after="sub"))
    )
    delivery.begin()

    def asks(ask: Ask, folder: Path) -> str:
        return f"SEEKING_DIVINE_CLARIFICATION\n\nTask: {ask.case_id}\n\nQuestion: Really?\n"

    assert delivery.work({"developer": asks}) == "waiting"
    changed = task("mod", after="sub").replace(OLD, "Please write one called")
    delivery.plan.write_text(plan(task("sub"), changed, task("new", after="mod")))
    delivery.answer(text="yes")
    assert delivery.work() == "done"
    assert set(delivery.ends()) == {"sub", "dif", "mod", "new"}
    assert set(delivery.ends().values()) == {"COMPLETE"}
    assert "Please write one called" in delivery.prompts("mod", "IMPLEMENT")[0]


def test_a_task_that_is_done_stays_done(tmp_path: Path) -> None:
    one, two = task("sub"), task("dif", after="sub")
    delivery = DeliveryWorld(tmp_path, plan(one))
    delivery.begin()
    assert delivery.work() == "done"
    delivery.plan.write_text(plan(one.replace(OLD, "Do it all again, one called"), two))
    assert delivery.work() == "done"
    assert len(delivery.prompts("sub", "IMPLEMENT")) == 1
    assert delivery.ends() == {"sub": "COMPLETE", "dif": "COMPLETE"}
