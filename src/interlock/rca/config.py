"""The terms of an investigation: what was agreed when it began, kept with its run.

The words of an analysis: flags that its verbs share, and the terms they agree to.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from interlock.cli.options import pairs
from interlock.cli.show import tell
from interlock.rca.records import Repo
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.runtime.circuits import Bundle


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


class ReviewMode(StrEnum):
    """Who answers F5."""

    HUMAN = "human"
    AUTO = "auto"
    DISPATCH = "dispatch"


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="JUnit XML, logs, folders, globs, zips, envelope .json, rp:LAUNCH or its address.",
    ),
]
SuiteName = Annotated[
    str, typer.Option("--suite", metavar="NAME", help="The suite's name; default from the sources.")
]
RepoWords = Annotated[
    list[str] | None,
    typer.Option(
        "--repo", metavar="[NAME=]PATH[:PURPOSE]", help="A git repository to look in; repeatable."
    ),
]
WorkspaceFile = Annotated[
    Path | None, typer.Option("--workspace", metavar="FILE", help="Repositories in YAML or JSON.")
]
LastGreen = Annotated[
    list[str] | None,
    typer.Option(
        "--last-green", metavar="[REPO=]REV", help="The revision that last passed; repeatable."
    ),
]
Reviewing = Annotated[
    ReviewMode | None,
    typer.Option(
        "--review", help="Who reviews: human, auto (above a score), or dispatch (as other roles)."
    ),
]
ReviewAbove = Annotated[
    float | None,
    typer.Option(
        "--review-above",
        metavar="SCORE",
        min=0,
        max=1,
        help="What --review auto needs to approve; default 0.85.",
    ),
]
FamiliesFlag = Annotated[
    bool | None,
    typer.Option(
        "--families/--each", help="Investigate one case of a family for all, or each by itself."
    ),
]
RecallFlag = Annotated[
    bool | None,
    typer.Option(
        "--recall-first/--recall-asked", help="Look failures up before asking, or always ask."
    ),
]
CaseFiles = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Where --dispatch writes; default .asterisk/calibrate, by hand …/investigations.",
    ),
]
PromptDir = Annotated[
    Path | None,
    typer.Option("--prompt-dir", metavar="DIR", help="Your own templates, such as recall/….md."),
]


def agreed(
    before: "RcaConfig",
    repo: list[str] | None,
    workspace: Path | None,
    last_green: list[str] | None,
    **said: Any,
) -> "RcaConfig":
    """The terms with what the command line says; what it does not say stays."""
    from interlock.rca.sources.git.open import parse_repo, read_workspace, unite

    named = [parse_repo(word) for word in repo or ()]
    given = unite([*(read_workspace(workspace) if workspace else ()), *named], "--repo")
    kept = [each for each in before.repos if each.name not in {one.name for one in given}]
    greens = dict(_green(word) for word in last_green or ())
    changes = {name: value for name, value in said.items() if value is not None}
    if given:
        changes["repos"] = (*kept, *given)
    if greens:
        # One revision for all is meant for all: what a file says about single ones is overruled.
        changes["last_green"] = greens if "" in greens else {**before.last_green, **greens}
    found = msgspec.structs.replace(before, **changes)
    unknown = sorted({name for name in found.last_green if name} - {r.name for r in found.repos})
    if unknown:
        known = ", ".join(one.name for one in found.repos) or "none; name one with --repo"
        raise SourceError(f"--last-green {unknown[0]}=…: repositories are {known}")
    return found


def _green(word: str) -> tuple[str, str]:
    if "=" not in word:
        return "", word
    return next(iter(pairs([word], "--last-green").items()))


def with_prompts(bundle: "Bundle", folder: Path | None) -> "Bundle":
    """The circuit with a user's own templates in the place of ours."""
    from interlock.runtime.circuits import read_text

    if folder is None:
        return bundle
    if not folder.is_dir():
        raise SourceError(f"--prompt-dir {folder}: there is no such folder")
    known = {name.removeprefix("prompts/"): name for name in bundle.prompts}
    own = {
        known[name]: read_text(folder / name, 1_000_000)
        for name in known
        if (folder / name).is_file()
    }
    if not own:
        raise SourceError(f"--prompt-dir {folder} has none of {', '.join(sorted(known))}")
    for name, text in own.items():
        _refuse_unfillable(folder / name.removeprefix("prompts/"), text)
    for path in sorted(folder.glob("*/*.md")):
        other = path.relative_to(folder).as_posix()
        if other not in known:
            tell(f"note: --prompt-dir {folder}: {other} is no template of rca and is not used")
    return msgspec.structs.replace(bundle, prompts={**bundle.prompts, **own})


def _refuse_unfillable(path: Path, text: str) -> None:
    from interlock.agents.wiring_files import RCA
    from interlock.runtime.apps import prompt_names
    from interlock.runtime.prompts import FACTS, unfillable

    known = (*FACTS, *prompt_names(RCA))
    problem = unfillable(text, known)
    if problem:
        raise SourceError(f"{path}: {problem}; templates can read {', '.join(known)}")
