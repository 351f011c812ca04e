"""From `acp:COMMAND` to its carrier: the terms of the project, the command, where it works.

Knows which variables the known agents need to log in. The SDK is loaded only when it is asked for.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from interlock.agents.acp.terms import AcpSettings
from interlock.agents.carrier import Carrier, Clock
from interlock.agents.cli.carrier import AgentHome, nonce
from interlock.agents.cli.profiles import profiles
from interlock.agents.queries import PermissionBroker, QueryBroker
from interlock.agents.registry import agents_folder, workspace_owner
from interlock.system.errors import CircuitError, SourceError

_ADAPTERS = {
    "claude-agent-acp": "claude",
    "claude-code-acp": "claude",
    "codex-acp": "codex",
}
"""Programs that speak the protocol for an agent CLI, and need its variables."""


def acp_agent(
    argv: Sequence[str],
    terms: AcpSettings,
    db: Path,
    queries: QueryBroker,
    clock: Clock,
    environment: Mapping[str, str],
) -> Carrier:
    """The carrier; questions about permissions are asked at `queries`."""
    if find_spec("acp") is None:
        raise SourceError(
            "acp: agents need the SDK of the Agent Client Protocol: pip install 'interlock[acp]'"
        )
    from interlock.agents.acp.carrier import AcpAgent

    desk = PermissionBroker(queries, clock, _checked(terms))
    station = AgentHome(
        agents_folder(db).resolve(), Path.cwd(), workspace_owner(db), environment, nonce
    )
    let_in = (*variables_for(argv), *terms.let_in)
    # It starts in its own work folder: a path is meant from here.
    program = str(Path(argv[0]).absolute()) if "/" in argv[0] else argv[0]
    return AcpAgent(
        (program, *argv[1:]),
        station,
        clock,
        terms=msgspec.structs.replace(terms, let_in=let_in),
        desk=desk,
    )


def variables_for(argv: Sequence[str]) -> tuple[str, ...]:
    """What an agent CLI may see when it speaks the protocol itself, or through an adapter."""
    program = Path(argv[0]).name
    known = _ADAPTERS.get(program, "")
    found = [each for each in profiles() if program in each.commands or each.name == known]
    return found[0].let_in if found else ()


def _checked(terms: AcpSettings) -> float:
    """Seconds for a human to answer; SourceError if a time is none."""
    try:
        terms.five_clocks  # noqa: B018 - it is told now, not when the first agent starts
        return terms.patience
    except (CircuitError, msgspec.ValidationError) as error:
        raise SourceError(f"interlock.toml: [acp] {error}") from None
