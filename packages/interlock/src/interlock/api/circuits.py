"""Circuits as a project uses them: loaded, with thresholds changed, proven sound."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine import circuit as table
from interlock.engine.circuit_file import CircuitSource
from interlock.engine.verify import verify
from interlock.engine.verify.finding import Finding, VerifyReport
from interlock.runtime.application import find_application
from interlock.runtime.circuits import (
    Bundle,
    find_circuit,
    list_installed_circuits,
    list_project_circuits,
)
from interlock.runtime.prompts import PROMPT_NAMES, check_prompt
from interlock.system.errors import CircuitError, SourceError, UsageError
from interlock.system.files import read_text

_MAX_PROMPT = 1_000_000
_UNREACHABLE = "circuit.unreachable"


class UnsoundError(CircuitError):
    """A circuit with errors, so nothing was started."""

    def __init__(self, circuit: str, findings: list[Finding]) -> None:
        self.circuit = circuit
        self.findings = findings
        first = findings[0].message if findings else ""
        super().__init__(f"circuit {circuit} is not sound, so nothing was started: {first}")


class Circuit(msgspec.Struct, frozen=True):
    """A circuit as it is written, with its prompts. Load it, verify it, start cases through it."""

    bundle: Bundle
    source: CircuitSource

    @classmethod
    def load(cls, name: str | Path, project: Path = Path()) -> "Circuit":
        """Load a circuit by its name, from the project or an installed package, or from a path that
        ends in .yaml."""
        bundle = find_circuit(str(name), project)
        return cls(bundle, bundle.open())

    @classmethod
    def parse(cls, text: str, file: str = "circuit.yaml") -> "Circuit":
        """Make a circuit from YAML text that holds its prompts."""
        bundle = Bundle(file, text)
        return cls(bundle, bundle.open())

    @property
    def name(self) -> str:
        """The circuit's name."""
        return self.source.circuit.name

    def verify(self) -> VerifyReport:
        """Prove the circuit and return all findings about it and its prompts. A circuit whose
        report is not `sound` cannot be run."""
        return verify_source(self.source)

    def with_thresholds(
        self, usual: Mapping[str, Any], given: Mapping[str, Any]
    ) -> "tuple[Circuit, dict[str, Any]]":
        """Return the circuit with other thresholds, and the changes.

        A project's `usual` thresholds apply where the circuit has them; all that are `given` must
        be the circuit's.
        """
        own = self.source.circuit
        known = {name: value for name, value in usual.items() if name in own.thresholds}
        changes = check_thresholds(own, known) | check_thresholds(own, given)
        changed = msgspec.structs.replace(self.source, circuit=own.with_thresholds(changes))
        return msgspec.structs.replace(self, source=changed), changes

    def with_prompts(self, folder: Path, note: Callable[[str], None]) -> "Circuit":
        """Return the circuit with a user's own templates; `note` is called with each file in the
        folder that is not used."""
        if not folder.is_dir():
            raise UsageError(f"--prompt-dir {folder}: there is no such folder")
        known = {name.removeprefix("prompts/"): name for name in self.bundle.prompts}
        own = {
            name: read_text(folder / name, _MAX_PROMPT)
            for name in known
            if (folder / name).is_file()
        }
        if not own:
            raise UsageError(f"--prompt-dir {folder} has none of {', '.join(sorted(known))}")
        names = _list_prompt_names(self.name)
        for name, text in own.items():
            if problem := check_prompt(text, names):
                raise SourceError(
                    f"{folder / name}: {problem}; templates can read {', '.join(names)}"
                )
        for path in sorted(folder.glob("*/*.md")):
            other = path.relative_to(folder).as_posix()
            if other not in known:
                note(
                    f"note: --prompt-dir {folder}: {self.name} has no template {other}; "
                    "it is not used"
                )
        prompts = self.bundle.prompts | {known[name]: text for name, text in own.items()}
        bundle = msgspec.structs.replace(self.bundle, prompts=prompts)
        return Circuit(bundle, bundle.open())


class CircuitInfo(msgspec.Struct, frozen=True):
    """A circuit that can be named, with its owner and its file."""

    name: str
    where: str
    """`project`, or `built-in` for circuits of installed packages."""
    file: Path


def list_circuits(project: Path) -> list[CircuitInfo]:
    """Return every circuit that can be named, the project's first."""
    own = [
        CircuitInfo(name, "project", file) for name, file in list_project_circuits(project).items()
    ]
    installed = list_installed_circuits().items()
    return [*own, *(CircuitInfo(name, "built-in", file) for name, file in installed)]


def verify_once(circuit: Circuit) -> VerifyReport:
    """Prove a circuit and keep the report by its text: a large proof takes a while, and pages ask
    often."""
    return _verify_text(msgspec.json.encode(circuit.bundle))


@lru_cache(maxsize=32)
def _verify_text(bundle: bytes) -> VerifyReport:
    found = msgspec.json.decode(bundle, type=Bundle)
    return Circuit(found, found.open()).verify()


def verify_source(source: CircuitSource) -> VerifyReport:
    """Return all findings about a circuit and its prompts."""
    report = verify(source)
    return msgspec.structs.replace(report, findings=(*_check_prompts(source), *report.findings))


def refuse_unsound(source: CircuitSource, own: table.Circuit) -> list[Finding]:
    """Raise UnsoundError for a circuit with errors; return the rules that only the user's
    thresholds turn off.

    `own` is the circuit with its own thresholds.
    """
    errors = [finding for finding in verify_source(source).findings if finding.level == "error"]
    off = _find_turned_off(source, own, errors)
    if len(errors) > len(off):
        raise UnsoundError(source.circuit.name, errors)
    return off


def _find_turned_off(
    source: CircuitSource, own: table.Circuit, errors: list[Finding]
) -> list[Finding]:
    found = [finding for finding in errors if finding.id == _UNREACHABLE]
    if not found or own == source.circuit:
        return []
    by_itself = verify(msgspec.structs.replace(source, circuit=own)).findings
    known = {finding.subject for finding in by_itself if finding.id == _UNREACHABLE}
    return [finding for finding in found if finding.subject not in known]


def check_thresholds(circuit: table.Circuit, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thresholds, checked against the circuit's names and kinds; UsageError if one does
    not fit."""
    for name, value in changes.items():
        if name not in circuit.thresholds:
            known = ", ".join(circuit.thresholds) or "none"
            raise UsageError(f"{circuit.name} has no threshold {name!r}; it has {known}")
        usual = circuit.thresholds[name]
        if _describe_kind(usual) != _describe_kind(value):
            raise UsageError(
                f"threshold {name} is {_describe_kind(usual)} ({usual}), not {value!r}"
            )
    return dict(changes)


def _describe_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a text"


def _list_prompt_names(circuit: str) -> tuple[str, ...]:
    return (*PROMPT_NAMES, *find_application(circuit).prompt_names)


def _check_prompts(source: CircuitSource) -> Iterator[Finding]:
    known = _list_prompt_names(source.circuit.name)
    for step in source.circuit.steps.values():
        problem = check_prompt(step.prompt, known)
        if problem:
            yield Finding(
                "circuit.prompt",
                "error",
                f"the prompt of step {step.name!r} can never be filled: {problem}",
                f"write {{{{ case.NAME }}}} for what a case brings; templates can read "
                f"{', '.join(known)}",
                file=source.file,
                line=source.find_line("steps", step.name, "prompt"),
                subject=step.name,
            )
