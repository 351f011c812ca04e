"""doctor: a whole document whatever it finds, exit 6 when something is bad."""

import os
import re
import sqlite3
import subprocess

import pytest

from tests.world import triage
from tests.world.command_line import CliResult, World

FIT = """\
ok    machine.python: Python VERSION
note  machine.sqlite: SQLite VERSION
ok    store.file: .interlock/interlock.db, BYTES bytes
ok    store.writer: nobody writes to it
ok    store.schema: journal 1, rca 1, 1 run
"""
APART = "BAD   store.fold: run 1, case A: the journal says ended at look, its row says ended"
FOLD = "ok    store.fold: 1 run: every case is the fold of its journal\n"


def test_doctor_before_anything_ran(world: World) -> None:
    result = world.say("doctor", "--deep")
    assert result.code == 0
    assert (
        result.out.splitlines()[-1]
        == "note  store.file: no database at .interlock/interlock.db yet"
    )
    assert not world.db.parent.exists()


def test_doctor_and_doctor_deep(world: World) -> None:
    triage.done(world)
    assert _mask_versions(world.say("doctor")) == CliResult(0, FIT, "")
    assert _mask_versions(world.say("doctor", "--deep")) == CliResult(0, FIT + FOLD, "")
    found = world.say("doctor", "--deep", "--json").json
    assert found["ok"] is True
    assert [each["id"] for each in found["checks"]] == re.findall(
        r"[a-z]+\.[a-z]+(?=:)", FIT + FOLD
    )


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        (
            "update cases set step = 'elsewhere' where case_id = 'A'",
            f"{APART} at elsewhere, or they differ in loops, visits or context",
        ),
        (
            'update cases set state = \'{"moves": 9, "end": "kept"}\' where case_id = \'A\'',
            f"{APART} at look, or they differ in loops, visits or context",
        ),
        (
            "update blobs set data = cast('{}' as blob) where cast(data as text) like '%0.9%'",
            "BAD   store.altered: blob NUMBER: its content has changed since it was written",
        ),
        (
            "update journal set decision = 'gone' where dispatch_id = 6",
            "BAD   store.unreadable: run 1: JSON is malformed: invalid character (byte 0)",
        ),
        (
            "delete from journal where dispatch_id = 6",
            "BAD   store.lost: dispatch 6: it was sent, but is neither settled nor awaited",
        ),
    ],
)
def test_doctor_deep_finds_what_was_tampered_with(
    world: World, statement: str, finding: str
) -> None:
    triage.done(world)
    _change(world, statement)
    result = world.say("doctor", "--deep")
    assert result.code == 6
    assert finding in re.sub(r"blob \d+", "blob NUMBER", result.out).splitlines()
    assert world.say("doctor").code == 0
    found = world.say("doctor", "--deep", "--json")
    assert (found.code, found.json["ok"]) == (6, False)


def test_doctor_deep_survives_a_blob_that_cannot_be_unpacked(world: World) -> None:
    triage.done(world)
    _change(world, "update blobs set packed = 1 where cast(data as text) like '%0.9%'")
    result = world.say("doctor", "--deep")
    assert (result.code, result.err) == (6, "")
    assert "BAD   store." in result.out


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_doctor_of_a_database_that_was_cut_off(world: World, length: int) -> None:
    triage.done(world)
    os.truncate(world.db, length)
    for words in (("doctor",), ("doctor", "--deep")):
        result = world.say(*words)
        assert (result.code, result.err) == (6, "")
        assert "BAD   store.unreadable: .interlock/interlock.db: " in result.out
    assert world.say("doctor", "--json").json["ok"] is False


def _mask_versions(result: CliResult) -> CliResult:
    """Without what differs from machine to machine."""
    text = re.sub(r"Python \d\S+", "Python VERSION", result.out)
    text = re.sub(r"SQLite \d\S+.*", "SQLite VERSION", text)
    text = text.replace("ok    machine.sqlite", "note  machine.sqlite")
    return CliResult(result.code, re.sub(r"[\d,]+ bytes", "BYTES bytes", text), result.err)


def _change(world: World, statement: str) -> None:
    connection = sqlite3.connect(world.db)
    with connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


def test_a_notify_command_that_is_missing_is_found_here_and_stops_no_run(world: World) -> None:
    triage.lay_out(world)
    world.write("interlock.toml", "[notify]\ncommand = ['nosuch-bell']\n")
    result = world.say(*triage.RUN)
    assert result.code == 3
    assert result.err == "note: notify command 'nosuch-bell': No such file or directory\n"
    found = world.say("doctor")
    assert found.code == 6
    assert "BAD   notify.command: there is no command 'nosuch-bell'" in found.out
    world.write("interlock.toml", "[notify]\ncommand = ['true']\n")
    assert "ok    notify.command: true" in world.say("doctor").out


def test_users_who_may_answer_but_cannot_reach_the_database(world: World) -> None:
    triage.done(world)
    world.write("interlock.toml", "[inbox]\nanswerers = ['ann', 'bob']\n")
    found = world.say("doctor").out
    assert "note  store.shared: .interlock and interlock.db are for one user alone" in found
    assert "if ann, bob shall answer here: chgrp -R GROUP .interlock" in found
    for command in ("chmod -R g+rwX .interlock", "chmod g+s .interlock"):
        subprocess.run(command.split(), cwd=world.folder, check=True)
    assert "ok    store.shared: .interlock is shared with its group" in world.say("doctor").out
