"""Exchange commits with a git remote: create refs, never move them, and fetch them by name.

A ref that is created once and never moved has one writer: a late one finds the ref taken, and uses
another. Credentials are the user's own (ssh keys, credential helpers), never part of an address.
"""

import re
from pathlib import Path
from urllib.parse import urlsplit

from interlock.system.errors import SourceError, UsageError
from interlock.system.git import REMOTE, Git

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?", re.ASCII)
_REF = re.compile(r"refs(/[A-Za-z0-9][A-Za-z0-9_#-]*)+(\.[A-Za-z0-9]+)?", re.ASCII)
_SCHEMES = ("", "file", "git", "http", "https", "ssh")


def check_remote(address: str) -> str:
    """Return the address; raise UsageError if git must not be given it."""
    parts = urlsplit(address)
    if parts.password:
        raise UsageError(
            "the address of a git remote must not hold a password: it is kept with the run; use "
            "an ssh key or git's credential helper"
        )
    helper = "::" in address.partition("/")[0]
    if not address or address.startswith("-") or helper or parts.scheme not in _SCHEMES:
        raise UsageError(
            f"{address[:100]!r} is not a git remote: "
            "use https://…, ssh://…, git@HOST:PATH or a path"
        )
    return address


def is_commit(text: str) -> bool:
    """Return True if the text is a commit's full hash."""
    return _COMMIT.fullmatch(text) is not None


def is_safe_ref(text: str) -> bool:
    """Return True if the text is a plain full ref name."""
    return _REF.fullmatch(text) is not None


def push_new_ref(repository: Path, remote: str, commit: str, ref: str) -> None:
    """Create `ref` on the remote for this commit; raise SourceError if it names another one."""
    git = Git(repository, REMOTE)
    # Require that the ref does not exist, so that nothing is overwritten.
    lease = f"--force-with-lease={ref}:"
    words = ("push", "--quiet", "--no-verify", lease, "--", check_remote(remote))
    ran = git.run(*words, f"{commit}:{ref}")
    if ran.is_ok:
        return
    if find_remote_ref(repository, remote, ref) != commit:
        raise SourceError(f"{remote}: {ref} could not be created: {ran.reason}")


def find_remote_ref(repository: Path, remote: str, ref: str) -> str:
    """Return the commit that a ref on the remote names; empty if there is no such ref."""
    git = Git(repository, REMOTE)
    ran = git.run("ls-remote", "--quiet", "--", check_remote(remote), ref)
    if not ran.is_ok:
        raise SourceError(f"{remote} cannot be read: {ran.reason}")
    rows = (line.split("\t") for line in ran.text.splitlines())
    return next((row[0] for row in rows if row[1:] == [ref]), "")


def fetch_commit(repository: Path, remote: str, commit: str, ref: str, keep: str) -> None:
    """Fetch the commit under the name `keep`, by its ref or by its hash if `ref` is empty.

    Raise SourceError if the ref names another commit.
    """
    if not is_commit(commit) or (ref and not is_safe_ref(ref)):
        raise SourceError(f"{commit[:80]!r} at {ref[:80]!r} is not a commit that can be fetched")
    git = Git(repository, REMOTE)
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    where = (*words, "--", check_remote(remote))
    ran = git.run(*where, f"+{ref or commit}:{keep}")
    if not ran.is_ok and not ref:
        # Not every server serves a commit by its hash, so try all branches.
        ran = git.run(*where, "+refs/heads/*:refs/interlock/branches/*")
        if ran.is_ok:
            ran = git.run("update-ref", keep, commit)
    if not ran.is_ok:
        raise SourceError(f"{remote}: {ref or commit} could not be fetched: {ran.reason}")
    found = git.run("rev-parse", "--verify", "--quiet", f"{keep}^{{commit}}").text.strip()
    if found != commit:
        raise SourceError(f"{remote}: {ref} is {found[:12]}, not the announced {commit[:12]}")


def delete_remote_refs(repository: Path, remote: str, pattern: str) -> None:
    """Remove the remote's refs that match the pattern, as far as the remote allows it."""
    git = Git(repository, REMOTE)
    ran = git.run("ls-remote", "--quiet", "--", check_remote(remote), pattern)
    refs = [line.split("\t")[1] for line in ran.text.splitlines() if "\t" in line]
    if ran.is_ok and refs:
        git.run("push", "--quiet", "--no-verify", "--", remote, *(f":{ref}" for ref in refs))
