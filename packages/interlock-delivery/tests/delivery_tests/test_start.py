"""Test how a delivery begins: its agents and its name."""

from pathlib import Path

from interlock.runtime.settings import RoleSettings, RunConfig, Settings
from interlock_delivery.start import DeliveryOptions, add_role_settings, add_stand_ins, choose_slug


def test_three_agents_are_enough() -> None:
    named = {"developer": "exec:d", "critic": "exec:c", "auditor": "exec:a", "expert": "exec:e"}
    found = add_stand_ins(RunConfig(agents=named)).agents
    assert found == named | {
        "business-analyst": "exec:d",
        "remediation": "exec:d",
        "expert-maker": "exec:c",
        "health-auditor": "exec:a",
    }


def test_one_for_all_needs_no_stand_in() -> None:
    options = RunConfig(agents={"": "exec:x", "developer": "exec:d"})
    assert add_stand_ins(options) == options


def test_roles_of_the_project() -> None:
    usual = Settings(
        roles={"developer": RoleSettings("claude", "opus", 4), "critic": RoleSettings()}
    )
    found = add_role_settings(RunConfig(agents={"": "codex"}), usual)
    assert found.agents == {"": "codex", "developer": "claude:opus"}
    assert found.slots == {"developer": 4}


def test_every_delivery_has_a_name_of_its_own(tmp_path: Path) -> None:
    options = DeliveryOptions(tmp_path / "My Plan (v2).md", tmp_path, "HEAD", False, False)
    db = tmp_path / ".interlock" / "interlock.db"
    spelled = DeliveryOptions(tmp_path / "Änderungen für Größe à la carte.md", tmp_path)
    assert choose_slug(spelled, db) == "aenderungen-fuer-groesse-a-la-carte"
    assert choose_slug(options, db) == "my-plan-v2"
    (tmp_path / ".interlock" / "delivery" / "my-plan-v2").mkdir(parents=True)
    assert choose_slug(options, db) == "my-plan-v2-2"
