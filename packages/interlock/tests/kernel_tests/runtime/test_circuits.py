"""The library: which circuit a name means, and what travels with it."""

from pathlib import Path

import msgspec
import pytest

from interlock.runtime.circuits import (
    Bundle,
    find_circuit,
    list_installed_circuits,
    list_project_circuits,
    load_bundle,
)
from interlock.system.errors import CircuitError, SourceError
from interlock.system.files import read_text
from interlock.system.yaml_text import MAX_CHARACTERS
from tests.world.sample_circuit import ONE_STEP


def with_prompt(name: str) -> str:
    return ONE_STEP.replace("role: worker,", f"role: worker, prompt: {name},")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("place", ["circuits/mine.yaml", "circuits/mine/circuit.yaml"])
def test_a_project_has_circuits_of_its_own(tmp_path: Path, place: str) -> None:
    file = write(tmp_path / place, ONE_STEP)
    assert find_circuit("mine", tmp_path) == Bundle(str(file), ONE_STEP)


def test_a_built_in_circuit_is_found_everywhere(tmp_path: Path) -> None:
    found = find_circuit("epic", tmp_path)
    assert found.open().circuit.name == "epic"
    assert found.prompts


def test_the_project_goes_before_the_built_in(tmp_path: Path) -> None:
    file = write(tmp_path / "circuits" / "epic.yaml", ONE_STEP)
    assert find_circuit("epic", tmp_path).file == str(file)


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    file = write(tmp_path / "else where" / "x.yml", ONE_STEP)
    assert find_circuit(str(file), tmp_path).open().circuit.name == "one"


@pytest.mark.parametrize("name", ["nosuch", "", "../circuits/mine", "x" * 10_000, "a\0b"])
def test_an_unknown_name_is_told_with_the_known_ones(tmp_path: Path, name: str) -> None:
    write(tmp_path / "circuits" / "mine.yaml", ONE_STEP)
    with pytest.raises(SourceError) as caught:
        find_circuit(name, tmp_path)
    known = sorted({*list_installed_circuits(), *list_project_circuits(tmp_path)})
    assert str(caught.value) == (
        f"there is no circuit {name[:80]!r}; known are {', '.join(known)}; "
        f"your own go into {tmp_path / 'circuits'}, or give a path ending in .yaml"
    )


def test_prompt_files_travel_with_the_circuit(tmp_path: Path) -> None:
    write(tmp_path / "prompts" / "work.md", "Do it, {{ case.id }}.\n")
    made = load_bundle(write(tmp_path / "one.yaml", with_prompt("prompts/work.md")))
    (tmp_path / "prompts" / "work.md").unlink()
    (tmp_path / "one.yaml").unlink()
    again = msgspec.json.decode(msgspec.json.encode(made), type=Bundle)
    assert again.open().circuit.steps["work"].prompt == "Do it, {{ case.id }}.\n"


@pytest.mark.parametrize("prompt", ["'Read notes.md first'", "Work!", "'work.py'"])
def test_a_prompt_that_names_no_file_is_the_text_itself(tmp_path: Path, prompt: str) -> None:
    made = load_bundle(write(tmp_path / "one.yaml", with_prompt(prompt)))
    assert made.prompts == {}
    assert made.open().circuit.steps["work"].prompt == prompt.strip("'")


@pytest.mark.parametrize("name", ["../out.md", "a/../../out.md", "{outside}/out.md", "link.md"])
def test_a_prompt_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    write(tmp_path / "out.md", "secret")
    home.mkdir()
    (home / "link.md").symlink_to(tmp_path / "out.md")
    name = name.format(outside=tmp_path)
    file = write(home / "one.yaml", with_prompt(name))
    with pytest.raises(CircuitError) as caught:
        load_bundle(file)
    assert str(caught.value) == f"{file}: prompt {name!r} must lie beside the circuit"


def test_a_folder_that_links_out_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "outside" / "work.md", "secret")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "prompts").symlink_to(tmp_path / "outside")
    file = write(tmp_path / "home" / "one.yaml", with_prompt("prompts/work.md"))
    with pytest.raises(CircuitError, match="must lie beside the circuit"):
        load_bundle(file)


def test_a_missing_prompt_is_told(tmp_path: Path) -> None:
    file = write(tmp_path / "one.yaml", with_prompt("work.md"))
    with pytest.raises(CircuitError) as caught:
        load_bundle(file)
    missing = f"{tmp_path / 'work.md'} cannot be read: No such file or directory"
    assert str(caught.value) == f"{file}: prompt 'work.md': {missing}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"x" * 11, "has more than the 10 bytes that are read", id="too large"),
        pytest.param(b"ab\xff", "is not UTF-8 text (byte 2)", id="not UTF-8"),
    ],
)
def test_bad_text_is_told(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        read_text(path, 10)
    assert str(caught.value) == f"{path} {problem}"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/dev/zero", "/dev/zero has more than the 10 bytes that are read"),
        ("/", "/ cannot be read: Is a directory"),
        ("/nosuch/x", "/nosuch/x cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_text_file_is_told(path: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_text(Path(path), 10)
    assert str(caught.value) == problem


def test_text_is_read_to_the_last_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes("ä\r\n€".encode())
    assert read_text(path, 7) == "ä\n€"


def test_a_huge_circuit_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_bytes(b"#" * (MAX_CHARACTERS * 4 + 1))
    with pytest.raises(SourceError, match="has more than the"):
        load_bundle(file)
