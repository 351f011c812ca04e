"""The work on LangGraph: one compiled graph of seven nodes, one thread id for each case.

SqliteSaver with durability="sync" writes a checkpoint before the next node starts. With many
cases in flight it is `batch` with max_concurrency (a thread pool), one at a time plain `invoke`:
both were faster here than ainvoke with AsyncSqliteSaver.
"""

import sqlite3
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from session import Session, job_parser, make_durable, read_pragmas
from workload import STEPS, opening

# A case has nine checkpoints: its input, its start (step 0), and one after each of seven nodes.
STEPS_SQL = (
    "SELECT count(*) FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.step') >= 1"
)


class Case(TypedDict):
    """A field for each node's answer, so that later nodes can read it."""

    case_id: str
    test: str
    error: str
    attempt: int
    recall: dict[str, Any]
    triage: dict[str, Any]
    resolve: dict[str, Any]
    investigate: dict[str, Any]
    correlate: dict[str, Any]
    review: dict[str, Any]
    report: dict[str, Any]


def compile_graph(session: Session, saver: SqliteSaver) -> CompiledStateGraph:
    def node_for(step: str) -> Callable[[Case], dict[str, Any]]:
        return lambda case: {step: session.agent.answer(case["case_id"], step)}

    graph = StateGraph(Case)
    for step in STEPS:
        graph.add_node(step, node_for(step))
    for before, after in zip((START, *STEPS), (*STEPS, END), strict=True):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def run(session: Session, graph: CompiledStateGraph) -> str:
    """Input None means: go on from the last checkpoint of that thread id."""
    resuming = session.job == "resume"
    inputs = [None if resuming else opening(case_id) for case_id in session.cases]
    configs = [{"configurable": {"thread_id": case_id}} for case_id in session.cases]
    with session.measured():
        if session.inflight == 1:
            for given, config in zip(inputs, configs, strict=True):
                graph.invoke(given, config, durability="sync")
            return "SqliteSaver, invoke, one after the other"
        limited = [{**config, "max_concurrency": session.inflight} for config in configs]
        graph.batch(inputs, limited, durability="sync")
        return "SqliteSaver, batch in a thread pool"


def main() -> None:
    session = Session(job_parser().parse_args(), steps_sql=STEPS_SQL)
    # check_same_thread=False is what SqliteSaver asks for; it has its own lock.
    connection = sqlite3.connect(session.database, check_same_thread=False)
    make_durable(connection)
    saver = SqliteSaver(connection)
    saver.setup()
    style = run(session, compile_graph(session, saver))
    packages = ("langgraph", "langgraph-checkpoint-sqlite")
    session.report(
        style=style,
        versions={name: version(name) for name in packages},
        pragmas=[read_pragmas(connection)],
    )
    connection.close()


if __name__ == "__main__":
    main()
