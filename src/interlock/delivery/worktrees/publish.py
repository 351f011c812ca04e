"""The one thing that the user's repository is given: a branch with the line.

Knows that a branch which somebody else made or moved is theirs, and that one that is checked out is
not moved under their feet. It only ever goes forward. No hook is run, no other ref is touched.
"""

from pathlib import Path

import msgspec

from interlock.delivery.worktrees.founding import ORIGIN_REFS, refs_of
from interlock.delivery.worktrees.names import line_ref, published_ref
from interlock.delivery.worktrees.workshop import DeliveryWorkspace
from interlock.system.errors import SourceError
from interlock.system.git import first_line
from interlock.system.workshop_git import Git


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Where the line is in the user's repository. Not done: the sentence says what to do."""

    branch: str
    sha: str
    is_done: bool
    is_new: bool = False
    sentence: str = ""


def publish(shop: DeliveryWorkspace, tip: str) -> Publication:
    """Bring the branch to the line's tip. Doing it again changes nothing."""
    ref, found = published_ref(shop.slug), shop.manifest.found
    branch = ref.removeprefix("refs/heads/")
    if not (Path(found.shared) / "objects").is_dir():
        raise SourceError(f"{found.folder} is not there any more; bring it back and run it again")
    user = shop.hand(Path(found.shared), safe=found.safe)
    at = user.run("rev-parse", "--verify", "--quiet", ref).text.strip()
    if at == tip and at in shop.ledger.published:
        return Publication(branch=branch, sha=tip, is_done=True)
    problem = _problem(shop, user, ref, at, tip)
    if not problem:
        shop.ledger.publishing(*sorted({at, tip} - {""}))
        words = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
        )
        user.ask(*words, "--no-auto-maintenance", str(shop.repo), line_ref(shop.slug))
        old = at or "0" * len(tip)
        ran = user.run("update-ref", "--no-deref", "-m", "interlock: publish", ref, tip, old)
        problem = "" if ran.fine else f"git did not move {branch}: {first_line(ran.complaint)}"
    if problem:
        return Publication(branch=branch, sha=at, is_done=False, sentence=problem)
    shop.ledger.publishing(tip)
    return Publication(branch=branch, sha=tip, is_done=True, is_new=True)


def moved_branches(shop: DeliveryWorkspace) -> list[str]:
    """The user's branches that are not where they were found: moved by the user, or by an agent
    that went out of its tree. Which of the two nobody can see from here."""
    found = shop.manifest.found
    there = refs_of(shop.hand(Path(found.shared), safe=found.safe))
    names = (ref.removeprefix(ORIGIN_REFS) for ref in shop.origin() if ref.startswith(ORIGIN_REFS))
    return [
        name
        for name in sorted(names)
        if there.get(f"refs/heads/{name}", "") != shop.origin()[f"{ORIGIN_REFS}{name}"]
        and f"refs/heads/{name}" != published_ref(shop.slug)
    ]


def _problem(shop: DeliveryWorkspace, user: Git, ref: str, at: str, tip: str) -> str:
    """Why the branch may not be moved, and what to do; or nothing."""
    branch = ref.removeprefix("refs/heads/")
    advice = f"rename it (git branch -m {branch} another-name) and run it again"
    if at and at not in shop.ledger.published:
        return f"the branch {branch} is there already and not as Interlock left it; {advice}"
    if _is_checked_out(user, ref):
        return f"the branch {branch} is checked out; switch to another one and run it again"
    if at and not shop.git.holds("merge-base", "--is-ancestor", at, tip):
        return f"the branch {branch} would not go forward; {advice}"
    above = ref.rpartition("/")[0]
    if not at and user.holds("rev-parse", "--verify", "--quiet", above):
        name = above.removeprefix("refs/heads/")
        return f"a branch {name!r} leaves no room for {branch}; rename it and run it again"
    below = user.ask("for-each-ref", "--count=1", "--format=%(refname:short)", f"{ref}/")
    if below:
        return f"the branch {below} leaves no room for {branch}; rename it and run it again"
    return ""


def _is_checked_out(user: Git, ref: str) -> bool:
    rows = user.ask("worktree", "list", "--porcelain").split("\n")
    return f"branch {ref}" in rows
