"""Agents that speak the Agent Client Protocol (`acp:COMMAND`).

The carrier is built from the project's `[acp]` settings and the command. The protocol's SDK is an
extra and slow to load, so nothing here or in `settings` imports it before an agent is built.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.carriers.acp.settings import AcpSettings
from interlock.system.errors import SourceError, UsageError

if TYPE_CHECKING:  # every command reads the settings, few build an agent
    from interlock.carriers.cli.carrier import AgentHome
    from interlock.carriers.contract import Carrier
    from interlock.carriers.queries import QueryBroker
    from interlock.system.clock import Clock

_ADAPTERS = {
    "claude-agent-acp": "claude",
    "claude-code-acp": "claude",
    "codex-acp": "codex",
}
"""The programs that speak the protocol for an agent CLI, and need its variables."""


def build_acp_agent(
    argv: Sequence[str],
    settings: AcpSettings,
    home: "AgentHome",
    queries: "QueryBroker",
    clock: "Clock",
) -> "Carrier":
    """Build the carrier of a command; its requests for permission become questions in `queries`."""
    if find_spec("acp") is None:
        raise SourceError(
            "acp: agents need the SDK of the Agent Client Protocol: pip install 'interlock[acp]'"
        )
    from interlock.carriers.acp.carrier import AcpAgent
    from interlock.carriers.queries import PermissionBroker

    try:
        settings.timeouts  # noqa: B018 - a wrong clock is an error now, not at the first start
        timeout = settings.permission_seconds
    except (UsageError, msgspec.ValidationError) as error:
        raise SourceError(f"interlock.toml: [acp] {error}") from None
    # The agent starts in its own work folder, but the user wrote a path relative to this one.
    program = str(Path(argv[0]).absolute()) if "/" in argv[0] else argv[0]
    let_in = (*list_login_variables(argv), *settings.let_in)
    return AcpAgent(
        (program, *argv[1:]),
        home,
        clock,
        settings=msgspec.structs.replace(settings, let_in=let_in),
        permissions=PermissionBroker(queries, clock, timeout),
    )


def list_login_variables(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the variables that an agent CLI may see, whether it speaks the protocol itself or
    through an adapter."""
    from interlock.carriers.cli.profiles import list_profiles

    program = Path(argv[0]).name
    known = _ADAPTERS.get(program, "")
    found = [each for each in list_profiles() if program in each.commands or each.name == known]
    return found[0].let_in if found else ()
