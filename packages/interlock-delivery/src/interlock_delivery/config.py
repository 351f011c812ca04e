"""The configuration of a delivery: its plan, its repository, and how its work is checked.

`DeliveryConfig` is stored with the run, so that continuing it needs no options.
"""

from typing import Literal

import msgspec

from interlock_delivery.checks.records import CheckText, EnvironmentText
from interlock_delivery.checks.verdict import Policy

Expand = Literal["auto", "always", "never"]


class DeliverySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How tasks are worked on, as `[delivery]` in interlock.toml says."""

    copy: tuple[str, ...] = ()
    """Files outside git that every worktree needs: patterns, relative to the project."""
    setup: tuple[str, ...] = ()
    """A command that prepares a worktree, run in it."""
    first_port: int = 0
    ports: int = 10
    """Each worktree gets this many ports of its own, starting at `first_port`; 0 assigns none."""
    policy: Policy = "baseline"
    """What holds work back: failures that are new, or any failure."""
    allow_fewer_tests: bool = False
    expand: Expand = "auto"
    """Whether an analyst writes a task out before anybody works on it."""
    experts: str = ".claude/agents/experts"
    per_expert: int = 2
    """How many questions one expert is asked at a time."""
    checks_at_once: int = 1
    """How many checks run at a time in one worktree."""
    hooks: bool = False
    """Whether the repository's own git hooks run in our clone."""
    let_in: tuple[str, ...] = ()
    """Environment variables that checks may see, such as DATABASE_*."""
    remote: str = ""
    """The git remote over which workers on other hosts get their trees and hand in their work."""


class DeliveryTables(msgspec.Struct, frozen=True):
    """The tables of interlock.toml that are about deliveries."""

    delivery: DeliverySettings = DeliverySettings()
    check: list[CheckText] = []
    environment: list[EnvironmentText] = []


class DeliveryConfig(msgspec.Struct, frozen=True):
    """Everything that is fixed for one run."""

    plan: str
    source: str
    home: str
    slug: str
    secret: str
    """Nonces are derived from it, so that a dispatch has the same one after a restart."""
    workspace: str = "delivery"
    """The workspace's name in the tags of processes."""
    base: str = "HEAD"
    timeouts: dict[str, float] = {}
    """Seconds that a role may take, where the project sets them."""
    strict_signals: bool = False
    allow_untestable: bool = False
    work: DeliverySettings = DeliverySettings()
    checks: tuple[CheckText, ...] = ()
    environments: tuple[EnvironmentText, ...] = ()
