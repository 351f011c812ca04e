"""The terms of an investigation: what was agreed when it began, kept with its run."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.rca.launch import Repo

Review = Literal["human", "auto", "dispatch"]


class RcaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a suite is investigated."""

    repos: tuple[Repo, ...] = ()
    last_green: Mapping[str, str] = {}
    """Of each repository the revision that last passed; under "" that of all others."""
    review: Review = "human"
    """Who answers F5: a human over the inbox, a rule above a threshold, or whoever is asked."""
    review_above: float = 0.85
    """What a finding must score to be approved without a human, if a rule may do that."""
    families: bool | None = None
    """Whether one case of a family is investigated for the others; if nobody says so, where our own
    analyst or a batch of agents does it."""
    recall_first: bool = False
    """Whether the store is looked up before anybody is asked whether a failure is known."""
    codes: Mapping[str, str] = {}
    """A project's own defect codes, each with its category."""
    cache: str = ""
    """The folder where histories of repositories are kept."""
