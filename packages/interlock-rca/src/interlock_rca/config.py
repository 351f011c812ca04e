"""The configuration of root-cause analysis: a project's tables, and the terms of one suite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.system.errors import UsageError
from interlock_rca.records import Repo, TestRange
from interlock_rca.reproduce.command import check_line
from interlock_rca.sources.git.open import check_unique_names, parse_repo, read_workspace

AUTO = "auto"
"""The last green revision that means: each test's own last pass in the memory of results."""
Review = Literal["human", "auto", "dispatch"]


class ReproduceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to confirm suspects by running the failing tests."""

    command: str = ""
    """A shell line that exits with 0 if the test passes: `pytest {test}`. Without it, nothing is
    run. {test}, {file}, {name} and {class} are filled in, each as one argument."""
    setup: str = ""
    """A shell line run once at each commit before it, such as a build."""
    repo: str = ""
    """The repository to run it in; by default that of the suspect."""
    repeats: int = 3
    """The number of equal outcomes at which a commit's result is believed."""
    timeout: float = 600.0
    """Seconds for one run of the command, or of the set-up."""
    minutes: float = 30.0
    """Minutes for all runs of one analysis; the next analysis continues."""
    runs: int = 200
    """The most runs of one analysis."""
    keep_ignored: bool = False
    """Keep git-ignored files from commit to commit: faster builds, less certainty."""

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
    """A project's top-level tables in interlock.toml about root-cause analysis."""

    repo: list[dict[str, Any]] = []
    last_green: str | dict[str, str] = ""
    defect_codes: dict[str, str] = {}
    reproduce: ReproduceConfig = ReproduceConfig()


class RcaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a suite's investigation."""

    repos: tuple[Repo, ...] = ()
    last_green: Mapping[str, str] = {}
    """The last green revision of each repository; "" applies to all others."""
    ranges: Mapping[str, Mapping[str, TestRange]] = {}
    """For each repository and test, the commits between which it broke, by the history of its
    results (`--last-green auto`)."""
    review: Review = "human"
    """Who answers F5: a human in the inbox, a rule above a threshold, or the agent of the other
    steps."""
    review_above: float = 0.85
    """The score at which the rule approves a finding without a human."""
    families: bool | None = None
    """Investigate one case of a family for the others; by default, only the built-in analyst and
    batches of agents do."""
    recall_first: bool = False
    """Look failures up in the store before asking whether they are known."""
    codes: Mapping[str, str] = {}
    """A project's own defect codes with their categories."""
    cache: str = ""
    """The folder of cached repository histories."""
    reproduce: ReproduceConfig = ReproduceConfig()
    """The confirmation of suspects by running tests."""


def change_config(
    before: RcaConfig,
    repo: list[str] | None = None,
    workspace: Path | None = None,
    last_green: list[str] | None = None,
    **flags: Any,
) -> RcaConfig:
    """Return the configuration with the user's changes; flags that are None change nothing."""
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
        # One revision for all overrides the settings of single repositories.
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
