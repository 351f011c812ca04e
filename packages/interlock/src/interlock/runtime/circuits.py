"""Circuits and cases as users write them.

A circuit is found in the project (`circuits/NAME.yaml` or `circuits/NAME/circuit.yaml`) or in an
installed package; the project's own wins. A bundle carries the circuit's text and its prompt files,
so that a run keeps everything it was begun with.

A file of cases has a JSON object per line: `id` names the case, `after` the cases that must end
well first, `priority` puts it before others. All else is the case's input, which rules and prompts
read as `case.NAME`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.schedule import check_dependencies
from interlock.journal.runs import NewCase
from interlock.runtime.application import list_circuit_folders
from interlock.system.errors import CircuitError, SourceError, StateError
from interlock.system.files import read_text
from interlock.system.strict_json import Problem, read_object
from interlock.system.yaml_text import MAX_CHARACTERS

_PROMPT_ENDINGS = (".md", ".txt", ".j2")


class Bundle(msgspec.Struct, frozen=True):
    """A circuit file with the prompts it names."""

    file: str
    text: str
    prompts: dict[str, str] = {}

    def encode(self) -> str:
        """Return the bundle as a run keeps it."""
        return msgspec.json.encode(self).decode()

    def open(self, shapes: Mapping[str, dict[str, Any]] | None = None) -> CircuitSource:
        """Read the circuit and put its prompts in place."""
        written = read_circuit(self.text, self.file, shapes)
        steps = {
            name: msgspec.structs.replace(step, prompt=self.prompts.get(step.prompt, step.prompt))
            for name, step in written.circuit.steps.items()
        }
        circuit = msgspec.structs.replace(written.circuit, steps=steps)
        return msgspec.structs.replace(written, circuit=circuit)


def list_project_circuits(project: Path) -> dict[str, Path]:
    """Return the file of each of the project's own circuits, by name."""
    folder = project / "circuits"
    found = {path.stem: path for path in folder.glob("*.yaml")}
    found |= {path.parent.name: path for path in folder.glob("*/circuit.yaml")}
    return dict(sorted(found.items()))


def list_installed_circuits() -> dict[str, Path]:
    """Return the file of each circuit of an installed package, by name."""
    folders = list_circuit_folders()
    files = {name: folder / "circuit.yaml" for name, folder in folders.items()}
    return {name: file for name, file in files.items() if file.is_file()}


def find_circuit(name: str, project: Path) -> Bundle:
    """Load the circuit of that name, or from the file of that path."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return load_bundle(path)
    known = list_installed_circuits() | list_project_circuits(project)
    if name not in known:
        raise SourceError(
            f"there is no circuit {name[:80]!r}; known are {', '.join(sorted(known))}; "
            f"your own go into {project / 'circuits'}, or give a path ending in .yaml"
        )
    return load_bundle(known[name])


def load_bundle(path: Path) -> Bundle:
    """Load a circuit file with its prompt files, which lie beside or below it."""
    text = read_text(path, MAX_CHARACTERS * 4)
    circuit = read_circuit(text, str(path)).circuit
    prompts = {
        step.prompt: _read_prompt(path, step.prompt)
        for step in circuit.steps.values()
        if step.prompt.endswith(_PROMPT_ENDINGS) and len(step.prompt.split()) == 1
    }
    return Bundle(str(path), text, prompts)


def _read_prompt(circuit_file: Path, name: str) -> str:
    folder = circuit_file.parent.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise CircuitError(f"prompt {name!r} must lie beside the circuit", file=str(circuit_file))
    try:
        return read_text(path, MAX_CHARACTERS)
    except SourceError as error:
        raise CircuitError(f"prompt {name!r}: {error}", file=str(circuit_file)) from None


MAX_LINE = 1024 * 1024
MAX_PRIORITY = 1_000_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,127}")


class _Line(msgspec.Struct):
    id: str | int
    after: list[str | int] = []
    priority: int = 0


def read_case_file(path: Path) -> bytes:
    """Read a file of cases; SourceError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None


def parse_cases(content: bytes, origin: str) -> list[NewCase]:
    """Read cases, one JSON object per line; `origin` names the text in errors."""
    cases: list[NewCase] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        case = _parse_case(line, f"{origin}:{number}")
        if case.case_id in seen:
            first = seen[case.case_id]
            raise SourceError(
                f"{origin}:{number}: case {case.case_id!r} is already in line {first}"
            )
        seen[case.case_id] = number
        cases.append(case)
    if not cases:
        raise SourceError(f'{origin} has no cases; write one per line, for example {{"id": "C1"}}')
    try:
        check_dependencies({case.case_id: case.needs for case in cases})
    except StateError as error:
        raise SourceError(f"{origin}: {error}") from None
    return cases


def _parse_case(line: bytes, place: str) -> NewCase:
    if len(line) > MAX_LINE:
        raise SourceError(f"{place}: a case has at most {MAX_LINE:,} bytes, this one {len(line):,}")
    hint = 'write one JSON object, for example {"id": "C1", "topic": "login"}'
    fields = read_object(line)
    if isinstance(fields, Problem):
        raise SourceError(f"{place}: {fields.sentence}; {hint}")
    try:
        head = msgspec.convert(fields, _Line)
    except ValueError as error:
        raise SourceError(f"{place}: {error}; {hint}") from None
    names = [str(name) for name in (head.id, *head.after)]
    for name in names:
        if not _ID.fullmatch(name):
            raise SourceError(
                f"{place}: {name[:60]!r} is not a case id: letters, digits, '.', '_', '#' and '-', "
                "at most 128, starting with a letter or digit"
            )
    if not -MAX_PRIORITY <= head.priority <= MAX_PRIORITY:
        raise SourceError(f"{place}: a priority is from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}")
    inputs = {key: value for key, value in fields.items() if key not in ("after", "priority")}
    return NewCase(names[0], inputs, head.priority, tuple(dict.fromkeys(names[1:])))
