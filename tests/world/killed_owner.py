"""An owner that will be killed: supervises one agent, which leaves daemons, and says when it runs.

python forsaking.py TAG... : one agent for each tag.
"""

import asyncio
import sys

from interlock.carriers.cli.process import AgentProcess
from interlock.carriers.cli.timeouts import Timeouts
from interlock.system.clock import SystemClock
from tests.world.rogue import LineRecorder, shell

AGENT = "trap '' TERM; setsid sleep 300 & echo hello; exec sleep 300"


async def main(tags: list[str]) -> None:
    ears = [LineRecorder() for _ in tags]
    agents = [
        asyncio.create_task(
            AgentProcess(shell(AGENT, tag=tag), Timeouts(), recorder, SystemClock()).run()
        )
        for tag, recorder in zip(tags, ears, strict=True)
    ]
    for recorder in ears:
        await recorder.hears(b"hello")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.gather(*agents)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
