"""Commands with the names of tests in them: one argument each, whatever the name is."""

import os
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import UsageError
from interlock_rca.records import Failure
from interlock_rca.reproduce.command import ReproduceCommand, check_line, fill_command

HOSTILE = (
    "x; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "a'b\"c",
    "two words\tand\nlines",
    "*",
    "'; touch pwned; '",
    "{name}",
    "\\",
    "é — ü",
)


def shell(command: ReproduceCommand) -> list[str]:
    ran = subprocess.run(
        ["/bin/sh", "-c", command.script],
        env={**os.environ, **command.variables},
        capture_output=True,
        check=True,
    )
    return ran.stdout.decode(errors="surrogateescape").split("\0")[:-1]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_one_argument(name: str) -> None:
    line = "printf '%s\\0' run {name} --class={class}#{name}"
    command = fill_command(line, Failure(id="1", test_name=name, class_name="A"), lambda _: "")
    assert isinstance(command, ReproduceCommand)
    assert shell(command) == ["run", name, f"--class=A#{name}"]
    assert command.script == ReproduceCommand(line, {}).script


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_what_is_shown_is_what_a_person_could_type(name: str) -> None:
    command = ReproduceCommand("run {test}", {"test": name})
    assert shlex.split(command.text) == ["run", name]


@pytest.mark.parametrize(
    "line", ["pytest '{test}'", 'sh -c "pytest {test}"', "echo \\\"'{name}", "a \"b'\" '{file}"]
)
def test_a_placeholder_in_quotes_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="write it without quotes"):
        check_line(line, "--reproduce")


def test_an_unknown_placeholder_is_refused_and_a_variable_of_the_shell_is_none() -> None:
    with pytest.raises(UsageError, match=r"\{tset\} is not known; known are \{test\}, \{file\}"):
        check_line("pytest {tset}", "--reproduce")
    assert check_line("echo ${HOME} {test}", "--reproduce")


@pytest.mark.parametrize("name", ["-p evil", "--collect-only", "a\0b"])
def test_a_name_that_could_be_an_option_is_not_run(name: str) -> None:
    why = fill_command("pytest {name}", Failure(id="1", test_name=name), lambda _: "")
    assert why == ("its name begins with a dash or holds a NUL, so the command is not given it")


@pytest.mark.parametrize(
    ("class_name", "file", "node"),
    [
        ("tests.test_cart", "", "tests/test_cart.py::test_x[1]"),
        ("tests.test_cart.TestCart", "", "tests/test_cart.py::TestCart::test_x[1]"),
        ("TestCart", "tests/test_cart.py", "tests/test_cart.py::TestCart::test_x[1]"),
        ("", "tests/test_cart.py", "tests/test_cart.py::test_x[1]"),
        ("com.example.Cart", "", "test_x[1]"),
    ],
)
def test_a_python_test_is_named_by_its_node(class_name: str, file: str, node: str) -> None:
    failure = Failure(id="1", test_name="test_x[1]", class_name=class_name, file=file)

    def find_file(word: str) -> str:
        return word if word == "tests/test_cart.py" else ""

    command = fill_command("pytest {test}", failure, find_file)
    assert isinstance(command, ReproduceCommand)
    assert command.values == {"test": node}


def test_a_command_needs_what_its_report_tells() -> None:
    why = fill_command("run {file}", Failure(id="1", test_name="x"), lambda _: "")
    assert why == "its report does not tell the {file} of the command"
