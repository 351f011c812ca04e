"""What a delivery was begun with: its plan, its repository, how its work is checked.

Kept with the run, so that a later sitting needs no words. Refuses to know how any of it is used.
"""

from typing import Literal

import msgspec

from interlock.delivery.checks.verdict import Policy
from interlock.delivery.plan.yaml import CheckText, EnvironmentText

Expand = Literal["auto", "always", "never"]


class DeliverySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How tasks are worked on, as `[delivery]` in interlock.toml says."""

    copy: tuple[str, ...] = ()
    """Files that git does not have and every tree needs: patterns, seen from the project."""
    setup: tuple[str, ...] = ()
    """A command that makes a tree ready, run in it."""
    first_port: int = 0
    ports: int = 10
    """Each tree has so many ports of its own, from the first one on; 0 gives out none."""
    policy: Policy = "baseline"
    """What holds work back: failures that were not there before, or any."""
    allow_fewer_tests: bool = False
    expand: Expand = "auto"
    """Whether an analyst writes a task out before anybody works on it."""
    experts: str = ".claude/agents/experts"
    per_expert: int = 2
    """Questions that one expert is asked at once."""
    checks_at_once: int = 1
    """Checks that run at once in one tree."""
    hooks: bool = False
    """Whether the repository's own hooks run in our clone."""
    let_in: tuple[str, ...] = ()
    """Names of environment variables that checks may see, such as DATABASE_*."""


class DeliveryTables(msgspec.Struct, frozen=True):
    """What a project says about deliveries in interlock.toml, at the top level."""

    delivery: DeliverySettings = DeliverySettings()
    check: list[CheckText] = []
    environment: list[EnvironmentText] = []


class DeliveryConfig(msgspec.Struct, frozen=True):
    """All that is agreed for one run."""

    plan: str
    source: str
    home: str
    slug: str
    secret: str
    """Nonces are made from it, so that a dispatch has the same one after a restart."""
    workspace: str = "delivery"
    """What the tags of processes call the workspace."""
    base: str = "HEAD"
    timeouts: dict[str, float] = {}
    """Seconds that a role may take, where somebody said so."""
    strict_signals: bool = False
    allow_untestable: bool = False
    work: DeliverySettings = DeliverySettings()
    checks: tuple[CheckText, ...] = ()
    environments: tuple[EnvironmentText, ...] = ()
