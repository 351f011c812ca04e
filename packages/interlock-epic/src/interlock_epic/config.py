"""The `[epic]` settings of a project, and the configuration of one run.

The configuration is stored with the run, so that resuming needs no flags.
"""

from typing import Final, Literal

import msgspec

from interlock.system.errors import SourceError, UsageError
from interlock.system.time import parse_duration
from interlock_epic.epic_file import EpicStory
from interlock_epic.recovery.policy import read_policy

_TIMES: Final = ("session_timeout", "idle_timeout", "hitl_timeout", "grace", "backoff")
_MAY_BE_ZERO: Final = ("grace", "backoff")


class EpicSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[epic]` in interlock.toml. Times are written 90s, 10m, 2h."""

    resume_prompt: str = ""
    """The prompt of every session, sent unchanged in place of ours."""
    session_timeout: str = "4h"
    idle_timeout: str = "30m"
    grace: str = "20s"
    """The time a session has to exit by itself after its last signal."""
    backoff: str = "2s"
    """The first pause after a crash; it doubles with each crash in a row. `0` means none."""
    hitl: Literal["inbox", "github"] = "inbox"
    hitl_timeout: str = "24h"
    approvers: list[str] = []
    """The people who may answer on GitHub; without a list, everyone with write access."""
    max_recoveries: int = 5
    git: dict[str, str] = {}
    """The action for each state of git on resume: continue, stash, ask or refuse."""


class EpicTables(msgspec.Struct, frozen=True):
    """The tables of interlock.toml that epics read."""

    epic: EpicSettings = EpicSettings()


class EpicConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one run."""

    epic_id: str
    root: str
    host: str = ""
    """The host that has the folder."""
    db: str
    fresh: bool = False
    """True if the run may start without a checkpoint, since the user named the epic's file."""
    title: str = ""
    file: str = ""
    stories: tuple[EpicStory, ...] = ()
    settings: EpicSettings = EpicSettings()


def parse_seconds(word: str, name: str) -> float:
    """Return the seconds of a setting; 0 is allowed."""
    if word.strip() in ("0", "0s"):
        return 0.0
    try:
        return parse_duration(word.strip())
    except UsageError as error:
        raise SourceError(f"{name}: {error}") from None


def check_settings(settings: EpicSettings) -> EpicSettings:
    """Return the settings; raise SourceError if one is invalid."""
    for name in _TIMES:
        seconds = parse_seconds(getattr(settings, name), f"[epic] {name}")
        if not seconds and name not in _MAY_BE_ZERO:
            raise SourceError(f"[epic] {name}: write a time above 0, for example 30m")
    if not 1 <= settings.max_recoveries <= 1_000:
        raise SourceError("[epic] max_recoveries: write a number from 1 to 1,000")
    read_policy(settings.git)
    return settings
