"""Applications: what a circuit has beyond its table, and how installed ones are found.

A circuit needs none. One that keeps tables of its own, fills its prompts from them, checks answers
against the world or plays roles itself brings an `Application`, named after its circuit in the
entry-point group `interlock.applications`. The built-in ones are found in the same way. An entry
that names a package without code is a plain circuit: `circuit.yaml` and its prompts lie there.

Applications are loaded when their circuit is used; `doctor` reports what cannot be loaded.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata, util
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from interlock.carriers.contract import NO_CONTEXT, Carrier, ExecutionContext
from interlock.carriers.files import NameFiles, name_files
from interlock.engine.case import Case, Decision, RefusedAnswer, Signal
from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase, Run, begin_run
from interlock.runtime.case_overview import CaseOverview
from interlock.signals.batch import Briefing, Phase
from interlock.system.clock import Clock
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.journal.audit import AuditRules
    from interlock.runtime.settings import Settings

GROUP = "interlock.applications"


class CaseHooks(Protocol):
    """Code that belongs to one circuit. Cases are told apart by their number in the database."""

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        """Where the agent of a dispatch works, and what its answer must name. Asked again after a
        restart, it says the same."""

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        """More names for the prompt of the step where the case stands."""

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        """The signal as the rules shall see it, or why it is none."""

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        """What the decision changes in the application's tables; `case` is as it was before, `by`
        the human who answered."""

    def must_wait(self, case_no: int, case: Case) -> bool:
        """Whether an open case must wait although nothing in the plan is in its way. Asked once
        each time it comes to a step; also called once for a case that is over."""

    def released_cases(self) -> Iterable[str]:
        """The held cases that need not wait any more."""

    def new_cases(self) -> Iterable[NewCase]:
        """Cases that join the run, and open ones as they are to be from now on."""

    def notes(self) -> Iterable[str]:
        """What the user should know when the work stops."""


class DefaultHooks:
    """The hooks of a circuit that has no application: they add nothing."""

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        return NO_CONTEXT

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        return {}

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        return signal

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        return ()

    def must_wait(self, case_no: int, case: Case) -> bool:
        return False

    def released_cases(self) -> Iterable[str]:
        return ()

    def new_cases(self) -> Iterable[NewCase]:
        return ()

    def notes(self) -> Iterable[str]:
        return ()


class HooksWrapper:
    """Hooks that stand before others and add nothing. Override what differs."""

    def __init__(self, inner: CaseHooks) -> None:
        self._inner = inner

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        return self._inner.context_for(case_no, case, dispatch_id)

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        return self._inner.prompt_values(case_no, case, context)

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        return self._inner.check_answer(case_no, case, signal)

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        return self._inner.effects(case_no, case, decision, data, by)

    def must_wait(self, case_no: int, case: Case) -> bool:
        return self._inner.must_wait(case_no, case)

    def released_cases(self) -> Iterable[str]:
        return self._inner.released_cases()

    def new_cases(self) -> Iterable[NewCase]:
        return self._inner.new_cases()

    def notes(self) -> Iterable[str]:
        return self._inner.notes()


class RunSetup(msgspec.Struct, frozen=True):
    """Who and what works on a run, once it is open."""

    circuit: Circuit
    carriers: Mapping[str, Carrier]
    hooks: CaseHooks | None = None
    enrich: Callable[[Briefing], Briefing] | None = None
    """Adds to a batch's briefing what the application knows."""
    unplaced: Collection[str] = frozenset()
    """The roles of the application's own programs, which take no place from an agent."""


class QuestionGroup(msgspec.Struct, frozen=True):
    """Questions that one answer settles, with one line about what they ask."""

    question_ids: tuple[int, ...]
    case_ids: tuple[str, ...]
    about: str


class Application:
    """What one circuit has beyond its table. Override what differs; the defaults add nothing."""

    api = 1
    """The version of this interface that the application was written for."""
    own_roles: tuple[str, ...] = ()
    """The roles that the application's own code plays: nobody is asked for an agent for them."""
    audits: "AuditRules" = MappingProxyType({})
    """Checks of the application's own tables for `doctor --deep`: by name, an SQL query that
    answers with the subjects that are wrong, and the sentence about them."""
    prompt_names: tuple[str, ...] = ()
    """The names that prompts can read beside those of every circuit."""

    def __init__(self, name: str) -> None:
        """The name is the circuit's, and the entry point's."""
        self.name = name

    def default_config(self, settings: "Settings", project: Path) -> dict[str, Any]:
        """What a new run is begun with, as the project's settings have it. Stored with the run."""
        return {}

    begin = staticmethod(begin_run)
    """Writes down a new run of cases that a user listed, and returns its number:
    `begin(connection, circuit, text, cases, *, source, fingerprint, options, at)`."""

    def set_up_run(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        config: Mapping[str, Any],
        *,
        clock: Clock,
        only: Collection[int] | None = None,
    ) -> RunSetup:
        """The carriers with the application's own programs in their places, and its hooks. Cases
        other than `only` these rest, if some are named."""
        return RunSetup(circuit, carriers)

    def file_names(self, root: Path) -> NameFiles:
        """What the files of a dispatch are called below this folder."""
        return name_files

    def phase_of(self, step: str) -> Phase:
        """The phase that a batch manifest gives for a step."""
        return "triage"

    def check_review(self, config: Mapping[str, Any], step: str, data: Mapping[str, Any]) -> str:
        """Why a person's answer cannot be used, though its shape is right; empty if it can."""
        return ""

    def group_questions(self, connection: Connection, run_id: int) -> list[QuestionGroup]:
        """The open questions of a run that one answer settles together."""
        return []

    def describe_case(self, connection: Connection, case_no: int) -> Sequence[str]:
        """What is known about a case beyond its decisions, as lines for `explain`."""
        return ()

    def name_cases(self, connection: Connection, case_nos: Collection[int]) -> Mapping[int, str]:
        """What cases are about, each in a line, where their ids alone say little."""
        return {}

    def read_overview(
        self, connection: Connection, case_no: int, config: Mapping[str, Any]
    ) -> CaseOverview | None:
        """What a person should know about a case beside its decisions; None leaves them with the
        prompt."""
        return None

    def report(self, connection: Connection, run: Run) -> str:
        """What was found, as Markdown; empty if there is no more to say than the cases' ends."""
        return ""


def find_application(circuit: str) -> Application:
    """The application of a circuit; one that adds nothing if the circuit has none."""
    entry = _list_entries().get(circuit)
    if entry is None:
        return Application(circuit)
    try:
        return _load(entry)
    except Exception as error:
        raise SourceError(
            f"the application {circuit!r} ({entry.value}) cannot be loaded: "
            f"{type(error).__name__}: {error}; mend or uninstall the package that brings it"
        ) from error


def list_applications() -> dict[str, str]:
    """Where each installed application is declared, by its circuit's name."""
    return {name: entry.value for name, entry in sorted(_list_entries().items())}


def list_circuit_folders() -> dict[str, Path]:
    """Where the circuits of installed applications lie. No application is loaded for it."""
    found = {name: _find_folder(entry) for name, entry in sorted(_list_entries().items())}
    return {name: folder for name, folder in found.items() if folder is not None}


@cache
def _list_entries() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


@cache
def _load(entry: metadata.EntryPoint) -> Application:
    if not entry.attr:
        return Application(entry.name)
    made = entry.load()(entry.name)
    if not isinstance(made, Application):
        raise TypeError(f"{entry.value} makes no interlock Application")
    if made.api != Application.api:
        raise TypeError(f"it is written for interface {made.api}, this is {Application.api}")
    return made


def _find_folder(entry: metadata.EntryPoint) -> Path | None:
    """The folder of the package an entry is declared in."""
    package = entry.module.rpartition(".")[0] if entry.attr else entry.module
    try:
        spec = util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None
