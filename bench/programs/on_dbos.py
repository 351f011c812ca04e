"""The work on DBOS: one workflow of seven steps, one workflow id for each case.

DBOS records every step's result before the next. With many cases in flight it is `start_workflow`
on its executor threads: faster here than its queues and its asyncio workflows, and as fast as
calling workflows from threads of one's own. After a crash DBOS itself finds the pending
workflows on launch and goes on with them.
"""

import sqlite3
from importlib.metadata import version
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSConfig, SetWorkflowID
from session import Session, job_parser, make_durable, read_pragmas
from workload import STEPS, opening

connections: list[sqlite3.Connection] = []
session: Session


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def on_connect(connection: Any, _record: object) -> None:
    """SQLAlchemy's documented place for pragmas; DBOS has no setting of its own for them."""
    if isinstance(connection, sqlite3.Connection):
        make_durable(connection)
        connections.append(connection)


@DBOS.step()
def ask(case_id: str, step: str) -> dict[str, Any]:
    return session.agent.answer(case_id, step)


@DBOS.workflow()
def work(case: dict[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for step in STEPS:
        answers[step] = ask(case["case_id"], step)
    return answers


def run() -> str:
    with session.measured():
        if session.job == "resume":
            DBOS.launch()
            wait_for_all()
            return "recovery on launch, executor threads"
        if session.inflight == 1:
            for case_id in session.cases:
                with SetWorkflowID(case_id):
                    work(opening(case_id))
            return "workflows called one after the other"
        handles = []
        for case_id in session.cases:
            with SetWorkflowID(case_id):
                handles.append(DBOS.start_workflow(work, opening(case_id)))
        for handle in handles:
            handle.get_result()
        return "start_workflow, executor threads"


def wait_for_all() -> None:
    """A short interval, so that waiting adds nothing that can be seen to the time of recovery."""
    for case_id in session.cases:
        DBOS.retrieve_workflow(case_id).get_result(polling_interval_sec=0.05)


def main() -> None:
    global session  # noqa: PLW0603 - DBOS finds workflows and steps at module level
    parser = job_parser()
    parser.add_argument("--url", default="", help="a PostgreSQL instead of a file")
    arguments = parser.parse_args()
    session = Session(arguments, steps_sql="SELECT count(*) FROM operation_outputs")
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": arguments.url or f"sqlite:///{session.database}",
        "log_level": "ERROR",
        "max_executor_threads": max(session.inflight, 2),
    }
    DBOS(config=config)
    if session.job != "resume":
        DBOS.launch()
    style = run()
    pragmas = [read_pragmas(connection) for connection in connections]
    session.report(style=style, versions={"dbos": version("dbos")}, pragmas=pragmas)
    DBOS.destroy()


if __name__ == "__main__":
    main()
