"""The configuration of a delivery: its plan, its repository, and how its work is checked.

`DeliveryConfig` is stored with the run, so that continuing it needs no options.
"""

from typing import Literal

import msgspec

from interlock_delivery.checks.records import CheckText, EnvironmentText
from interlock_delivery.checks.verdict import Policy

Expand = Literal["auto", "always", "never"]


class DeliverySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for the work on tasks: `[delivery]` in interlock.toml."""

    copy: tuple[str, ...] = ()
    """Files outside git that every worktree needs: patterns relative to the project."""
    setup: tuple[str, ...] = ()
    """A command that prepares a worktree, run inside it."""
    first_port: int = 0
    ports: int = 10
    """The number of ports for each worktree, counted from `first_port`; no ports if that is 0."""
    policy: Policy = "baseline"
    """The failures that hold work back: `baseline` only new ones, `strict` all."""
    allow_fewer_tests: bool = False
    expand: Expand = "auto"
    """When an analyst expands a task before a developer gets it."""
    experts: str = ".claude/agents/experts"
    per_expert: int = 2
    """The number of questions that one expert may be asked at a time."""
    checks_at_once: int = 1
    """The number of checks that may run at a time in one worktree."""
    hooks: bool = False
    """Run the repository's own git hooks in our clone."""
    let_in: tuple[str, ...] = ()
    """Environment variables that checks may see, such as DATABASE_*."""
    remote: str = ""
    """The git remote that workers on other hosts fetch trees from and push work to."""


class DeliveryTables(msgspec.Struct, frozen=True):
    """The tables of interlock.toml that deliveries read."""

    delivery: DeliverySettings = DeliverySettings()
    check: list[CheckText] = []
    environment: list[EnvironmentText] = []


class DeliveryConfig(msgspec.Struct, frozen=True):
    """The configuration that is fixed for one run."""

    plan: str
    source: str
    home: str
    slug: str
    secret: str
    """The source of nonces, so that a dispatch has the same one after a restart."""
    workspace: str = "delivery"
    """The workspace's id in the tags of processes."""
    base: str = "HEAD"
    timeouts: dict[str, float] = {}
    """The seconds that a role may take, if the project sets them."""
    strict_signals: bool = False
    allow_untestable: bool = False
    work: DeliverySettings = DeliverySettings()
    checks: tuple[CheckText, ...] = ()
    environments: tuple[EnvironmentText, ...] = ()
