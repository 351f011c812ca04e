"""Wiring: from a user's words to concrete parts, or to what is wrong with the words."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.world.clock import FakeClock
from tests.world.paper import GOOD_CREW, PAPER

from interlock.agents.carrier import Carrier
from interlock.agents.command import CommandAgent
from interlock.agents.files.batch import BatchCarrier, ProgressGauge
from interlock.agents.files.file import FileCarrier, ManualCarrier
from interlock.agents.human import HumanCarrier
from interlock.agents.script import ScriptAgent
from interlock.agents.specs import agent
from interlock.agents.registry import FileOptions, file_carrier
from interlock.engine.circuit import HUMAN, Role
from interlock.engine.circuit_file import read_circuit
from interlock.runtime.agent_pool import (
    agents_by_role,
    carriers,
    roles_by_hand,
    roles_with,
    split_agent,
    with_patience,
    written_by_hand,
)
from interlock.runtime.settings import Settings, answers_folder, find_database, read_settings
from interlock.system.errors import SourceError

CIRCUIT = read_circuit(PAPER).circuit
PATIENT = read_circuit(PAPER.replace("    timeout: 10s\n", "", 1)).circuit
STAFFED = msgspec.structs.replace(
    CIRCUIT,
    roles={role.name: role for role in (Role("author"), Role("critic", 1, 5), Role("human"))},
)
WHO = (
    "who answers for {roles}? Say it with --agent {first}=exec:COMMAND "
    "or --agent {first}=script:FILE, or with --dispatch file, batch-file, manual or mcp "
    "for all that have no agent"
)


def project(folder: Path, text: str) -> Path:
    (folder / "interlock.toml").write_text(text, encoding="utf-8")
    return folder


FULL = """\
db = "data/my.db"
parallel = 3
agents = {author = "exec:a", "" = "script:b"}
slots = {author = 2}
budget = {dispatches = 10, money = 1.5, seconds = "2h"}
thresholds = {good = 4}
"""


def test_a_project_without_settings(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()
    assert find_database(tmp_path, None) == tmp_path / ".interlock" / "interlock.db"


def test_all_settings(tmp_path: Path) -> None:
    assert read_settings(project(tmp_path, FULL)) == Settings(
        db="data/my.db",
        parallel=3,
        agents={"author": "exec:a", "": "script:b"},
        slots={"author": 2},
        budget={"dispatches": 10, "money": 1.5, "seconds": "2h"},
        thresholds={"good": 4},
    )


def test_a_flag_goes_before_the_settings(tmp_path: Path) -> None:
    project(tmp_path, FULL)
    assert find_database(tmp_path, None) == tmp_path / "data" / "my.db"
    assert find_database(tmp_path, Path("x.db")) == Path("x.db")


def in_environment(folder: Path, **environment: str) -> str:
    code = (
        "from pathlib import Path; from interlock.system.errors import SourceError\n"
        "from interlock.runtime.settings import read_settings\n"
        "try:\n    found = read_settings(Path()); print(found.db, found.parallel)\n"
        "except SourceError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "data/my.db 3"),
        ({"INTERLOCK_DB": "other.db", "INTERLOCK_PARALLEL": "9"}, "other.db 9"),
        ({"INTERLOCK_DB": "", "INTERLOCK_PARALLEL": ""}, "data/my.db 3"),
        *(
            (
                {"INTERLOCK_PARALLEL": word},
                f"parallel (INTERLOCK_PARALLEL) must be a number from 1, not {word!r}",
            )
            for word in ("0", "-1", "many", "1.5", "²")
        ),
    ],
)
def test_the_environment_goes_before_the_file(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    assert in_environment(project(tmp_path, FULL), **environment) == said


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("parallel = 0", "parallel (INTERLOCK_PARALLEL) must be a number from 1, not 0"),
        ("parallel = -2", "parallel (INTERLOCK_PARALLEL) must be a number from 1, not -2"),
        ("parallel = 'x'", "{file}: Expected `int | null`, got `str` - at `$.parallel`"),
        ("paralel = 2", "{file}: Object contains unknown field `paralel`"),
        ("agents = {author = 1}", "{file}: Expected `str`, got `int` - at `$.agents[...]`"),
        ("db = ", "{file}: Invalid value (at end of document)"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_settings(project(tmp_path, text))
    assert str(caught.value) == problem.format(file=tmp_path / "interlock.toml")


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
def test_agents_by_role(given: dict[str, str], chosen: dict[str, str]) -> None:
    assert agents_by_role(CIRCUIT, given) == chosen


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
        agents_by_role(CIRCUIT, given)
    assert str(caught.value) == problem


def test_roles_with_the_same_words_share_a_carrier(tmp_path: Path) -> None:
    crew = tmp_path / "crew.yaml"
    crew.write_text(GOOD_CREW)
    specs = {"author": f"script:{crew}", "critic": f"script:{crew}", "press": "exec:sh -c true"}
    made = carriers(specs, tmp_path / "i.db", FakeClock())
    assert made["author"] is made["critic"]
    kinds = {role: type(each) for role, each in made.items()}
    assert kinds == {
        "author": ScriptAgent,
        "critic": ScriptAgent,
        "press": CommandAgent,
        "human": HumanCarrier,
    }
    assert answers_folder(tmp_path / "i.db") == tmp_path / "i.db.answers"


def test_a_script_can_stand_in_for_the_human(tmp_path: Path) -> None:
    crew = tmp_path / "crew.yaml"
    crew.write_text(GOOD_CREW)
    made = carriers({"human": f"script:{crew}"}, tmp_path / "i.db", FakeClock())
    assert isinstance(made["human"], ScriptAgent)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            "",
            "'' names no agent; use basic, acp:…, exec:…, script:… or a name of 'interlock agents'",
        ),
        (
            "claud",
            (
                "'claud' names no agent; use basic, acp:…, exec:…, script:… "
                "or a name of 'interlock agents'"
            ),
        ),
        (
            "exec:",
            (
                "'exec:' names no agent; use basic, acp:…, exec:…, script:… "
                "or a name of 'interlock agents'"
            ),
        ),
        (
            "http:x",
            (
                "'http:x' names no agent; use basic, acp:…, exec:…, script:… "
                "or a name of 'interlock agents'"
            ),
        ),
        ("exec:nosuch -x", "exec:nosuch -x: there is no command 'nosuch' to run"),
        ("acp:nosuch -x", "acp:nosuch -x: there is no command 'nosuch' to run"),
        ("acp:sh 'x", "acp:sh 'x: No closing quotation"),
        ("exec: ", "exec: : there is no command '' to run"),
        ("exec:sh 'x", "exec:sh 'x: No closing quotation"),
        ("script:/nosuch.yaml", "/nosuch.yaml cannot be read: No such file or directory"),
    ],
)
def test_agents_that_are_none(spec: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        agent(spec, FakeClock())
    assert str(caught.value) == problem


def test_slots_of_a_user_go_before_the_circuits() -> None:
    assert roles_with(STAFFED, {"author": 2}) == {
        "author": Role("author", 2),
        "critic": Role("critic", 1, 5),
        "human": Role("human"),
    }


@pytest.mark.parametrize("slots", [{"nobody": 1}, {"author": 0}, {"author": -1}])
def test_slots_that_are_none(slots: dict[str, int]) -> None:
    with pytest.raises(SourceError) as caught:
        roles_with(STAFFED, slots)
    ((name, places),) = slots.items()
    assert str(caught.value) == (
        f"slots {name}={places}: give at least 1 to one of author, critic, human"
    )


def filed(word: str, folder: Path, **settings: Any) -> Mapping[str, Carrier]:
    files = FileOptions(word, root=str(folder / "runs"), **settings)
    specs = agents_by_role(CIRCUIT, {"critic": "exec:cat"}, word)
    made = file_carrier(files, CIRCUIT, FakeClock(), ProgressGauge(), tokens=0)
    return carriers(specs, folder / "db", FakeClock(), made)


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
    assert written_by_hand(found) == hands
    assert roles_by_hand(found) == {HUMAN, *hands}


@pytest.mark.parametrize("spec", ["exec:cat", "file", "batch-file", "manual"])
def test_a_gate_that_somebody_else_answers_is_not_left_to_a_later_command(
    tmp_path: Path, spec: str
) -> None:
    files = file_carrier(FileOptions(root=str(tmp_path)), CIRCUIT, FakeClock(), ProgressGauge(), tokens=0)
    found = carriers({"author": "exec:cat", HUMAN: spec}, tmp_path / "db", FakeClock(), files)
    assert roles_by_hand(found) == ({HUMAN} if spec == "manual" else set())


@pytest.mark.parametrize(
    ("word", "timeout"), [("file", 600.0), ("batch-file", 600.0), ("manual", None)]
)
def test_a_step_without_a_timeout_gets_one_where_files_are_watched(
    tmp_path: Path, word: str, timeout: float | None
) -> None:
    found = with_patience(PATIENT, filed(word, tmp_path))
    assert found.steps["write"].timeout == timeout
    assert found.steps["judge"].timeout == PATIENT.steps["judge"].timeout


def test_an_agent_for_all_goes_before_files() -> None:
    chosen = agents_by_role(CIRCUIT, {"": "exec:cat"}, "file")
    assert chosen == {"author": "exec:cat", "critic": "exec:cat"}
