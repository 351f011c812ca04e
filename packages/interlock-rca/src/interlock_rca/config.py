"""How root-cause analysis is configured: a project's tables, and what one suite was begun with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.system.errors import UsageError
from interlock_rca.records import Repo, TestRange
from interlock_rca.reproduce.command import check_line
from interlock_rca.sources.git.open import check_unique_names, parse_repo, read_workspace

AUTO = "auto"
"""As a last green revision: of each test its own, as the memory of results knows it."""
Review = Literal["human", "auto", "dispatch"]


class ReproduceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How suspects are confirmed by running the failing tests."""

    command: str = ""
    """A shell line that exits with 0 if the test passes: `pytest {test}`. Nothing is run without
    it. {test}, {file}, {name} and {class} are filled in, each as one argument."""
    setup: str = ""
    """A shell line that is run before it, once at each commit: what a build needs."""
    repo: str = ""
    """The repository that it is run in, if there are several; by default that of the suspect."""
    repeats: int = 3
    """How often a commit must come out the same before it is believed."""
    timeout: float = 600.0
    """Seconds for one run of the command, or of the set-up."""
    minutes: float = 30.0
    """For all runs of one analysis together. What is left is done by the next one."""
    runs: int = 200
    """How many runs one analysis may make."""
    keep_ignored: bool = False
    """Whether files that git ignores stay from commit to commit: faster builds, less certainty."""

    def __post_init__(self) -> None:
        check_line(self.command, "reproduce")
        check_line(self.setup, "reproduce set-up")
        if self.repeats < 1 or self.runs < 1:
            raise UsageError("reproduce: repeats and runs must be 1 or more")
        if not (self.timeout > 0 and self.minutes > 0):
            raise UsageError("reproduce: timeout and minutes must be more than 0")
        if self.setup and not self.command:
            raise UsageError("reproduce: there is a set-up, but no command that tells pass or fail")


class RcaTables(msgspec.Struct, frozen=True):
    """What a project says about root-cause analysis in interlock.toml, at the top level."""

    repo: list[dict[str, Any]] = []
    last_green: str | dict[str, str] = ""
    defect_codes: dict[str, str] = {}
    reproduce: ReproduceConfig = ReproduceConfig()


class RcaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a suite is investigated."""

    repos: tuple[Repo, ...] = ()
    last_green: Mapping[str, str] = {}
    """Of each repository the revision that last passed; under "" that of all others."""
    ranges: Mapping[str, Mapping[str, TestRange]] = {}
    """Of each repository and test, where to look for what broke it, as the history of its results
    tells (`--last-green auto`)."""
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
    reproduce: ReproduceConfig = ReproduceConfig()
    """How suspects are confirmed by running, if they are."""


def change_config(
    before: RcaConfig,
    repo: list[str] | None = None,
    workspace: Path | None = None,
    last_green: list[str] | None = None,
    **flags: Any,
) -> RcaConfig:
    """The configuration with what the user gave; flags that are None change nothing."""
    named = [parse_repo(word) for word in repo or ()]
    given = check_unique_names(
        [*(read_workspace(workspace) if workspace else ()), *named], "--repo"
    )
    kept = [each for each in before.repos if each.name not in {one.name for one in given}]
    greens = dict(_parse_last_green(word) for word in last_green or ())
    changes = {name: value for name, value in flags.items() if value is not None}
    given_runs = changes.pop("reproduce", {})
    if reproduce := {name: value for name, value in given_runs.items() if value is not None}:
        changes["reproduce"] = msgspec.structs.replace(before.reproduce, **reproduce)
    if given:
        changes["repos"] = (*kept, *given)
    if greens:
        # One revision for all is meant for all: what a file says about single ones is overruled.
        changes["last_green"] = greens if "" in greens else {**before.last_green, **greens}
    found = msgspec.structs.replace(before, **changes)
    unknown = sorted({name for name in found.last_green if name} - {r.name for r in found.repos})
    if unknown:
        known = ", ".join(one.name for one in found.repos) or "none; name one with --repo"
        raise UsageError(f"--last-green {unknown[0]}=…: repositories are {known}")
    return found


def _parse_last_green(word: str) -> tuple[str, str]:
    if "=" not in word:
        return "", word
    repo, _, revision = word.partition("=")
    if not repo.strip() or not revision.strip():
        raise UsageError(f"--last-green {word!r}: write --last-green name=value")
    return repo.strip(), revision.strip()
