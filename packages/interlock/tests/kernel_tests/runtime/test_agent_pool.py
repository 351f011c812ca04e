"""Who answers each role: from a configuration to carriers, or to what is wrong with its words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.contract import Carrier
from interlock.carriers.exec import CommandAgent
from interlock.carriers.files.batch import BatchCarrier
from interlock.carriers.files.file import FileCarrier, ManualCarrier
from interlock.carriers.human import HumanCarrier
from interlock.carriers.script import ScriptAgent
from interlock.engine.circuit import HUMAN, Circuit, Role
from interlock.engine.circuit_file import read_circuit
from interlock.runtime.agent_pool import (
    assign_agents,
    assign_slots,
    build_agent_pool,
    roles_answered_later,
    roles_written_out,
    split_agent,
)
from interlock.runtime.settings import RunConfig, Settings
from interlock.system.errors import SourceError
from tests.world.clock import FakeClock
from tests.world.sample_circuit import GOOD_SCRIPT, PAPER

CIRCUIT = read_circuit(PAPER).circuit
PATIENT = read_circuit(PAPER.replace("    timeout: 10s\n", "", 1)).circuit
STAFFED = msgspec.structs.replace(
    CIRCUIT,
    roles={role.name: role for role in (Role("author"), Role("critic", 1, 5), Role("human"))},
)
WHO = (
    "no agent is named for {roles}; use --agent {first}=exec:COMMAND "
    "or --agent {first}=script:FILE, or --dispatch file, batch-file, manual or mcp "
    "for all roles without an agent"
)


@pytest.mark.parametrize(
    ("word", "pair"),
    [
        ("author=exec:run --x=1", ("author", "exec:run --x=1")),
        ("exec:env A=b run", ("", "exec:env A=b run")),
        ("script:a=b.yaml", ("", "script:a=b.yaml")),
        ("=exec:x", ("", "=exec:x")),
        ("exec:x", ("", "exec:x")),
    ],
)
def test_split_agent(word: str, pair: tuple[str, str]) -> None:
    assert split_agent(word) == pair


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({"": "exec:x"}, {"author": "exec:x", "critic": "exec:x"}),
        ({"": "exec:x", "author": "exec:y"}, {"author": "exec:y", "critic": "exec:x"}),
        (
            {"": "exec:x", "human": "script:s"},
            {"author": "exec:x", "critic": "exec:x", "human": "script:s"},
        ),
    ],
)
def test_who_answers_each_role(given: dict[str, str], chosen: dict[str, str]) -> None:
    assert assign_agents(CIRCUIT, given) == chosen


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {},
            WHO.format(roles="author, critic", first="author"),
        ),
        (
            {"author": "exec:x"},
            WHO.format(roles="critic", first="critic"),
        ),
        (
            {"": "exec:x", "autor": "exec:y"},
            "no step has the role 'autor'; roles are author, critic, human",
        ),
    ],
)
def test_roles_that_do_not_fit(given: dict[str, str], problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        assign_agents(CIRCUIT, given)
    assert str(caught.value) == problem


def pool_for(folder: Path, circuit: Circuit = CIRCUIT, **config: Any) -> Mapping[str, Carrier]:
    made = build_agent_pool(
        circuit,
        RunConfig(**config),
        settings=Settings(),
        project=folder,
        db=folder / "i.db",
        clock=FakeClock(),
    )
    return made.carriers


def test_roles_with_the_same_words_share_a_carrier(tmp_path: Path) -> None:
    (tmp_path / "crew.yaml").write_text(GOOD_SCRIPT)
    made = pool_for(tmp_path, agents={"": "script:crew.yaml"})
    assert made["author"] is made["critic"]
    other = pool_for(tmp_path, agents={"": "script:crew.yaml", "critic": "exec:sh -c true"})
    kinds = {role: type(each) for role, each in other.items()}
    assert kinds == {"author": ScriptAgent, "critic": CommandAgent, "human": HumanCarrier}


def test_a_script_can_stand_in_for_the_human(tmp_path: Path) -> None:
    (tmp_path / "crew.yaml").write_text(GOOD_SCRIPT)
    made = pool_for(tmp_path, agents={"": "script:crew.yaml", "human": "script:crew.yaml"})
    assert isinstance(made["human"], ScriptAgent)


NONE = "{!r} names no agent; use exec:COMMAND, acp:COMMAND, script:FILE or a name that "
NONE += "'interlock agents' lists"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("claud", NONE.format("claud")),
        ("http:x", NONE.format("http:x")),
        ("exec:", "exec: there is no command '' to run"),
        ("script:", "script: names no file; use script:FILE"),
        ("exec:nosuch -x", "exec:nosuch -x: there is no command 'nosuch' to run"),
        ("acp:nosuch -x", "acp:nosuch -x: there is no command 'nosuch' to run"),
        ("acp:sh 'x", "acp:sh 'x: No closing quotation"),
        ("exec: ", "exec: : there is no command '' to run"),
        ("exec:sh 'x", "exec:sh 'x: No closing quotation"),
        ("script:/nosuch.yaml", "/nosuch.yaml cannot be read: No such file or directory"),
        ("basic", "the built-in analyst answers only for rca, not for paper"),
    ],
)
def test_agents_that_are_none(tmp_path: Path, spec: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        pool_for(tmp_path, agents={"": spec})
    assert str(caught.value) == problem


def test_slots_of_a_user_go_before_the_circuits() -> None:
    assert assign_slots(STAFFED, {"author": 2}) == {
        "author": Role("author", 2),
        "critic": Role("critic", 1, 5),
        "human": Role("human"),
    }


@pytest.mark.parametrize("slots", [{"nobody": 1}, {"author": 0}, {"author": -1}])
def test_slots_that_are_none(slots: dict[str, int]) -> None:
    with pytest.raises(SourceError) as caught:
        assign_slots(STAFFED, slots)
    ((name, places),) = slots.items()
    assert str(caught.value) == (
        f"slots {name}={places}: give at least 1 to one of author, critic, human"
    )


def filed(word: str, folder: Path) -> Mapping[str, Carrier]:
    return pool_for(folder, agents={"critic": "exec:cat"}, files={"dispatch": word})


@pytest.mark.parametrize(
    ("word", "kind"),
    [("file", FileCarrier), ("batch-file", BatchCarrier), ("manual", ManualCarrier)],
)
def test_roles_without_an_agent_are_carried_by_files(
    tmp_path: Path, word: str, kind: type[object]
) -> None:
    found = filed(word, tmp_path)
    assert type(found["author"]) is kind
    assert type(found["critic"]) is CommandAgent
    hands = {"author"} if word == "manual" else set()
    assert roles_written_out(found) == hands
    assert roles_answered_later(found) == {HUMAN, *hands}


@pytest.mark.parametrize("spec", ["exec:cat", "file", "batch-file", "manual"])
def test_a_gate_that_somebody_else_answers_is_not_left_to_a_later_command(
    tmp_path: Path, spec: str
) -> None:
    found = pool_for(tmp_path, agents={"": "exec:cat", HUMAN: spec})
    assert roles_answered_later(found) == ({HUMAN} if spec == "manual" else set())


@pytest.mark.parametrize(
    ("word", "timeout"), [("file", 600.0), ("batch-file", 600.0), ("manual", None)]
)
def test_a_step_without_a_timeout_gets_one_where_files_are_watched(
    tmp_path: Path, word: str, timeout: float | None
) -> None:
    assert filed(word, tmp_path)["author"].traits.default_timeout == timeout


def test_an_agent_for_all_goes_before_files() -> None:
    chosen = assign_agents(CIRCUIT, {"": "exec:cat"}, "file")
    assert chosen == {"author": "exec:cat", "critic": "exec:cat"}
