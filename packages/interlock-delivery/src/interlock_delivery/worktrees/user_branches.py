"""Detect moves of the user's own branches since the run began.

An agent that leaves its worktree can move them, and so can the user, who works on meanwhile. Since
the two look the same from here, one task asks a human, once per move, and the answer is accepted. A
branch that only took our merged work is fine.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock_delivery.worktrees.clone import ORIGIN_REFS
from interlock_delivery.worktrees.names import merge_ref, published_ref, read_refs
from interlock_delivery.worktrees.ref_guard import GONE

if TYPE_CHECKING:
    from interlock_delivery.worktrees.workspace import DeliveryWorkspace

_HEADS = "refs/heads/"


class MovedBranch(msgspec.Struct, frozen=True):
    """A branch of the user's that moved; `now` is "" if it was deleted."""

    ref: str
    was: str
    now: str


def find_moved_branches(workspace: "DeliveryWorkspace") -> list[MovedBranch]:
    """Return the moves that nobody has accepted yet."""
    source, accepted = workspace.source, workspace.ledger.accepted
    there = read_refs(workspace.open_git(Path(source.shared), safe=source.safe))
    found = []
    for origin, was in sorted(workspace.read_origin_refs().items()):
        ref = f"{_HEADS}{origin.removeprefix(ORIGIN_REFS)}"
        if not origin.startswith(ORIGIN_REFS) or ref == published_ref(workspace.slug):
            continue
        now = there.get(ref, GONE)
        if now not in (was, accepted.get(ref, was)) and not _is_merged(workspace, now):
            found.append(MovedBranch(ref, was, now))
    return found


def _is_merged(workspace: "DeliveryWorkspace", commit: str) -> bool:
    """Return True if the user only took what was merged and published."""
    tip = workspace.ledger.refs[merge_ref(workspace.slug)]
    known = commit != GONE and workspace.git.is_true("cat-file", "-e", f"{commit}^{{commit}}")
    return (
        known
        and workspace.git.is_true("merge-base", "--is-ancestor", commit, tip)
        and not workspace.git.is_true("merge-base", "--is-ancestor", commit, workspace.base)
    )


def claim_moves(
    workspace: "DeliveryWorkspace", case_id: str, is_open: Callable[[str], bool]
) -> list[MovedBranch]:
    """Return the moves that this task asks a human about, which no other open task does."""
    with workspace.ledger.hold():
        found = []
        for move in find_moved_branches(workspace):
            claimed_by = workspace.ledger.claims.get(f"{move.ref} {move.now}", case_id)
            if claimed_by == case_id or not is_open(claimed_by):
                found.append(move)
        workspace.ledger.claim({f"{move.ref} {move.now}": case_id for move in found})
    return found


def accept_moves(workspace: "DeliveryWorkspace", moves: Iterable[Mapping[str, Any]]) -> None:
    """Record that a human was asked about these moves and answered."""
    workspace.ledger.accept({str(move["ref"]): str(move["now"]) for move in moves})


def describe_moves(workspace: "DeliveryWorkspace", moves: Iterable[MovedBranch]) -> str:
    """Describe each move, with the command that undoes it."""
    lines = []
    for move in moves:
        name = move.ref.removeprefix(_HEADS)
        what = f"moved to {move.now[:12]}" if move.now else "was deleted"
        git = f"git -C {workspace.source.folder}"
        back = f"{git} update-ref {move.ref} {move.was} {move.now}".rstrip()
        lines.append(
            f"Your branch {name} {what} while agents were at work; it was at {move.was[:12]}. If "
            f"that was not you, an agent left its worktree. This restores the branch and touches "
            f"no file:\n{back}"
        )
    return "\n\n".join(lines)
