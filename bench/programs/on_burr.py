"""The work on Apache Burr: one graph of seven actions, one application for each case.

Every action writes its answer to its own field, so that later ones can read it; Burr persists
the whole state after each. With many cases in flight the better of its idioms is asyncio with
AsyncSQLitePersister on one connection: inserts of several cases then often share a commit, and
each case still waits for its own. One case at a time, the plain SQLitePersister is faster.
`--style threads` is SQLitePersister with many cases: a thread and a connection for each.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import pairwise

from burr.core import ApplicationBuilder, Graph, GraphBuilder, State, action
from burr.core.persistence import BaseStatePersister, SQLitePersister
from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister
from session import Session, job_parser, make_durable, read_pragmas
from workload import STEPS, opening

Pragmas = list[tuple[str, int]]


def sync_graph(session: Session) -> Graph:
    def action_for(step: str) -> Callable[..., State]:
        @action(reads=["case_id"], writes=[step])
        def ask(state: State) -> State:
            return state.update(**{step: session.agent.answer(state["case_id"], step)})

        return ask

    return graph_of(action_for)


def async_graph(session: Session) -> Graph:
    def action_for(step: str) -> Callable[..., State]:
        @action(reads=["case_id"], writes=[step])
        async def ask(state: State) -> State:
            return state.update(**{step: await session.agent.answer_async(state["case_id"], step)})

        return ask

    return graph_of(action_for)


def graph_of(action_for: Callable[[str], Callable[..., State]]) -> Graph:
    actions = {step: action_for(step) for step in STEPS}
    transitions = pairwise(STEPS)
    return GraphBuilder().with_actions(**actions).with_transitions(*transitions).build()


def builder(graph: Graph, persister: BaseStatePersister, case_id: str) -> ApplicationBuilder:
    """The documented way to start a case or go on with it: load what is there, else the default."""
    return (
        ApplicationBuilder()
        .with_graph(graph)
        .with_identifiers(app_id=case_id)
        .with_state_persister(persister)
        .initialize_from(
            persister,
            resume_at_next_action=True,
            default_state=opening(case_id),
            default_entrypoint=STEPS[0],
        )
    )


def open_persister(session: Session) -> SQLitePersister:
    connect = {"check_same_thread": False, "timeout": 60}
    persister = SQLitePersister(str(session.database), connect_kwargs=connect)
    make_durable(persister.connection)
    persister.initialize()
    return persister


def run_one_by_one(session: Session) -> Pragmas:
    graph, persister = sync_graph(session), open_persister(session)
    with session.measured():
        for case_id in session.cases:
            builder(graph, persister, case_id).build().run(halt_after=[STEPS[-1]])
    pragmas = [read_pragmas(persister.connection)]
    persister.cleanup()
    return pragmas


def run_threads(session: Session) -> Pragmas:
    graph, own = sync_graph(session), threading.local()
    persisters = [open_persister(session)]

    def open_own() -> None:
        own.persister = open_persister(session)
        persisters.append(own.persister)

    def run_case(case_id: str) -> None:
        builder(graph, own.persister, case_id).build().run(halt_after=[STEPS[-1]])

    with ThreadPoolExecutor(session.inflight, initializer=open_own) as pool, session.measured():
        list(pool.map(run_case, session.cases))
    pragmas = [read_pragmas(persister.connection) for persister in persisters]
    for persister in persisters:
        persister.cleanup()
    return pragmas


async def run_asyncio(session: Session) -> Pragmas:
    graph = async_graph(session)
    async with AsyncSQLitePersister.from_values(db_path=str(session.database)) as persister:
        await persister.connection.execute("PRAGMA journal_mode=WAL")
        await persister.connection.execute("PRAGMA synchronous=FULL")
        await persister.initialize()
        slots = asyncio.Semaphore(session.inflight)

        async def run_case(case_id: str) -> None:
            async with slots:
                application = await builder(graph, persister, case_id).abuild()
                await application.arun(halt_after=[STEPS[-1]])

        with session.measured():
            await asyncio.gather(*map(run_case, session.cases))
        return [await pragmas_of(persister)]


async def pragmas_of(persister: AsyncSQLitePersister) -> tuple[str, int]:
    mode = await (await persister.connection.execute("PRAGMA journal_mode")).fetchone()
    level = await (await persister.connection.execute("PRAGMA synchronous")).fetchone()
    return str(mode[0]), int(level[0])


def main() -> None:
    parser = job_parser()
    parser.add_argument("--style", choices=("best", "threads"), default="best")
    arguments = parser.parse_args()
    session = Session(arguments, steps_sql="SELECT count(*) FROM burr_state")
    if session.inflight == 1:
        style, pragmas = "SQLitePersister, one after the other", run_one_by_one(session)
    elif arguments.style == "threads":
        style, pragmas = "SQLitePersister, a thread for each case", run_threads(session)
    else:
        style = "AsyncSQLitePersister, a task for each case, whose inserts often share a commit"
        pragmas = asyncio.run(run_asyncio(session))
    session.report(style=style, versions={"burr": version("apache-burr")}, pragmas=pragmas)


if __name__ == "__main__":
    main()
