"""Whose processes are whose: how a workspace marks its own, and what it may end of them.

Knows tags and reaping, and which of its runs are over if it was told. Refuses to know databases.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from interlock.agents.cli.reap import OrphanReport, nothing_is_over, reap
from interlock.agents.cli.tag import ProcessTag
from interlock.system.process_tree import Clock


class WorkspaceOwner(msgspec.Struct, frozen=True):
    """A workspace, as its processes know it."""

    workspace: str
    is_over: Callable[[ProcessTag], bool] = nothing_is_over
    """Asked of runs whose owner cannot be seen from here."""

    def tag(self, run_id: int, dispatch_id: int, nonce: str) -> str:
        return str(ProcessTag(self.workspace, str(run_id), str(dispatch_id), nonce))

    async def reap(self, clock: Clock, grace: float) -> OrphanReport:
        """End what an Interlock that is no more left behind."""
        if self is NOBODYS:
            return OrphanReport()
        return await reap(self.workspace, clock, self.is_over, grace)


NOBODYS: Final = WorkspaceOwner("exec")
"""Of no workspace: nothing that was left behind can be told from what others need."""
