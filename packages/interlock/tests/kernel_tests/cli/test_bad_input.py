"""Bad input at the door: one clear sentence, the right exit code, and nothing half-written."""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable

import pytest

from tests.world import triage
from tests.world.command_line import CliResult, World

CASES = "cases.jsonl"
ID_RULE = "letters, digits, '.', '_', '#' and '-', at most 128, starting with a letter or digit"
NAME_RULE = "a letter, then letters, digits, - and _, at most 64, and not AGAIN, ANY, BACK"
CONTROLS = "unacceptable character #x0000: control characters are not allowed"
EXAMPLE = 'write one JSON object, for example {"id": "C1", "topic": "login"}'
GUARDS = (
    "use names, constants, and/or/not, comparisons, in, len(name) and has(name); "
    "for example: match and confidence >= recall_hit"
)


def _with(old: str, new: str) -> str:
    assert triage.CIRCUIT.count(old) == 1, old
    return triage.CIRCUIT.replace(old, new)


def _guard(text: str) -> str:
    return _with("confidence >= sure", json.dumps(text))


CIRCUITS = {
    "bomb": (
        "a: &a [x, x]\nb: &b [*a, *a]\ncircuit: *b\n",
        "1: anchors and aliases (&name, *name) are not used here; write the value out",
    ),
    "tag": (
        _with("version: 3", "version: !!python/object/apply:os.system [id]"),
        "2: tags (!name, !!name) are not used here; write the plain value",
    ),
    "twice": (
        _with("version: 3", "version: 3\nversion: 4"),
        "3: 'version' is written twice; keep one of them",
    ),
    "tab": (_with("  look:", "\tlook:"), "9: there is a tab; YAML is indented with spaces"),
    "type": (_with("max_steps: 10", "max_steps: ten"), "7: max_steps: expected `int`, got `str`"),
    "duration": (
        _with("timeout: 1m", "timeout: soon"),
        "11: timeout: 'soon' is not a duration; write 90s, 10m, 2h or 7d",
    ),
    "field": (
        _with("version: 3", "verzion: 3"),
        "2: 'verzion' is not a field of the circuit; did you mean 'version'?",
    ),
    "name": (
        _with("circuit: triage", "circuit: ../triage"),
        f"1: '../triage' is not a valid name here: {NAME_RULE}",
    ),
    "list": ("- a\n", "1: the circuit: expected `object`, got `array`"),
    "empty": ("", " the file is empty"),
    "deep": ("a: " + "[" * 5000, "1: nested deeper than 40 levels"),
    "binary": (
        "\x00\x01",
        f"1: this is not readable as YAML: {CONTROLS}",
    ),
    "call": (
        _guard("open('/etc/passwd')"),
        "18: rule 'sure': \"open('/etc/passwd')\" is not allowed in \"open('/etc/passwd')\"; "
        + GUARDS,
    ),
    "dunder": (
        _guard("confidence.__class__"),
        "18: rule 'sure': 'confidence.__class__': names do not start with an underscore",
    ),
    "power": (
        _guard("9**9**9 > sure"),
        f"18: rule 'sure': '9**9**9' is not allowed in '9**9**9 > sure'; {GUARDS}",
    ),
    "nested": (
        _guard("not " * 200 + "confidence"),
        "18: rule 'sure': the expression is nested deeper than 25 levels",
    ),
    "long": (
        _guard("confidence >= sure and " * 100 + "confidence >= sure"),
        "18: rule 'sure': an expression has at most 1000 characters, not 2318",
    ),
    "escape": (
        _with("Look at {{ case.topic }}.", "../../../etc/passwd.txt"),
        " prompt '../../../etc/passwd.txt' must lie beside the circuit",
    ),
}


@pytest.mark.parametrize("name", CIRCUITS)
def test_a_hostile_circuit(world: World, name: str) -> None:
    triage.lay_out(world)
    text, problem = CIRCUITS[name]
    world.write("bad.yaml", text)
    sentence = f"interlock: bad.yaml:{problem}\n"
    assert _run(world, "bad.yaml") == CliResult(2, "", sentence)
    assert world.say("circuit", "show", "bad.yaml", "--json") == CliResult(2, "", sentence)
    found = world.say("circuit", "verify", "bad.yaml", "--json")
    assert (found.code, found.err) == (6, "")
    assert [each["id"] for each in found.json["findings"]] == ["circuit.unreadable"]
    assert not world.db.parent.exists()


def test_a_circuit_of_ten_megabytes(world: World) -> None:
    triage.lay_out(world)
    world.write("bad.yaml", triage.CIRCUIT + "#" * 10_000_000)
    result = _run(world, "bad.yaml")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("interlock: bad.yaml: 10,")
    assert "4,000,000" in result.err


def test_a_prompt_file_that_is_missing(world: World) -> None:
    triage.lay_out(world)
    world.write("bad.yaml", _with("Look at {{ case.topic }}.", "look.md"))
    missing = world.folder / "look.md"
    assert _run(world, "bad.yaml") == CliResult(
        2,
        "",
        f"interlock: bad.yaml: prompt 'look.md': {missing} cannot be read: "
        "No such file or directory\n",
    )


@pytest.mark.parametrize(
    "case_id", ["../x", "a/b", "", "x" * 10_000, "a b", "\x1b[31m", ".hidden", "-x", "ü"]
)
def test_a_hostile_id(world: World, case_id: str) -> None:
    triage.lay_out(world).cases(case_id)
    sentence = f"interlock: cases.jsonl:1: {case_id[:60]!r} is not a case id: {ID_RULE}\n"
    assert _run(world) == CliResult(2, "", sentence)
    assert not world.db.parent.exists()
    assert world.say("explain", case_id).code in (1, 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ' has no cases; write one per line, for example {"id": "C1"}'),
        ("\n \n", ' has no cases; write one per line, for example {"id": "C1"}'),
        ('{"id": "A"}\n{"id": "A"}\n', ":2: case 'A' is already in line 1"),
        ('{"id": "A", "after": ["B"]}', ": case 'A' comes after 'B', which is not in the file"),
        (
            '{"id": "A", "after": ["B"]}\n{"id": "B", "after": ["A"]}',
            ": these cases wait for each other: A after B after A",
        ),
    ],
)
def test_cases_that_do_not_go_together(world: World, text: str, problem: str) -> None:
    triage.lay_out(world).write(CASES, text)
    assert _run(world) == CliResult(2, "", f"interlock: cases.jsonl{problem}\n")
    assert not world.db.parent.exists()


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[1]",
        '{"topic": "no id"}',
        '{"id": null}',
        '{"id": 1.5}',
        '{"id": "A", "after": "B"}',
        '{"id": "A", "priority": "high"}',
        '{"id": "A", "x": NaN}',
        '{"id": "A", "x": 1e999}',
        '{"id": "A", "x": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"id": "A"',
        '{"id": "A", "x": "\x00"}',
    ],
)
def test_a_line_that_is_no_case(world: World, line: str) -> None:
    triage.lay_out(world).write(CASES, f'{{"id": "first"}}\n{line}\n')
    result = _run(world)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("interlock: cases.jsonl:2: ")
    assert result.err.endswith(f"; {EXAMPLE}\n")
    assert not world.db.parent.exists()


def test_cases_that_cannot_be_read(world: World) -> None:
    triage.lay_out(world)
    (world.folder / CASES).write_bytes(b'{"id": "A", "x": "\xff"}\n')
    result = _run(world)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("interlock: cases.jsonl:1: ")
    (world.folder / CASES).unlink()
    missing = "interlock: cases.jsonl cannot be read: No such file or directory\n"
    assert _run(world) == CliResult(2, "", missing)


NO_DATABASE = "this is not an Interlock database: move it away or name another with --db"
DAMAGED = "it is damaged: restore a copy, or move it away to start over"
NEWER = (
    "its journal tables have version 99, this Interlock knows 1: use the newer Interlock that "
    "made it"
)


def _newer(world: World) -> None:
    _execute(world, "update schema_versions set version = 99 where part = 'journal'")


def _other(world: World) -> None:
    world.db.unlink()
    _execute(world, "create table mine (x)")


DATABASES: dict[str, tuple[Callable[[World], object], str]] = {
    "text": (lambda world: world.db.write_text("hello " * 1000), NO_DATABASE),
    "empty": (lambda world: os.truncate(world.db, 0), NO_DATABASE),
    "another program's": (_other, NO_DATABASE),
    "cut off": (lambda world: os.truncate(world.db, 5000), DAMAGED),
    "newer": (_newer, NEWER),
}


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_that_cannot_be_used_is_left_as_it_is(world: World, name: str) -> None:
    triage.done(world)
    spoil, problem = DATABASES[name]
    spoil(world)
    before = world.db.read_bytes()
    for words in (triage.RUN, ["resume"], ["status"], ["explain", "A"], ["answer", "1", "approve"]):
        result = world.say(*words)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"interlock: .interlock/interlock.db: {problem}")
    assert world.db.read_bytes() == before
    assert world.say("doctor").code == 6


def test_a_database_that_is_a_folder(world: World) -> None:
    triage.lay_out(world)
    for flag in (".", "circuits"):
        folder = (
            f"interlock: the database {flag} is a folder; name a file, "
            "for example .interlock/interlock.db\n"
        )
        assert world.say(*triage.RUN, "--db", flag) == CliResult(2, "", folder)
        assert world.say("status", "--db", flag) == CliResult(2, "", folder)


def test_a_database_that_another_program_has_locked(world: World) -> None:
    triage.done(world)
    other = sqlite3.connect(world.db, isolation_level=None)
    other.execute("begin exclusive")
    try:
        result = world.say(*triage.RUN)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(
            "interlock: .interlock/interlock.db: another program holds it locked: "
            "close that program and try again"
        )
        assert world.say("status").code == 0, "readers never wait"
    finally:
        other.close()


@pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="root writes anywhere")
def test_a_database_that_is_read_only(world: World) -> None:
    triage.done(world)
    world.db.chmod(0o444)
    world.db.parent.chmod(0o555)
    try:
        for words in (triage.RUN, ("resume",)):
            result = _bound(world, *words)
            assert (result.code, result.out) == (1, "")
            assert result.err.startswith(
                "interlock: .interlock/interlock.db: it is read-only: make the file and its folder "
                "writable, or use --db elsewhere"
            )
        found = _bound(world, "doctor")
        assert found.code == 6
        assert "read-only; make the file and its folder writable, or use --db" in found.out
        result = _bound(world, "explain", "B")
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    finally:
        world.db.parent.chmod(0o755)


def test_an_agent_that_prints_a_hundred_megabytes(world: World) -> None:
    triage.lay_out(world).cases("A")
    flood = "import sys\nfor _ in range(100): sys.stdout.write('x' * 1_000_000)"
    agent = world.write("flood.py", flood)
    result = world.say(*triage.RUN[:-1], f"exec:{sys.executable} {agent}")
    assert result.out.startswith("run 1: unhealthy; 1 dropped; 1 dispatch\n")
    assert "unreadable: the answer is longer than 1,048,576 bytes" in world.say("status").out
    assert world.db.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ('{"confidence": NaN}', "Malformed"),
        ('{"confidence": 2}', "Malformed"),
        ('{"confidence": 0.9} and more', "Malformed"),
        ("[" * 100_000, "Malformed"),
        ('{"a": ' * 200 + "1" + "}" * 200, "Malformed"),
        ("", "Missing"),
        ('{"signal": "APPROVED", "data": {}}', "Unknown"),
        ('{"signal": "timeout", "data": {}}', "Unknown"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_and_kept(
    world: World, answer: str, word: str
) -> None:
    triage.lay_out(world).cases("A")
    world.write("answer.txt", answer)
    result = world.say(*triage.RUN[:-1], "exec:cat answer.txt")
    assert result.out.startswith("run 1: unhealthy; 1 dropped; 1 dispatch\n")
    refused = world.say("explain", "A", "--json").json["dispatches"][0]["refused"]
    assert [each["reason"] for each in refused] == [word]
    assert answer.startswith(refused[0]["content"])


def _bound(world: World, *words: str) -> CliResult:
    """The command, bound by the rights of files even for root."""
    bound = ("setpriv", "--bounding-set", "-dac_override", "--")
    return world.type(*words, before=bound if os.getuid() == 0 else ())


def _execute(world: World, statement: str) -> None:
    connection = sqlite3.connect(world.db)
    with connection:
        connection.execute(statement)
    connection.close()


def _run(world: World, circuit: str = "triage") -> CliResult:
    return world.say("run", circuit, "--cases", CASES, "--agent", "script:scout.yaml")
