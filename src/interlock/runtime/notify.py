"""From the settings of notices to the herald that carries them out of the house."""

import os
import shutil
from collections.abc import Callable

from interlock.agents.carrier import Clock
from interlock.agents.registry import explain_not_runnable
from interlock.runtime.herald import Notifier, WebhookTarget
from interlock.runtime.settings import Notify
from interlock.system.errors import SourceError


def herald(notify: Notify, clock: Clock, complain: Callable[[str], None]) -> Notifier | None:
    """Who carries notices out of the house, if anybody is to hear them."""
    if not notify.command and not notify.webhook:
        return None
    if notify.command and shutil.which(notify.command[0]) is None:
        problem = explain_not_runnable(notify.command[0])
        raise SourceError(f"interlock.toml, [notify] command: {problem}")
    address = None
    if notify.webhook:
        if not notify.webhook.startswith(("https://", "http://")):
            raise SourceError("interlock.toml, [notify] webhook: give an http(s) address")
        address = WebhookTarget(notify.webhook, os.environ.get(notify.secret_env, "").encode())
    return Notifier(clock, notify.command, address, complain)
