"""What an epic is run with: the project's `[epic]` settings, and what one run agreed to.

Knows words and their limits. A run keeps its terms, so that a later sitting needs no words again.
"""

from typing import Literal

import msgspec

from interlock.epic.epic_file import EpicStory
from interlock.epic.recovery.policy import Policy, read_policy
from interlock.system.errors import SourceError, UsageError
from interlock.system.time import parse_duration

Desk = Literal["inbox", "github"]


class EpicSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[epic]` in interlock.toml. Times are written 90s, 10m, 2h."""

    resume_prompt: str = ""
    """What each session is told instead of our own prompt, to the letter."""
    session_timeout: str = "4h"
    idle_timeout: str = "30m"
    grace: str = "20s"
    """For leaving by itself after its last word."""
    backoff: str = "2s"
    """The first pause after a crash; it doubles with each in a row. `0` for none."""
    hitl: Desk = "inbox"
    hitl_timeout: str = "24h"
    approvers: list[str] = []
    """Who may answer on GitHub; without a list, whoever can write there."""
    hook_secret_env: str = "INTERLOCK_GITHUB_SECRET"  # noqa: S105 - a name
    """The variable with the secret of GitHub's webhook."""
    max_recoveries: int = 5
    git: dict[str, str] = {}
    """What is done about each state of git on resume: continue, stash, ask or refuse."""


class EpicTables(msgspec.Struct, frozen=True):
    """What a project says about epics in interlock.toml."""

    epic: EpicSettings = EpicSettings()


class EpicConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What one run agreed to."""

    epic_id: str
    root: str
    db: str
    fresh: bool = False
    """Whether it may begin without a checkpoint: somebody gave the epic itself."""
    title: str = ""
    file: str = ""
    stories: tuple[EpicStory, ...] = ()
    settings: EpicSettings = EpicSettings()

    def policy(self) -> Policy:
        return read_policy(self.settings.git)


def seconds(word: str, name: str) -> float:
    """The seconds that a word of the settings means; 0 is allowed."""
    if word.strip() in ("0", "0s"):
        return 0.0
    try:
        return parse_duration(word.strip())
    except UsageError as error:
        raise SourceError(f"{name}: {error}") from None


def check_settings(settings: EpicSettings) -> EpicSettings:
    """The settings, if all their words can be understood."""
    for name in ("session_timeout", "idle_timeout", "grace", "backoff", "hitl_timeout"):
        value = seconds(getattr(settings, name), f"[epic] {name}")
        if not value and name in ("session_timeout", "idle_timeout", "hitl_timeout"):
            raise SourceError(f"[epic] {name}: write for example 30m; 0 is no time")
    if not 1 <= settings.max_recoveries <= 1_000:
        raise SourceError("[epic] max_recoveries: a number from 1 to 1,000")
    read_policy(settings.git)
    return settings
