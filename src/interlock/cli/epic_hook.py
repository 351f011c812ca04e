"""The flag --hook of the epic verbs: the door for GitHub's webhooks, ready before a run is touched.

Knows when there can be one and where its secret is. Refuses to know what comes in.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import msgspec

from interlock.cli.show import tell
from interlock.engine.circuit import HUMAN
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.epic.terms import EpicSettings
    from interlock.runtime.staff import RunSetup

Dress = Callable[["RunSetup"], "RunSetup"]


@contextmanager
def hooked(settings: "EpicSettings", word: str | None) -> Iterator[Dress]:
    """What puts the door before the desk that asks on issues; nothing if none is wished."""
    if word is None:
        yield lambda ours: ours
        return
    if settings.hitl != "github":
        raise SourceError("--hook hears of GitHub issues: use it with --hitl github")
    from interlock.epic.approval.asked import CheckpointedGate
    from interlock.epic.approval.github_hook import PATH, GithubHook
    from interlock.epic.approval.hooked import WebhookGate, door, secret_of
    from interlock.epic.approval.issue_desk import IssueCarrier
    from interlock.web.listening import address

    secret = secret_of(os.environ, settings.hook_secret_env)
    with closing(door(word)) as listening:

        def dress(ours: "RunSetup") -> "RunSetup":
            asked = ours.carriers[HUMAN]
            desk = asked.desk if isinstance(asked, CheckpointedGate) else asked
            if not isinstance(desk, IssueCarrier):
                raise TypeError(f"{desk!r} asks on no issues")
            hook = GithubHook(secret, desk.bound, desk.wake)
            door_before = WebhookGate(asked, hook, listening)
            return msgspec.structs.replace(ours, carriers={**ours.carriers, HUMAN: door_before})

        tell(f"webhooks come in at {address(listening)}{PATH}")
        yield dress
