"""A project: its circuits, its runs, its questions. Everything that a program can do begins here.

What only touches the journal is plain and synchronous. Work on a run has an event loop in a thread
of its own, so that it goes on in notebooks and beside a loop of the caller's: see `Run`.
"""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import Carrier, Clock
from interlock.agents.function import FunctionCarrier
from interlock.api import inbox as inbox_
from interlock.api import inspect
from interlock.api.circuits import Circuit, refuse_unsound
from interlock.api.inbox import AnswerRequest, Question, SavedAnswer
from interlock.api.run import Run, RunWork
from interlock.api.work import Display, NoDisplay, load_circuit
from interlock.engine.circuit import Circuit as CircuitTable
from interlock.engine.replay import Replayed
from interlock.journal.database import Writer, reading, writer_of, writing
from interlock.journal.history import counts
from interlock.journal.runs import (
    FINISHED,
    NewCase,
    all_runs,
    find_run,
    newest_run,
    set_options,
    unfinished_run,
)
from interlock.journal.runs import Run as RunRecord
from interlock.runtime.agent_pool import AgentPool, build_agent_pool
from interlock.runtime.application import find_application
from interlock.runtime.budget import flat
from interlock.runtime.circuits import Bundle, find_circuit, parse_cases
from interlock.runtime.settings import (
    RunConfig,
    Settings,
    default_config,
    find_database,
    read_settings,
)
from interlock.system.errors import SourceError, StateError, UsageError

AgentLike = str | Carrier | Callable[..., Any]
"""Words that name an agent, a carrier, or a Python function (plain or async) that answers."""
_FUNCTION = "function"


class Project:
    """A folder with an interlock.toml, or without one, and its database.

    A context manager: leaving it stops what still works, without losing anything.
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
        self.db = find_database(self.path, Path(db) if db is not None else None)
        self.clock = clock
        self.display = display or NoDisplay()
        self._works: list[RunWork] = []
        self._given: dict[int, Mapping[str, AgentLike]] = {}
        self._remove: Path | None = None

    @classmethod
    def temporary(cls, *, clock: Clock | None = None) -> Self:
        """A project in a folder of its own, removed when it is left."""
        folder = Path(tempfile.mkdtemp(prefix="interlock-"))
        made = cls(folder, clock=clock)
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
        """Stop what works in this process. What was decided is kept; `resume` goes on."""
        for work in self._works:
            work.stop(now=True)
        for work in self._works:
            work.join()
        self._works.clear()
        if self._remove is not None:
            shutil.rmtree(self._remove, ignore_errors=True)

    @property
    def settings(self) -> Settings:
        """What interlock.toml and the environment say now."""
        return read_settings(self.path)

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
        slots: Mapping[str, int] | None = None,
        parallel: int | None = None,
    ) -> Run:
        """Start cases through a circuit and return at once; the work goes on in the background.

        With an `id`, starting the same again gives the same run: one that was interrupted goes on,
        one that is over is only returned. Another input under the same id is refused.
        """
        own = circuit if isinstance(circuit, Circuit) else Circuit.load(circuit, self.path)
        changed, changes = own.with_thresholds(self.settings.thresholds, set or {})
        refuse_unsound(changed.source, own.source.circuit)
        lines = [msgspec.json.encode(dict(case), order="sorted") for case in cases]
        new_cases = parse_cases(b"\n".join(lines), "cases")
        agents = _by_role(agents)
        config, given = self._take_agents(self.new_config(changed.name, changes), agents)
        config = msgspec.structs.replace(
            config,
            slots={**config.slots, **(slots or {})},
            budget={**config.budget, **flat(dict(budget or {}))},
            parallel=parallel or config.parallel,
            id=id,
            input=_digest(changed.name, changes, b"\n".join(lines)),
        )
        pool = self.build_pool(changed.source.circuit, config, given)

        def begin(connection: Connection) -> tuple[RunRecord, AgentPool]:
            run, existed = self.begin_or_find(
                connection, changed.bundle, new_cases, config, name="cases"
            )
            return run, self.build_pool(load_circuit(run), config, given) if existed else pool

        return self._work(begin, agents)

    def resume(
        self,
        run: "Run | int | str | None" = None,
        *,
        agents: Mapping[str, AgentLike] | AgentLike | None = None,
    ) -> Run:
        """Go on with an unfinished run: the newest, if none is named. Python functions that
        answered in another process have to be given again."""
        with self.read() as connection:
            found = self.find_run(connection, run)
        if found.status in FINISHED:
            raise StateError(f"run {found.run_id} is over ({found.status}); there is nothing to do")
        before = msgspec.convert(found.options, RunConfig)
        agents = {**self._given.get(found.run_id, {}), **_by_role(agents)}
        config, given = self._take_agents(before, agents)
        pool = self.build_pool(load_circuit(found), config, given)

        def begin(connection: Connection) -> tuple[RunRecord, AgentPool]:
            set_options(connection, found.run_id, msgspec.to_builtins(config))
            return find_run(connection, found.run_id), pool

        return self._work(begin, agents)

    def run(self, run: "int | str | None" = None) -> Run:
        """A run by its number or id; the newest, if none is named."""
        with self.read() as connection:
            found = self.find_run(connection, run)
        return Run(self, found.run_id)

    def runs(self, status: str | None = None) -> list[Run]:
        """All runs, the oldest first; only those that stand so, if a status is named."""
        if not self.db.exists():
            return []
        with self.read() as connection:
            found = all_runs(connection)
        return [Run(self, each.run_id) for each in found if status in (None, each.status)]

    # Questions.

    def inbox(self, run: "Run | int | None" = None) -> list[Question]:
        """What waits for a person, the oldest first; in one run, if it is named."""
        if not self.db.exists():
            return []
        with self.read() as connection:
            found = inbox_.list_questions(connection, self.db)
        wanted = run.number if isinstance(run, Run) else run
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
        """Answer a question. A question that is settled already, or asked anew since it was seen,
        is refused. With `group`, the answer counts for all questions that belong together."""
        number = question.question_id if isinstance(question, Question) else question
        given = AnswerRequest(
            str(number), decision, note, dict(fields or {}), by, inbox_.find_user(), group
        )
        return inbox_.give_answer(self.db, self.settings, given)

    # Looking.

    def explain(self, case: str, run: "Run | int | None" = None) -> inspect.CaseLife:
        """The life of a case: what was asked, what came back, what was decided and why."""
        number = run.number if isinstance(run, Run) else run
        with self.read() as connection:
            return inspect.explain_case(connection, case, number)

    def replay(
        self,
        run: "Run | int | None" = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - as the flag --set
        case: str = "",
    ) -> list[Replayed]:
        """Decide a recorded run again with other thresholds: where would each case have gone?"""
        number = run.number if isinstance(run, Run) else run
        with self.read() as connection:
            return inspect.replay_run(connection, number, set or {}, case)

    def report(self, run: "Run | int | None" = None) -> str:
        """What the run's application found, as Markdown; of any other run, its cases."""
        number = run.number if isinstance(run, Run) else run
        with self.read() as connection:
            return inspect.report_run(connection, find_run(connection, number))

    def writer(self) -> Writer | None:
        """The process that works on the database now, if one does."""
        return writer_of(self.db)

    # For applications and doors: what start and resume are made of.

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """The database, to be read."""
        with reading(self.db) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The database, to be written; made if it is not there. StoreError if another writes."""
        with writing(self.db) as connection:
            yield connection

    def find_run(self, connection: Connection, run: "Run | int | str | None") -> RunRecord:
        """The record of a run by its number or id; the newest, if none is named."""
        if isinstance(run, Run):
            run = run.number
        if isinstance(run, str):
            number = newest_run(connection, _fingerprint_id(run))
            if number is None:
                raise StateError(f"there is no run {run!r}; 'interlock runs' lists them")
            run = number
        return find_run(connection, run)

    def new_config(self, circuit: str, thresholds: dict[str, Any]) -> RunConfig:
        """What a new run of a circuit is begun with, as the project's settings have it."""
        settings = self.settings
        terms = find_application(circuit).default_terms(settings, self.path)
        return msgspec.structs.replace(default_config(settings, thresholds), terms=terms)

    def build_pool(
        self,
        circuit: CircuitTable,
        config: RunConfig,
        given: Mapping[str, Carrier] | None = None,
    ) -> AgentPool:
        """Who answers a run; SourceError if somebody is missing."""
        return build_agent_pool(
            circuit,
            config,
            settings=self.settings,
            project=self.path,
            db=self.db,
            complain=lambda problem: self.display.note(f"note: {problem}"),
            given=given,
            clock=self.clock,
        )

    def check_agent(self, circuit: CircuitTable, words: str, role: str) -> None:
        """SourceError if these words name no agent that could play the role now."""
        steps = {name: step for name, step in circuit.steps.items() if step.role == role}
        alone = msgspec.structs.replace(circuit, steps=steps)
        self.build_pool(alone, RunConfig(agents={role: words}))

    def begin_or_find(
        self,
        connection: Connection,
        bundle: Bundle,
        cases: Sequence[NewCase],
        config: RunConfig,
        *,
        name: str,
        new: bool = False,
    ) -> tuple[RunRecord, bool]:
        """The run of these cases, and whether it had begun before. A run without an id is the same
        while it is unfinished; one with an id, for ever."""
        digest = config.input
        mark = _fingerprint_id(config.id) if config.id else digest
        found = newest_run(connection, mark) if config.id else unfinished_run(connection, mark)
        if found is not None and not new:
            run = find_run(connection, found)
            before = msgspec.convert(run.options, RunConfig)
            if config.id and before.input != digest:
                raise StateError(
                    f"run {config.id!r} was started with another circuit, other thresholds or "
                    "cases; use another id for them"
                )
            if run.status not in FINISHED:
                kept = msgspec.structs.replace(config, thresholds=before.thresholds)
                set_options(connection, found, msgspec.to_builtins(kept))
            return find_run(connection, found), True
        circuit = bundle.open().circuit.with_thresholds(config.thresholds)
        run_id = find_application(circuit.name).begin(
            connection,
            circuit,
            msgspec.json.encode(bundle).decode(),
            cases,
            source=name,
            fingerprint=mark,
            options=msgspec.to_builtins(config),
            at=time.time(),
        )
        return find_run(connection, run_id), False

    def find_bundle(self, circuit: str) -> Bundle:
        """A circuit as it is written: the project's, an installed one, or in a file."""
        return find_circuit(circuit, self.path)

    def count_ends(self, run_id: int) -> dict[str, int]:
        with self.read() as connection:
            return dict(counts(connection, run_id))

    def _take_agents(
        self, config: RunConfig, agents: Mapping[str, AgentLike]
    ) -> tuple[RunConfig, dict[str, Carrier]]:
        """The configuration with these agents, and the carriers of those that are no words."""
        words = dict(config.agents)
        given: dict[str, Carrier] = {}
        for role, agent in agents.items():
            if isinstance(agent, str):
                words[role] = agent
                continue
            if not role:
                raise SourceError(
                    "a function answers for roles by name: agents={'critic': function}"
                )
            given[role] = _carrier_of(agent)
            words[role] = f"{_FUNCTION}:{getattr(agent, '__qualname__', type(agent).__name__)}"
        for role, word in words.items():
            if word.partition(":")[0] == _FUNCTION and role not in given:
                raise SourceError(
                    f"{role} was answered by the Python function {word.partition(':')[2]}; "
                    "give it again: agents={" + f"{role!r}: …" + "}"
                )
        return msgspec.structs.replace(config, agents=words), given

    def _work(
        self,
        begin: Callable[[Connection], tuple[RunRecord, AgentPool]],
        agents: Mapping[str, AgentLike],
    ) -> Run:
        work = RunWork(self.db, begin, self.display)
        self._works.append(work)
        number = work.wait_until_begun()
        self._given[number] = agents
        return Run(self, number, work)


def _carrier_of(agent: Carrier | Callable[..., Any]) -> Carrier:
    if hasattr(agent, "send"):
        return cast("Carrier", agent)
    if callable(agent):
        return FunctionCarrier(agent)
    raise UsageError(f"{agent!r} is no agent: give words such as 'claude', or a function")


def _by_role(agents: Mapping[str, AgentLike] | AgentLike | None) -> dict[str, AgentLike]:
    """Agents by role; one alone answers for all."""
    if agents is None:
        return {}
    return dict(agents) if isinstance(agents, Mapping) else {"": agents}


def _digest(circuit: str, thresholds: Mapping[str, Any], content: bytes) -> str:
    kind = msgspec.json.encode([circuit, thresholds], order="sorted")
    return hashlib.sha256(kind + content).hexdigest()


def _fingerprint_id(name: str) -> str:
    return hashlib.sha256(f"id\0{name}".encode()).hexdigest()
