"""A project's settings: what may stand in interlock.toml, and what goes before it."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from interlock.runtime.settings import Settings, find_database, read_settings
from interlock.system.errors import SourceError


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
    assert read_settings(tmp_path) == Settings(file=str(tmp_path / "interlock.toml"))
    assert find_database(tmp_path, None) == tmp_path / ".interlock" / "interlock.db"


def test_all_settings(tmp_path: Path) -> None:
    found = read_settings(project(tmp_path, FULL))
    assert msgspec.structs.replace(found, file="", written={}) == Settings(
        file="",
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
        timeout=120,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("environment", "result"),
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
    tmp_path: Path, environment: dict[str, str], result: str
) -> None:
    assert in_environment(project(tmp_path, FULL), **environment) == result


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


class Boats(msgspec.Struct, frozen=True):
    """Tables that some application reads."""

    repo: list[dict[str, str]] = []
    last_green: str = ""


def test_tables_of_applications_are_known_by_name_and_read_by_their_owner(tmp_path: Path) -> None:
    found = read_settings(project(tmp_path, "last_green = 'v1'\n[[repo]]\nname = 'boat'\n"))
    assert found.read_tables(Boats) == Boats([{"name": "boat"}], "v1")


def test_a_table_that_does_not_fit_is_told_to_its_owner(tmp_path: Path) -> None:
    found = read_settings(project(tmp_path, "last_green = 3\n"))
    with pytest.raises(SourceError) as caught:
        found.read_tables(Boats)
    file = tmp_path / "interlock.toml"
    assert str(caught.value) == f"{file}: Expected `str`, got `int` - at `$.last_green`"
