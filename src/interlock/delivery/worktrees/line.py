"""The line: the history that finished tasks are merged to, one commit each, one after the other.

Knows how a change is brought onto its tip, handed out to be verified, and made the new tip if
nobody was faster. A change that is on the line already is recognised by its trailers. Refuses to
know what is verified, and never merges by itself what is in conflict.
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.delivery.worktrees.diff import added_lines
from interlock.delivery.worktrees.ledger import MovedError
from interlock.delivery.worktrees.mend import clear
from interlock.delivery.worktrees.names import kept_ref, line_ref, shown
from interlock.delivery.worktrees.publish import Publication, publish
from interlock.delivery.worktrees.scratch import MergeTree, pick
from interlock.delivery.worktrees.tree import TaskTree
from interlock.delivery.worktrees.workshop import DeliveryWorkspace
from interlock.system.errors import SourceError, StateError
from interlock.system.workshop_git import dated

_TRIES = 5
_MOST_TEXT = 20_000
_MOST_TITLE = 200
_HASH = re.compile(r"[0-9a-f]{40,64}")
_MARKER = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)")


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a task did: from `base` to `sha`. The two ids tell it from every other change."""

    task_id: str
    dispatch_id: str
    sha: str
    base: str
    title: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change on the line's tip, not yet part of the line. `folder` shows it, for verification."""

    commit: str
    tip: str
    folder: str


class Merged(msgspec.Struct, frozen=True):
    sha: str


class AlreadyMerged(msgspec.Struct, frozen=True):
    """The line has this very change, as `sha`."""

    sha: str


class NothingToMerge(msgspec.Struct, frozen=True):
    """There is nothing in the change that the line does not have."""


class MergeRejected(msgspec.Struct, frozen=True):
    """Verification said no."""

    sentence: str


class Conflict(msgspec.Struct, frozen=True):
    """The line has other changes in the same places. `text` shows them, up to a bound."""

    files: tuple[str, ...]
    text: str
    tip: str


class Rebased(msgspec.Struct, frozen=True):
    """A task's tree is on the line's tip now; in these files are conflicts to resolve."""

    base: str
    files: tuple[str, ...]


Outcome = Merged | AlreadyMerged | NothingToMerge | MergeRejected | Conflict


class MergeBranch:
    """The line of a workshop. One merge at a time: there is one tree for it."""

    def __init__(self, shop: DeliveryWorkspace) -> None:
        self.shop = shop
        self.ref = line_ref(shop.slug)
        self.scratch = MergeTree(shop)

    @property
    def tip(self) -> str:
        return self.shop.ledger.refs[self.ref]

    def merge(self, change: TaskChange, verify: Callable[[Path], str]) -> Outcome:
        """Propose, verify, accept; again if the line moved. `verify` says what is wrong, or ""."""
        for _ in range(_TRIES):
            proposal = self.propose(change)
            if not isinstance(proposal, Proposal):
                return proposal
            sentence = verify(Path(proposal.folder))
            if sentence:
                return MergeRejected(sentence)
            try:
                return self.accept(proposal)
            except MovedError:
                continue
        raise StateError(f"the line moved {_TRIES} times while {change.task_id!r} was verified")

    def propose(self, change: TaskChange) -> Proposal | AlreadyMerged | NothingToMerge | Conflict:
        """Bring the change onto the tip, in a tree of its own. The line does not move."""
        git, tip = self.shop.git, self._right_tip()
        merged = self.find(change)
        if merged:
            return AlreadyMerged(merged)
        squashed = self._squash(change, tip)
        if squashed is None:
            return NothingToMerge()
        self.scratch.show(tip)
        files = self.scratch.pick(squashed)
        if files:
            text = self.scratch.git.run("diff", "--no-color", most=_MOST_TEXT).text
            return Conflict(tuple(shown(path) for path in files), text, tip)
        tree = self.scratch.git.ask("write-tree")
        if tree == git.ask("rev-parse", f"{tip}^{{tree}}"):
            return NothingToMerge()
        when = dated(self.shop.clock())
        message = _message(change).encode(errors="replace")
        commit = git.ask("commit-tree", tree, "-p", tip, feed=message, also=when)
        git.ask("update-ref", kept_ref(self.shop.slug, commit), commit)
        self.scratch.stand_on(commit)
        clear(self.scratch.admin)
        return Proposal(commit=commit, tip=tip, folder=str(self.scratch.folder))

    def accept(self, proposal: Proposal) -> Merged:
        """Make it the tip. MovedError if the line went on since: propose again."""
        ledger = self.shop.ledger
        with ledger.turn():
            if self._right_tip() != proposal.tip:
                raise MovedError
            ledger.move(self.shop.git, {self.ref: proposal.commit}, {self.ref: proposal.tip})
        return Merged(proposal.commit)

    def find(self, change: TaskChange) -> str:
        """The commit by which the line has this change, or ""."""
        wanted = set(_trailers(change)[:2])
        words = ("log", "-z", "--first-parent", "--format=%H%n%B", f"{self.shop.base}..{self.tip}")
        for row in self.shop.git.paths(*words):
            commit, _, message = row.decode(errors="replace").partition("\n")
            if wanted <= set(message.rstrip("\n").rpartition("\n\n")[2].split("\n")):
                return commit
        return ""

    def replant(self, tree: TaskTree, sha: str, base: str) -> Rebased:
        """Put a task's change onto the tip in its own tree, with markers where it does not fit."""
        tip = self._right_tip()
        change = TaskChange(task_id=tree.record.task_id, dispatch_id="replant", sha=sha, base=base)
        squashed = self._squash(change, tip)
        tree.restore(tip)
        tree.begin_at(tip)
        files = pick(tree.git, squashed) if squashed else []
        clear(tree.admin)
        tree.git.ask("read-tree", "--reset", tip)
        tree.share_index()
        return Rebased(tip, tuple(shown(path) for path in files))

    def markers(self, base: str, sha: str) -> list[tuple[str, int]]:
        """Where conflict markers are left in what was changed: path and line."""
        words = ("diff-tree", "-r", "-p", "-U0", "--no-renames", "--no-color", base, sha)
        added = added_lines(self.shop.git.run(*words).out)
        return sorted(
            (shown(path), number)
            for path, lines in added.items()
            for number, text in lines
            if _MARKER.match(text)
        )

    def publish(self) -> Publication:
        """Bring the line into the user's repository, as a branch of its own."""
        return publish(self.shop, self._right_tip())

    def _right_tip(self) -> str:
        """The tip; if somebody else moved the line, it is put back first."""
        with self.shop.ledger.turn():
            said = self.shop.git.run("rev-parse", "--verify", "--quiet", self.ref).text.strip()
            if said != self.tip:
                self.shop.ledger.restore(self.shop.git, {self.ref: self.tip})
            return self.tip

    def _squash(self, change: TaskChange, tip: str) -> str | None:
        """The whole change as one commit on its base; nothing if it changes nothing."""
        git = self.shop.git
        for commit in (change.sha, change.base):
            is_hash = _HASH.fullmatch(commit) is not None
            if not is_hash or not git.holds("cat-file", "-e", f"{commit}^{{commit}}"):
                raise SourceError(f"{commit[:40]!r} is no commit of this workshop; give a snapshot")
        if not git.holds("merge-base", "--is-ancestor", change.base, tip):
            raise StateError(
                f"{change.base[:12]}, where {change.task_id!r} began, is not on the line; restore "
                "its tree to a snapshot that is"
            )
        tree = git.ask("rev-parse", f"{change.sha}^{{tree}}")
        if tree == git.ask("rev-parse", f"{change.base}^{{tree}}"):
            return None
        words = ("commit-tree", tree, "-p", change.base)
        return git.ask(*words, feed=_message(change).encode(errors="replace"), also=dated(0))


def _message(change: TaskChange) -> str:
    title = " ".join((change.title or change.task_id).split())[:_MOST_TITLE]
    return "\n".join((title, "", *_trailers(change), ""))


def _trailers(change: TaskChange) -> list[str]:
    ids = (" ".join(word.split()) for word in (change.task_id, change.dispatch_id))
    task_id, dispatch_id = ids
    return [
        f"Interlock-Task: {task_id}",
        f"Interlock-Dispatch: {dispatch_id}",
        f"Interlock-Change: {change.sha}",
    ]
