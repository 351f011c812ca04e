"""Applications add code to a circuit: tables, prompt values, checks of answers, roles of their own.

A circuit needs none. A package registers its `Application` under the circuit's name in the
entry-point group `interlock.applications`. An entry that names a package without code is a plain
circuit: its `circuit.yaml` and prompts lie in that package.

An application is loaded when its circuit is used; `doctor` reports one that cannot be loaded.
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
from interlock.journal.runs import NewCase, NewRun, Run, begin_run
from interlock.runtime.case_overview import CaseOverview
from interlock.signals.batch import Briefing, Phase
from interlock.system.clock import Clock
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.journal.audit import AuditRules
    from interlock.runtime.settings import Settings

GROUP = "interlock.applications"


class CaseHooks(Protocol):
    """The code that belongs to one circuit; `case_no` is a case's number in the database."""

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        """Return the folder in which the agent of a dispatch works, and what its answer must name.
        The result must be the same after a restart."""

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        """Return further names for the prompt of the case's step."""

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        """Return the signal as the rules shall see it, or the refusal of an answer that does not
        hold."""

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        """Return the changes that a decision makes in the application's tables.

        `case` is the case before the decision; `by` is the person who answered, if one did.
        """

    def must_wait(self, case_no: int, case: Case) -> bool:
        """Return whether an open case must wait although the plan lets it go on.

        Called once at each step that a case comes to, and once when the case is over.
        """

    def released_cases(self) -> Iterable[str]:
        """Return the held cases that may go on now."""

    def new_cases(self) -> Iterable[NewCase]:
        """Return cases that join the run, and open cases whose input or needs change."""

    def notes(self) -> Iterable[str]:
        """Return what the user should know when the session ends."""


class DefaultHooks:
    """Hooks that add nothing, for a circuit without an application."""

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


class Pace:
    """The order in which a session lets cases go on; this one lets every case go on at once."""

    def note_dispatch(self, case: Case) -> None:
        """Note that the case's step is being asked."""

    def must_rest(self, case: Case) -> bool:
        """Return whether an open case rests; called at each of its steps and when it is over."""
        return False

    def released_cases(self) -> Iterable[str]:
        """Return the resting cases that may go on now."""
        return ()


class RunSetup(msgspec.Struct, frozen=True):
    """How one run is worked on, as its application sets it up."""

    circuit: Circuit
    carriers: Mapping[str, Carrier]
    hooks: CaseHooks = msgspec.field(default_factory=DefaultHooks)
    pace: Pace = msgspec.field(default_factory=Pace)
    enrich: Callable[[Briefing], Briefing] = lambda briefing: briefing
    """Adds what the application knows to a batch's briefing."""
    unplaced: Collection[str] = frozenset()
    """The roles that the application's own programs play; they take no slot from an agent."""


class QuestionGroup(msgspec.Struct, frozen=True):
    """Questions that one answer settles, with a line about their subject."""

    question_ids: tuple[int, ...]
    case_ids: tuple[str, ...]
    about: str


class Application:
    """The code of one circuit. Override what differs; the defaults add nothing."""

    api = 1
    """The version of this interface that the application is written for."""
    own_roles: tuple[str, ...] = ()
    """The roles that the application's own code plays; the user names no agent for them."""
    audits: "AuditRules" = MappingProxyType({})
    """Checks of the application's tables for `doctor --deep`, by name: a query that returns the
    wrong subjects, and the sentence about them."""
    prompt_names: tuple[str, ...] = ()
    """The names that prompts may read beside those of every circuit."""

    def __init__(self, name: str) -> None:
        """Take the circuit's name, which is also the entry point's."""
        self.name = name

    def default_config(self, settings: "Settings", project: Path) -> dict[str, Any]:
        """Return the application's part of a new run's configuration, from the project's
        settings."""
        return {}

    def begin(self, connection: Connection, new: NewRun, cases: Iterable[NewCase]) -> int:
        """Write a new run of cases that a user listed, and return its number."""
        return begin_run(connection, new, cases)

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
        """Return the carriers of a run, with the application's own programs in their places, and
        its hooks; with `only`, all other cases rest."""
        return RunSetup(circuit, carriers)

    def file_names(self, root: Path) -> NameFiles:
        """Return the function that names the files of a dispatch in this folder."""
        return name_files

    def phase_of(self, step: str) -> Phase:
        """Return the phase that a batch manifest gives for a step."""
        return "triage"

    def check_review(self, config: Mapping[str, Any], step: str, data: Mapping[str, Any]) -> str:
        """Return why a well-formed answer of a person cannot be used; empty if it can."""
        return ""

    def group_questions(self, connection: Connection, run_id: int) -> list[QuestionGroup]:
        """Return the groups of a run's open questions that one answer settles."""
        return []

    def describe_case(self, connection: Connection, case_no: int) -> Sequence[str]:
        """Return lines for `explain` about a case, beyond its decisions."""
        return ()

    def name_cases(self, connection: Connection, case_nos: Collection[int]) -> Mapping[int, str]:
        """Return a line about each case whose id says little."""
        return {}

    def read_overview(
        self, connection: Connection, case_no: int, config: Mapping[str, Any]
    ) -> CaseOverview | None:
        """Return what a person should know about a case; None if the prompt says enough."""
        return None

    def report(self, connection: Connection, run: Run) -> str:
        """Return the application's report on a run as Markdown; empty if the cases' ends say
        everything."""
        return ""


def find_application(circuit: str) -> Application:
    """Return the application of a circuit, or one that adds nothing; SourceError if it cannot be
    loaded."""
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
    """Return where each installed application is declared, by its circuit's name."""
    return {name: entry.value for name, entry in sorted(_list_entries().items())}


def list_circuit_folders() -> dict[str, Path]:
    """Return the folders of installed circuits by name, without loading any application."""
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
        raise TypeError(f"{entry.value} returns no interlock Application")
    if made.api != Application.api:
        raise TypeError(f"it needs interface {made.api}, and this is {Application.api}")
    return made


def _find_folder(entry: metadata.EntryPoint) -> Path | None:
    """Return the folder of the package in which an entry is declared."""
    package = entry.module.rpartition(".")[0] if entry.attr else entry.module
    try:
        spec = util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None
