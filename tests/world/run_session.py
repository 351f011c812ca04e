"""`python -m tests.world.run_session DB`: one sitting with real processes under the real clock.

Prints the status the run came to. What the command line does, without the command line.
"""

import asyncio
import os
import sys
from pathlib import Path

from interlock.carriers.exec import CommandAgent
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal
from interlock.journal.runs import find_run
from interlock.runtime.loop import RunLoop
from interlock.runtime.session import RunSession
from interlock.runtime.terms import RunTerms
from interlock.system.clock import SystemClock
from tests.world.world import World

AGENT = (sys.executable, str(Path(__file__).with_name("agent.py")))


def main(db: Path) -> None:
    with open_writer(db) as connection:
        found = find_run(connection)
        circuit = World.circuit_of(found)
        agent = CommandAgent(AGENT, os.environ)
        run_session = RunSession(
            RunLoop(
                Journal(connection, found.run_id),
                RunTerms(circuit=circuit, parallel=2, wait_for_humans=True),
                dict.fromkeys(circuit.roles, agent),
                SystemClock(),
            ),
            connection,
        )
        status = asyncio.run(run_session.run())
        by = run_session.stopped_by.name if run_session.stopped_by else "nobody"
        sys.stdout.write(f"{status} by {by}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
