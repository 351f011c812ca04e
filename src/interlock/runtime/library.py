"""The library: where circuits are found, and what travels with one.

A project's own circuits (`circuits/NAME.yaml` or `circuits/NAME/circuit.yaml`) and the built-in
ones are equal; of the same name, the project's is taken. A bundle carries the circuit's text and
its prompt files, so that a run can keep all it was begun with.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine.notation import CircuitSource, read_circuit
from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import MAX_CHARACTERS

_PROMPT_ENDINGS = (".md", ".txt", ".j2")


class Bundle(msgspec.Struct, frozen=True):
    """A circuit file with the prompts it names."""

    file: str
    text: str
    prompts: dict[str, str] = {}

    def open(self, shapes: Mapping[str, dict[str, Any]] | None = None) -> CircuitSource:
        """The circuit, its prompts in place."""
        written = read_circuit(self.text, self.file, shapes)
        steps = {
            name: msgspec.structs.replace(step, prompt=self.prompts.get(step.prompt, step.prompt))
            for name, step in written.circuit.steps.items()
        }
        circuit = msgspec.structs.replace(written.circuit, steps=steps)
        return msgspec.structs.replace(written, circuit=circuit)


class Shelf(msgspec.Struct, frozen=True):
    """A place where circuits lie: `where` says whose they are."""

    where: str
    folder: Path

    def files(self) -> dict[str, Path]:
        """Circuit files by name."""
        found = {path.stem: path for path in self.folder.glob("*.yaml")}
        found |= {path.parent.name: path for path in self.folder.glob("*/circuit.yaml")}
        return dict(sorted(found.items()))


def shelves(project: Path) -> tuple[Shelf, Shelf]:
    built_in = Path(str(resources.files("interlock")))
    return Shelf("project", project / "circuits"), Shelf("built-in", built_in)


def find_circuit(name: str, project: Path) -> Bundle:
    """The circuit of that name, or in the file of that path."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return bundle(path)
    for shelf in shelves(project):
        file = shelf.files().get(name)
        if file is not None:
            return bundle(file)
    known = sorted({each for shelf in shelves(project) for each in shelf.files()})
    raise SourceError(
        f"there is no circuit {name[:80]!r}; known are {', '.join(known)}; "
        f"your own go into {project / 'circuits'}, or give a path ending in .yaml"
    )


def bundle(path: Path) -> Bundle:
    """The circuit in a file, with the prompt files it names; prompts lie beside or below it."""
    text = read_text(path, MAX_CHARACTERS * 4)
    circuit = read_circuit(text, str(path)).circuit
    prompts = {
        step.prompt: _prompt(path, step.prompt)
        for step in circuit.steps.values()
        if step.prompt.endswith(_PROMPT_ENDINGS) and len(step.prompt.split()) == 1
    }
    return Bundle(str(path), text, prompts)


def read_text(path: Path, most: int) -> str:
    """A text file of the user's, if it is one and not too large."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise SourceError(f"{path} has more than the {most:,} bytes that are read")
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None


def _prompt(circuit_file: Path, name: str) -> str:
    folder = circuit_file.parent.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise CircuitError(f"prompt {name!r} must lie beside the circuit", file=str(circuit_file))
    try:
        return read_text(path, MAX_CHARACTERS)
    except SourceError as error:
        raise CircuitError(f"prompt {name!r}: {error}", file=str(circuit_file)) from None
