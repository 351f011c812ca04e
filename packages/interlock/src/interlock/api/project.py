"""A project: its circuits, its runs, its questions. Every program begins here.

Work on a run has an event loop in a thread of its own, so that it goes on in notebooks and beside a
loop of the caller's: see `Run`. All else is synchronous.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from interlock.api import inbox as inbox_
from interlock.api import inspect
from interlock.api.circuits import Circuit, refuse_unsound
from interlock.api.inbox import AnswerRequest, Question, SavedAnswer
from interlock.api.run import Run, RunWork
from interlock.api.start import (
    OpenRun,
    begin,
    configure,
    find_begun,
    find_by_id,
    go_on,
    read_request,
)
from interlock.api.work import Display, NoDisplay, load_circuit
from interlock.carriers.contract import Carrier
from interlock.carriers.function import FunctionCarrier
from interlock.carriers.registry import FUNCTION, agents_folder, build_agent
from interlock.engine.circuit import HUMAN
from interlock.engine.circuit import Circuit as CircuitTable
from interlock.engine.replay import ReplayedCase
from interlock.journal.connection import Connection
from interlock.journal.database import (
    find_writer,
    find_writers,
    has_database,
    open_reader,
    open_writer,
)
from interlock.journal.ownership import Writer
from interlock.journal.runs import FINISHED, find_run, list_runs
from interlock.journal.runs import Run as RunRecord
from interlock.runtime.agent_pool import AgentPool, build_agent_context, build_agent_pool
from interlock.runtime.application import find_application
from interlock.runtime.budget import flatten_limits
from interlock.runtime.notify import build_notifier
from interlock.runtime.settings import (
    DATABASE,
    RunConfig,
    Settings,
    default_config,
    find_database,
    read_settings,
)
from interlock.system.clock import Clock
from interlock.system.errors import StateError, UsageError

AgentLike = str | Carrier | Callable[..., Any]
"""Words that name an agent, a carrier, or a Python function (plain or async) that answers."""


class Project:
    """A project: a folder, its settings and circuits, and the database of its runs.

    Use it as a context manager. Leaving it stops everything that is still at work, and loses
    nothing. `db` names another database than the project's own; `clock` replaces the system's time
    in tests.
    """

    def __init__(
        self,
        path: str | Path = ".",
        *,
        db: str | Path | None = None,
        clock: Clock | None = None,
        display: Display | None = None,
    ) -> None:
        self.path = Path(path)
        self.db = find_database(self.path, db)
        self.clock = clock
        self.display = display or NoDisplay()
        self._works: dict[int, RunWork] = {}
        self._given: dict[int, Mapping[str, AgentLike]] = {}
        self._remove: Path | None = None
        self._closed = False

    @classmethod
    def temporary(cls, *, clock: Clock | None = None) -> Self:
        """Create a project in a temporary folder, which is removed when the project is closed."""
        folder = Path(tempfile.mkdtemp(prefix="interlock-"))
        made = cls(folder, db=folder / DATABASE, clock=clock)  # whatever INTERLOCK_DB says
        made._remove = folder
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything this program works on. Every decision is kept, and `resume` continues."""
        self._closed = True
        for work in self._works.values():
            work.stop(now=True)
        for work in self._works.values():
            work.join()
        self._works.clear()
        if self._remove is not None:
            shutil.rmtree(self._remove, ignore_errors=True)

    # What it is made of.

    @property
    def settings(self) -> Settings:
        """Return the settings in interlock.toml and the environment as they are now."""
        return read_settings(self.path)

    def writer(self) -> Writer | None:
        """Return the process that works on the database now, if one does."""
        return find_writer(self.db)

    @property
    def has_database(self) -> bool:
        """Return whether there is a database yet."""
        return has_database(self.db)

    def read(self) -> AbstractContextManager[Connection]:
        """Open the database for reading."""
        return open_reader(self.db)

    def write(self) -> AbstractContextManager[Connection]:
        """Open the database for writing, and create it if necessary; StoreError if another process
        writes."""
        return open_writer(self.db)

    def find_run(self, connection: Connection, run: int | str | None) -> RunRecord:
        """Return the record of a run by its number or id; the newest, if none is named."""
        if isinstance(run, str):
            number = find_by_id(connection, run)
            if number is None:
                raise StateError(f"there is no run {run!r}; 'interlock runs' lists them")
            run = number
        return find_run(connection, run)

    def new_config(self, circuit: str, thresholds: dict[str, Any]) -> RunConfig:
        """Return the configuration that the project's settings give a new run of a circuit."""
        settings = self.settings
        own = find_application(circuit).default_config(settings, self.path)
        return msgspec.structs.replace(default_config(settings, thresholds), application_config=own)

    def build_pool(
        self,
        circuit: CircuitTable,
        config: RunConfig,
        given: Mapping[str, Carrier] | None = None,
    ) -> AgentPool:
        """Build the agents of a run; SourceError if one is missing."""
        settings = self.settings
        pool = build_agent_pool(
            circuit,
            config,
            settings=settings,
            project=self.path,
            db=self.db,
            given=given,
            clock=self.clock,
        )
        notifier = build_notifier(
            settings.notify,
            pool.clock,
            lambda problem: self.display.note(f"note: {problem}"),
        )
        return msgspec.structs.replace(pool, notifier=notifier)

    def check_agent(self, circuit: CircuitTable, words: str, role: str) -> None:
        """Raise SourceError if these words name no agent that could play the role now."""
        context = build_agent_context(
            circuit, RunConfig(), self.settings, self.path, self.db, clock=self.clock
        )
        build_agent(words, msgspec.structs.replace(context, roles=(role,)))

    def prepare_circuit(
        self, circuit: str | Circuit, thresholds: Mapping[str, Any], prompts: Path | None = None
    ) -> tuple[Circuit, dict[str, Any]]:
        """Return a circuit with the changes of settings, thresholds and prompts, and the changed
        thresholds.

        UnsoundError if it cannot be run so; the display notes rules that are turned off.
        """
        own = circuit if isinstance(circuit, Circuit) else Circuit.load(circuit, self.path)
        if prompts is not None:
            own = own.with_prompts(prompts, self.display.note)
        changed, changes = own.with_thresholds(self.settings.thresholds, thresholds)
        for finding in refuse_unsound(changed.source, own.source.circuit):
            self.display.note(f"note: with these thresholds {finding.message}")
        return changed, changes

    # Runs.

    def start(
        self,
        circuit: "str | Path | Circuit",
        cases: Iterable[Mapping[str, Any]],
        *,
        agents: Mapping[str, AgentLike] | AgentLike | None = None,
        id: str = "",  # noqa: A002 - the word users know
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as the flag --set
        budget: Mapping[str, str | int | float] | None = None,
        slots: Mapping[str, int] | int | None = None,
    ) -> Run:
        """Start cases through a circuit and return at once; the work goes on in the background.

        `circuit` is a name, the path of a YAML file, or a `Circuit`. Each case is a dict with an
        `id`; `agents` names who answers, by role. `set` changes thresholds, `budget` limits the
        costs of the run. `slots` limits how many agents work at once: a number for all roles
        together, or a number per role, where the role `""` stands for all together.

        With an `id`, the same input is the same run: if it was interrupted, it continues; if it is
        over, it is only returned. Other input under the same id is refused.
        """
        own = circuit if isinstance(circuit, Circuit) else Circuit.load(circuit, self.path)
        changed, changes = self.prepare_circuit(own, set or {})
        request = read_request(changed, changes, _encode_cases(cases), "cases", id=id)
        agents = _group_by_role(agents)
        config = configure(self, request)
        places = {"": slots} if isinstance(slots, int) else dict(slots or {})
        parallel = places.pop("", None) or config.parallel
        config = msgspec.structs.replace(
            config,
            slots={**config.slots, **places},
            budget={**config.budget, **flatten_limits(dict(budget or {}))},
            parallel=parallel,
        )
        config, given = self._take_agents(changed.source.circuit, config, agents)
        self.build_pool(changed.source.circuit, config, given)  # a missing agent leaves no trace
        busy = self._find_busy()
        if busy is not None:
            with self.read() as connection:
                same = find_begun(connection, config)
            if same is None or same.run_id != busy.number:
                raise self._build_busy_error(busy)
            return busy
        return self._start_work(lambda opened: begin(self, opened, request, config, given), agents)

    def resume(
        self,
        run: "Run | int | str | None" = None,
        *,
        agents: Mapping[str, AgentLike] | AgentLike | None = None,
    ) -> Run:
        """Continue an unfinished run, by default the newest.

        Functions that answered in another process have to be given again; agents named by words are
        remembered.
        """
        with self.read() as connection:
            found = self.find_run(connection, _read_number(run))
        busy = self._find_busy()
        if busy is not None and busy.number == found.run_id:
            return busy
        if busy is not None:
            raise self._build_busy_error(busy)
        if found.status in FINISHED:
            raise StateError(f"run {found.run_id} is over ({found.status}); there is nothing to do")
        before = msgspec.convert(found.options, RunConfig)
        agents = {**self._given.get(found.run_id, {}), **_group_by_role(agents)}
        config, given = self._take_agents(load_circuit(found), before, agents)
        return self._start_work(
            lambda opened: go_on(self, opened, found.run_id, lambda _: config, given=given), agents
        )

    def run(self, run: int | str | None = None) -> Run:
        """Find a run by its number or id; by default, the newest."""
        with self.read() as connection:
            found = self.find_run(connection, run)
        return Run(self, found.run_id)

    def runs(self, status: str | None = None) -> list[Run]:
        """Return all runs, oldest first; with `status`, only the runs that have it."""
        if not self.has_database:
            return []
        with self.read() as connection:
            found = list_runs(connection)
        if status is not None:
            writers = find_writers(self.db)
            found = [
                each for each in found if writers.find_status(each.run_id, each.status) == status
            ]
        return [Run(self, each.run_id) for each in found]

    # Questions.

    def inbox(self, run: "Run | int | str | None" = None) -> list[Question]:
        """Return the questions that wait for a person, oldest first; with `run`, only those of one
        run."""
        if not self.has_database:
            return []
        with self.read() as connection:
            wanted = self._find_number(connection, run)
            found = inbox_.list_questions(connection, self.db)
        return [each for each in found if wanted in (None, each.run_id)]

    def answer(
        self,
        question: "Question | int | str",
        decision: str,
        *,
        by: str,
        note: str = "",
        fields: Mapping[str, Any] | None = None,
        group: bool | None = None,
    ) -> SavedAnswer:
        """Answer a question in the name of `by`; an answer that does not fit or comes too late is
        refused.

        `fields` fills in further fields of the answer. `group` decides whether it counts for all
        questions that belong together; by default, the circuit decides.
        """
        number = question.question_id if isinstance(question, Question) else question
        given = AnswerRequest(
            str(number), decision, note, dict(fields or {}), by, inbox_.find_user(), group
        )
        at = self.clock.now() if self.clock else None
        return inbox_.give_answer(self.db, self.settings, given, at)

    # Looking.

    def explain(self, case: str, run: "Run | int | str | None" = None) -> inspect.CaseLife:
        """Return the life of a case, by default in the newest run that has it: what was asked, what
        came back, what was decided and why."""
        from interlock.carriers.cli.work_folder import read_attempt_notes

        with self.read() as connection:
            life = inspect.explain_case(connection, case, self._find_number(connection, run))
        notes = read_attempt_notes(agents_folder(self.db), life.case.run_id, life.case.case_no)
        return msgspec.structs.replace(life, notes=notes)

    def replay(
        self,
        run: "Run | int | str | None" = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as the flag --set
        case: str = "",
    ) -> list[ReplayedCase]:
        """Decide a recorded run again with other thresholds, without asking anybody, and return the
        way of each case."""
        with self.read() as connection:
            number = self._find_number(connection, run)
            return inspect.replay_run(connection, number, set or {}, case)

    def report(self, run: "Run | int | str | None" = None) -> str:
        """Return the report of the run's application as Markdown; for a plain circuit, its
        cases."""
        with self.read() as connection:
            return inspect.report_run(connection, self.find_run(connection, _read_number(run)))

    def _find_number(self, connection: Connection, run: "Run | int | str | None") -> int | None:
        number = _read_number(run)
        if isinstance(number, str):
            return self.find_run(connection, number).run_id
        return number

    def _take_agents(
        self, circuit: CircuitTable, config: RunConfig, agents: Mapping[str, AgentLike]
    ) -> tuple[RunConfig, dict[str, Carrier]]:
        """Return the configuration with these agents, and the carriers of agents that are not
        words.

        The agent under "" answers for every role without one.
        """
        words = dict(config.agents)
        given: dict[str, Carrier] = {}
        roles = {step.role for step in circuit.steps.values()}
        own = find_application(circuit.name).own_roles
        unknown = sorted({*agents} - roles - {""})
        if unknown:
            raise UsageError(
                f"no step has the role {unknown[0]!r}; roles are {', '.join(sorted(roles))}"
            )
        for role in sorted(roles - {HUMAN, *own} | {*agents} - {""}):
            agent = agents.get(role)
            if agent is None and not _needs_agent(words, role):
                continue
            agent = agents.get("") if agent is None else agent
            if isinstance(agent, str):
                words[role] = agent
            elif agent is not None:
                given[role] = _build_carrier(agent)
                words[role] = f"{FUNCTION}:{getattr(agent, '__qualname__', type(agent).__name__)}"
            elif role in words:
                raise UsageError(
                    f"{role} was answered by the Python function {words[role].partition(':')[2]}; "
                    "give it again: agents={" + f"{role!r}: …" + "}"
                )
            elif not config.files.get("dispatch"):
                raise UsageError(
                    f"no agent is named for {role}; give one: agents={{{role!r}: …}}, a function "
                    "or words such as 'claude' or 'exec:COMMAND'"
                )
        return msgspec.structs.replace(config, agents=words), given

    def _find_busy(self) -> Run | None:
        """Return the run that this program works on now; a database has one writer."""
        if self._closed:
            raise StateError("this project is closed; open it again to start or resume a run")
        found = [number for number, work in self._works.items() if not work.is_over]
        return Run(self, found[0]) if found else None

    def _build_busy_error(self, busy: Run) -> StateError:
        return StateError(
            f"run {busy.id} is still at work in this project: wait for it or stop it before "
            "another begins, or give the other a database of its own"
        )

    def _start_work(
        self,
        opening: Callable[[Connection], OpenRun],
        agents: Mapping[str, AgentLike],
    ) -> Run:
        work = RunWork(self.db, lambda connection, _owned: opening(connection), self.display)
        number = work.wait_until_begun()
        self._works[number] = work
        self._given[number] = agents
        return Run(self, number)


def _needs_agent(words: Mapping[str, str], role: str) -> bool:
    """Return whether no agent is named for the role, or only a function that has to be given
    again."""
    word = words.get(role) or words.get("", "")
    return not word or word.partition(":")[0] == FUNCTION


def _build_carrier(agent: Carrier | Callable[..., Any]) -> Carrier:
    if hasattr(agent, "send"):
        return cast("Carrier", agent)
    if callable(agent):
        return FunctionCarrier(agent)
    raise UsageError(f"{agent!r} is not an agent: give words such as 'claude', or a function")


def _group_by_role(agents: Mapping[str, AgentLike] | AgentLike | None) -> dict[str, AgentLike]:
    """Return agents by role; a single agent answers for all."""
    if agents is None:
        return {}
    return dict(agents) if isinstance(agents, Mapping) else {"": agents}


def _encode_cases(cases: Iterable[Mapping[str, Any]]) -> bytes:
    """Encode the cases as lines; UsageError with the place of one that is not JSON."""
    if isinstance(cases, str | bytes | Mapping):
        raise UsageError(
            "give cases as a list of dicts, for example [{'id': 'C1', 'topic': 'rain'}]"
        )
    lines: list[bytes] = []
    seen: dict[Any, int] = {}
    for number, case in enumerate(cases, 1):
        if not isinstance(case, Mapping):
            raise UsageError(f"case {number} is {type(case).__name__}, not a dict with an 'id'")
        name = case.get("id")
        if not isinstance(name, str | int):
            raise UsageError(f"case {number} has no id; give each case one: {{'id': 'C{number}'}}")
        if str(name) in seen:
            raise UsageError(f"cases {seen[str(name)]} and {number} have the same id {name!r}")
        seen[str(name)] = number
        lines.append(_encode_case(case, name))
    if not lines:
        raise UsageError("there are no cases; give at least one, for example [{'id': 'C1'}]")
    return b"\n".join(lines)


def _encode_case(case: Mapping[str, Any], name: str | int) -> bytes:
    try:
        plain = msgspec.to_builtins(dict(case))
        json.dumps(plain, allow_nan=False)  # msgspec would silently write null for them
        return msgspec.json.encode(plain, order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(f"case {name!r} cannot be written as JSON: {error}") from None


def _read_number(run: "Run | int | str | None") -> int | str | None:
    return run.number if isinstance(run, Run) else run
