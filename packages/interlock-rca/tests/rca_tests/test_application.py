"""Wiring of root cause analysis: who of ours answers what, and what was agreed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.contract import Carrier
from interlock.carriers.function import Handler
from interlock.carriers.human import HumanCarrier
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.circuit import HUMAN
from interlock.journal.database import open_writer
from interlock.journal.runs import find_run
from interlock.runtime.application import RunSetup, find_application
from interlock.runtime.settings import Settings
from interlock.system.errors import SourceError
from interlock_rca.application import BuiltinAnalystRole, Rca
from interlock_rca.config import RcaConfig
from interlock_rca.hooks import RcaHooks
from interlock_rca.prompt_data.subject import PARAMETER_NAMES
from rca_tests.worlds.analysis_world import AnalysisWorld, launch, make_failure, write_script
from tests.world.clock import FakeClock
from tests.world.world import World


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    found = AnalysisWorld(tmp_path)
    found.take_in(launch(make_failure("alpha")))
    return found


def staffed(
    room: AnalysisWorld, agent: Carrier, terms: RcaConfig
) -> tuple[RunSetup, Mapping[str, Carrier]]:
    given: dict[str, Carrier] = dict.fromkeys(room.circuit.roles, agent)
    given[HUMAN] = HumanCarrier(room.answers, room.clock)
    with open_writer(room.db) as connection:
        run = find_run(connection, 1)
        ours = Rca("rca").set_up_run(
            connection, run, room.circuit, given, msgspec.to_builtins(terms), clock=room.clock
        )
        return ours, given


def script(room: AnalysisWorld) -> Carrier:
    return ScriptAgent(read_script(write_script(), "crew"), room.clock)


def test_the_analyst_takes_the_vacant_places_and_reads_no_prompts(room: AnalysisWorld) -> None:
    ours, given = staffed(room, BuiltinAnalystRole(), RcaConfig())
    assert isinstance(ours.hooks, RcaHooks)
    assert ours.hooks.families is not None, "it investigates families"
    assert ours.carriers[HUMAN] is given[HUMAN]
    desks = {id(ours.carriers[role]) for role in room.circuit.roles if role != HUMAN}
    assert len(desks) == 1, "roles that share a carrier still share one"
    assert isinstance(ours.carriers["recall"], Handler)
    written = {step.prompt for step in ours.circuit.steps.values() if step.role != HUMAN}
    assert written == {"The built-in analyst was asked."}
    gate = next(step for step in ours.circuit.steps.values() if step.role == HUMAN)
    assert "{{" in gate.prompt, "a human reads"


@pytest.mark.parametrize(
    ("terms", "ahead", "reviews"),
    [
        (RcaConfig(), False, False),
        (RcaConfig(families=True), True, False),
        (RcaConfig(recall_first=True), True, False),
        (RcaConfig(review="auto"), False, True),
        (RcaConfig(review="dispatch"), False, False),
    ],
)
def test_our_programs_go_before_agents_only_where_that_was_agreed(
    room: AnalysisWorld, terms: RcaConfig, ahead: bool, reviews: bool
) -> None:
    ours, given = staffed(room, script(room), terms)
    for role in room.circuit.roles:
        found, expected = ours.carriers[role], reviews if role == HUMAN else ahead
        assert (found is not given[role]) == expected, role
        if expected:
            assert isinstance(found, Handler)
            assert found.inner is given[role]
    assert ours.circuit.steps == room.circuit.steps


def test_another_circuit_needs_none_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin("A")
    given: dict[str, Carrier] = {"author": BuiltinAnalystRole()}
    with open_writer(world.db) as connection:
        ours = find_application("paper").set_up_run(
            connection, find_run(connection, 1), world.circuit, given, {}, clock=FakeClock()
        )
    assert ours.carriers == given
    assert ours.circuit is world.circuit


def test_what_a_project_agrees_to(tmp_path: Path) -> None:
    def terms_of(**tables: Any) -> RcaConfig:
        terms = Rca("rca").default_config(Settings(written=tables), tmp_path)
        return msgspec.convert(terms, RcaConfig)

    terms = terms_of(
        repo=[{"name": "boat", "path": "boat", "purpose": "floats"}],
        last_green="v1",
        defect_codes={"leak": "firmware"},
    )
    assert [each.name for each in terms.repos] == ["boat"]
    assert (terms.last_green, terms.codes) == ({"": "v1"}, {"leak": "firmware"})
    assert Path(terms.cache).is_relative_to(tmp_path)
    assert terms_of(last_green={"boat": "v2"}).last_green == {"boat": "v2"}
    assert terms_of().last_green == {}


def test_a_code_of_no_category_is_refused_before_anything_begins(room: AnalysisWorld) -> None:
    with pytest.raises(SourceError, match="'leak' has the category 'goblins'; use one of product"):
        staffed(room, script(room), RcaConfig(codes={"leak": "goblins"}))


def test_the_prompts_of_rca_read_more_names_than_those_of_other_circuits() -> None:
    assert find_application("rca").prompt_names == PARAMETER_NAMES
    assert find_application("note").prompt_names == ()
