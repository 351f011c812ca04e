"""Decide by a table what to do about each state of git on resume.

The most cautious action of all findings counts. None is stronger than a stash, which can be
restored.
"""

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final

import msgspec

from interlock.system.errors import SourceError


class GitFinding(StrEnum):
    """A fact about git that matters for resuming."""

    EQUAL = "equal"
    AHEAD = "ahead"
    BEHIND = "behind"
    DIVERGED = "diverged"
    MISSING_COMMIT = "missing_commit"
    UNRECORDED = "unrecorded"
    NO_REPOSITORY = "no_repository"
    REPOSITORY_GONE = "repository_gone"
    OTHER_BRANCH = "other_branch"
    DETACHED = "detached"
    OPERATION = "operation"
    DIRTY_AS_LEFT = "dirty_as_left"
    DIRTY_TRACKED = "dirty_tracked"
    DIRTY_UNTRACKED = "dirty_untracked"


class Action(IntEnum):
    """The actions, from the boldest to the most cautious."""

    CONTINUE = 0
    STASH = 1
    ASK = 2
    REFUSE = 3

    @property
    def word(self) -> str:
        return self.name.lower()


Policy = Mapping[GitFinding, Action]

DEFAULTS: Final[Policy] = {
    GitFinding.EQUAL: Action.CONTINUE,
    GitFinding.AHEAD: Action.CONTINUE,
    GitFinding.BEHIND: Action.ASK,
    GitFinding.DIVERGED: Action.ASK,
    GitFinding.MISSING_COMMIT: Action.REFUSE,
    GitFinding.UNRECORDED: Action.ASK,
    GitFinding.NO_REPOSITORY: Action.CONTINUE,
    GitFinding.REPOSITORY_GONE: Action.REFUSE,
    GitFinding.OTHER_BRANCH: Action.ASK,
    GitFinding.DETACHED: Action.ASK,
    GitFinding.OPERATION: Action.REFUSE,
    GitFinding.DIRTY_AS_LEFT: Action.CONTINUE,
    GitFinding.DIRTY_TRACKED: Action.STASH,
    GitFinding.DIRTY_UNTRACKED: Action.CONTINUE,
}
DIRTY: Final = frozenset(
    {GitFinding.DIRTY_TRACKED, GitFinding.DIRTY_UNTRACKED, GitFinding.DIRTY_AS_LEFT}
)


class GitState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of git compared with the checkpoint's."""

    findings: tuple[GitFinding, ...]
    head: str = ""
    branch: str = ""
    """"" if HEAD is detached or there is no repository."""
    recorded_commit: str = ""
    recorded_branch: str = ""
    operation: str = ""
    ahead: int = 0
    behind: int = 0
    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    """A few of the changed paths, to show."""


class ResumeDecision(msgspec.Struct, frozen=True):
    """The action, the findings that ask for it, and a sentence for each."""

    action: Action
    because: tuple[GitFinding, ...]
    reason: str


def decide_resume(state: GitState, policy: Policy = DEFAULTS) -> ResumeDecision:
    """Return the most cautious action that any finding asks for."""
    actions = {finding: policy.get(finding, DEFAULTS[finding]) for finding in state.findings}
    action = max(actions.values(), default=Action.CONTINUE)
    because = tuple(finding for finding in state.findings if actions[finding] == action)
    return ResumeDecision(
        action, because, "; ".join(describe_finding(finding, state) for finding in because)
    )


def describe_finding(finding: GitFinding, state: GitState) -> str:
    """Return a finding as a sentence, with advice where it is not obvious."""
    head, recorded = state.head[:12] or "nothing", state.recorded_commit[:12]
    ours, theirs = state.branch or "no branch", state.recorded_branch or "no branch"
    return {
        GitFinding.EQUAL: f"HEAD is the checkpoint's commit {recorded}",
        GitFinding.AHEAD: f"HEAD {head} is {_count_commits(state.ahead)} ahead of the checkpoint",
        GitFinding.BEHIND: (
            f"HEAD {head} is {_count_commits(state.behind)} behind the checkpoint {recorded}"
        ),
        GitFinding.DIVERGED: f"HEAD {head} and the checkpoint {recorded} have diverged",
        GitFinding.MISSING_COMMIT: f"the checkpoint's commit {recorded} is not in this repository",
        GitFinding.UNRECORDED: f"the checkpoint records no commit to compare HEAD {head} with",
        GitFinding.NO_REPOSITORY: "there is no git repository here, and none was recorded",
        GitFinding.REPOSITORY_GONE: f"there is no git repository here to find {recorded} in",
        GitFinding.OTHER_BRANCH: f"the branch is {ours}, but the checkpoint's was {theirs}",
        GitFinding.DETACHED: f"HEAD is detached, but the checkpoint's branch was {theirs}",
        GitFinding.OPERATION: f"a {state.operation} is in progress: finish or abort it",
        GitFinding.DIRTY_AS_LEFT: "uncommitted work is as the checkpoint left it",
        GitFinding.DIRTY_TRACKED: f"files have changed since: {_list_paths(state.tracked)}",
        GitFinding.DIRTY_UNTRACKED: f"files are not tracked: {_list_paths(state.untracked)}",
    }[finding]


def read_policy(settings: Mapping[str, str]) -> Policy:
    """Return the table with the project's own rows: finding = continue, stash, ask or refuse."""
    policy = dict(DEFAULTS)
    for name, word in settings.items():
        finding = next((member for member in GitFinding if member == name.replace("-", "_")), None)
        action = next((member for member in Action if member.word == word), None)
        if finding is None:
            raise SourceError(
                f"{name[:40]!r} is not a finding about git; use one of {', '.join(GitFinding)}"
            )
        if action is None:
            words = ", ".join(member.word for member in Action)
            raise SourceError(f"{finding} = {word[:40]!r}: use one of {words}")
        if action == Action.STASH and finding not in DIRTY:
            raise SourceError(f"{finding} = stash: only {', '.join(sorted(DIRTY))} can be stashed")
        if action == Action.CONTINUE and finding == GitFinding.OPERATION:
            raise SourceError(f"{finding} = continue: use ask or refuse")
        policy[finding] = action
    return policy


def _count_commits(number: int) -> str:
    return "1 commit" if number == 1 else f"{number} commits"


def _list_paths(paths: tuple[str, ...]) -> str:
    shown = ", ".join(path[:80] for path in paths[:3])
    return f"{shown} and {len(paths) - 3} more" if len(paths) > 3 else shown
