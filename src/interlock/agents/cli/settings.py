"""What a user may set for an agent CLI, in `[agent.NAME]` of interlock.toml.

Knows the settings and which of them a profile can follow. Least privilege is the profile's
default; whatever skips permissions stands here because a user wrote it.
"""

from typing import Any

import msgspec

from interlock.agents.cli.clocks import CLOCK_NAMES, Timeouts
from interlock.agents.cli.profile import Mode, Profile
from interlock.system.errors import SourceError

_MOST_MONEY = 1_000_000
_SECONDS = {*CLOCK_NAMES, "grace"}


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it is optional."""

    command: str = ""
    """The program to run, where it is not found by its usual name."""
    model: str = ""
    flags: tuple[str, ...] = ()
    budget: float | None = None
    permission_mode: str = ""
    allowed_tools: tuple[str, ...] = ()
    directories: tuple[str, ...] | None = None
    """Folders it may look into beside its own; the project's, unless told otherwise."""
    env: dict[str, str] = {}
    let_in: tuple[str, ...] = ()
    """Names of variables of ours that it may see, such as AWS_*."""
    clocks: dict[str, float] = {}
    folder: str = ""
    """`own` or `project`."""
    resume: bool = True


def agent_settings(table: Any, profile: Profile) -> AgentSettings:
    """The settings of one agent; SourceError for what it cannot follow."""
    place = f"[agent.{profile.name}]"
    try:
        found = msgspec.convert(table, AgentSettings)
    except msgspec.ValidationError as error:
        raise SourceError(f"{place}: {error}") from None
    for name in ("model", "budget", "allowed_tools"):
        if getattr(found, name) and name not in profile.options:
            raise SourceError(f"{place}: {profile.title} has no flag for {name}; remove it")
    if found.permission_mode and found.permission_mode not in profile.modes:
        known = ", ".join(profile.modes)
        raise SourceError(f"{place}: permission_mode is one of {known}")
    if found.folder not in ("", "own", "project"):
        raise SourceError(f"{place}: folder is own or project, not {found.folder!r}")
    if found.budget is not None and not 0 < found.budget <= _MOST_MONEY:
        raise SourceError(f"{place}: budget is an amount of money above 0")
    _no_nul(place, found)
    clocks_of(profile, found)
    return found


def clocks_of(profile: Profile, settings: AgentSettings) -> Timeouts:
    """The five clocks: the profile's where it has its own, the user's before them."""
    seconds = {**profile.clocks, **settings.clocks}
    if not seconds.keys() <= _SECONDS:
        known = ", ".join(sorted(_SECONDS))
        raise SourceError(f"[agent.{profile.name}] clocks: names are {known}")
    return msgspec.convert(seconds, Timeouts)


def for_writing(profile: Profile, settings: AgentSettings) -> AgentSettings:
    """The settings of one that is to change files in its folder; a mode the user set stays."""
    if settings.permission_mode or not profile.writing_mode:
        return settings
    return msgspec.structs.replace(settings, permission_mode=profile.writing_mode)


def mode_of(profile: Profile, settings: AgentSettings) -> Mode:
    return profile.modes[settings.permission_mode or profile.mode]


def skips_permissions(profile: Profile, settings: AgentSettings) -> bool:
    """Whether the user has told it to ask for nothing."""
    flags = {flag.partition("=")[0] for flag in settings.flags}
    return mode_of(profile, settings).unsafe or bool(flags & set(profile.unsafe))


def _no_nul(place: str, found: AgentSettings) -> None:
    words = [found.command, found.model, *found.flags, *found.allowed_tools, *found.env.values()]
    if any("\0" in word for word in words) or any("=" in name or not name for name in found.env):
        raise SourceError(f"{place}: a word has a NUL in it, or a variable has no proper name")
