"""Inspect the user's repository, and clone it.

The repository is read once and never changed. The clone is complete or absent, and nothing leads
back from it: no remote, no hooks, no file protocol. The user's branches appear as `origin/...`, so
all branches are ours. Objects are hard links, which git never writes to. Submodules are filled
without a network.
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError
from interlock.system.files import remove_tree, save_file
from interlock.system.git import (
    MAIL,
    NAME,
    OWN_CLONE,
    Git,
    OnStep,
    read_safe_folders,
    read_user_setting,
)
from interlock_delivery.worktrees.names import merge_ref, read_refs
from interlock_delivery.worktrees.ref_guard import RefLedger

_FACTS = ("is-bare-repository", "is-shallow-repository", "absolute-git-dir", "show-prefix")
_PARTIAL = r"^(extensions\.partialclone|remote\..*\.promisor)$"
_MOST_SHOWN = 200


class SourceRepo(msgspec.Struct, frozen=True, kw_only=True):
    """The user's repository, the commit to start from, and notes for the user."""

    folder: str
    top: str
    shared: str
    """The git directory that all worktrees of this repository share."""
    prefix: str
    """The path from its top to the given folder: "" or "part/of/it/"."""
    base: str
    branch: str
    safe: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def inspect_repository(source: Path, base: str = "HEAD") -> SourceRepo:
    """Inspect the repository around a folder, and the commit that `base` means there."""
    folder = _resolve_folder(source)
    git, facts = _open_repository(folder)
    is_bare, is_shallow, git_dir, prefix = facts
    if is_bare == "true" or git_dir == str(folder) or f"{git_dir}/" in f"{folder}/":
        raise SourceError(
            f"{folder} has no checked-out files; give the folder of a clone that does"
        )
    top = folder.parents[len(Path(prefix).parts) - 1] if prefix else folder
    shared = git.run("rev-parse", "--git-common-dir").stdout.removesuffix(b"\n")
    tip, branch = _resolve_base(git, base)
    _check_complete(git, tip)
    if prefix and not git.run("cat-file", "-e", f"{tip}:{prefix.rstrip('/')}").is_ok:
        raise SourceError(
            f"{folder} is not part of commit {tip[:12]}; commit it, or name the top folder"
        )
    return SourceRepo(
        folder=str(folder),
        top=str(top),
        shared=str((folder / shared.decode(errors="surrogateescape")).resolve()),
        prefix=prefix,
        base=tip,
        branch=branch,
        safe=git.safe,
        notes=tuple(_list_notes(git, tip, branch, is_shallow == "true")),
    )


def _resolve_folder(source: Path) -> Path:
    try:
        if source.is_dir():
            folder = source.resolve()
            str(folder).encode()
            return folder
    except UnicodeEncodeError:
        raise SourceError(
            f"{str(source)!a} is not UTF-8; give the repository another path"
        ) from None
    except (OSError, ValueError):
        pass
    raise SourceError(f"{str(source)!r} is not a folder; give the folder of a git repository")


def _open_repository(folder: Path) -> tuple[Git, list[str]]:
    words = ("rev-parse", *(f"--{fact}" for fact in _FACTS))
    git = Git(folder)
    ran = git.run(*words)
    if not ran.is_ok and "dubious ownership" in ran.stderr:
        git = Git(folder, safe=read_safe_folders())
        ran = git.run(*words)
    if ran.is_ok:
        output = ran.stdout.decode(errors="surrogateescape").split("\n")
        return git, [*output, "", "", "", ""][:4]
    if "dubious ownership" in ran.stderr:
        raise SourceError(
            f"{folder} belongs to another user, so git does not read it; if you trust it, run "
            f"git config --global --add safe.directory {folder}"
        )
    if "not a git repository" in ran.stderr:
        raise SourceError(
            f"{folder} is not in a git repository; create one: git init, git add, git commit"
        )
    raise SourceError(f"{folder} cannot be read: {ran.reason}")


def _resolve_base(git: Git, base: str) -> tuple[str, str]:
    named = git.run("symbolic-ref", "--quiet", "--short", "HEAD").text.strip()
    if not base or base.startswith("-") or any(ord(sign) < 33 for sign in base):
        raise SourceError(f"{base[:100]!r} names no commit; give a branch, a tag or a commit")
    tip = git.run("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}").text.strip()
    if re.fullmatch(r"[0-9a-f]{40,64}", tip):
        return tip, named
    if not git.run("rev-parse", "--verify", "--quiet", "HEAD").is_ok and base == "HEAD":
        raise SourceError(
            f"{git.folder} has no commit yet, so there is nothing to start from; create one: "
            "git add, git commit"
        )
    raise SourceError(
        f"{base[:100]!r} names no commit in {git.folder}; give a branch, a tag or a commit of it"
    )


def _check_complete(git: Git, tip: str) -> None:
    """Raise SourceError unless all files of the commit can be read without fetching."""
    ran = git.run("rev-list", "--objects", "--no-walk", "--missing=print", tip, max_output=1 << 28)
    missing = not ran.is_ok or ran.stdout.startswith(b"?") or b"\n?" in ran.stdout
    if not missing:
        return
    if git.run("config", "--local", "--get-regexp", _PARTIAL).text:
        raise SourceError(
            f"{git.folder} is a partial clone without all files of {tip[:12]}; fetch them: "
            "git fetch --refetch --no-filter"
        )
    raise SourceError(
        f"{git.folder}: {tip[:12]} cannot be read completely; try git fsck, or clone again"
    )


_OURS = b".interlock"
"""The folder of our own database, which may lie in the user's repository."""


def _list_notes(git: Git, tip: str, branch: str, is_shallow: bool) -> list[str]:
    found = []
    dirty = git.run("status", "--porcelain", "-z", "--ignore-submodules=dirty")
    rows = [row for row in dirty.stdout.split(b"\0") if row]
    count = len([row for row in rows if _OURS not in row[3:].split(b"/")])
    if count:
        files = "1 file is" if count == 1 else f"{count} files are"
        found.append(
            f"{files} changed or new in {git.folder} and not committed: this work is not part of "
            f"the run, which starts from {tip[:12]}, and is not touched"
        )
    if not branch:
        found.append(f"HEAD is on no branch; the run starts from {tip[:12]}")
    if is_shallow:
        found.append("it is a shallow clone: agents see only the history that is there")
    attributes = git.run("grep", "-h", "filter=lfs", tip, "--", ".gitattributes", max_output=4_000)
    if attributes.stdout:
        found.append("it uses git LFS: large files are only pointers in the task trees")
    return found


_KEY = re.compile(r"submodule\.(.+)\.path\n(.*)", re.DOTALL)


def fill_submodules(git: Git, found: SourceRepo) -> list[str]:
    """Fill the submodules, and return a note for each that stays empty."""
    if git.tree is None or not (git.tree / ".gitmodules").is_file():
        return []
    output = git.run("config", "--file", ".gitmodules", "-z", "--get-regexp", r"\.path$")
    rows = [row.decode(errors="surrogateescape") for row in output.stdout.split(b"\0") if row]
    pairs = [(key[1], key[2]) for row in rows if (key := _KEY.fullmatch(row))]
    return [note for name, path in pairs if (note := _fill_submodule(git, found, name, path))]


def _fill_submodule(git: Git, found: SourceRepo, name: str, path: str) -> str:
    store = Path(found.shared) / "modules" / name
    inside = Path(found.shared, "modules") in store.resolve().parents
    if not inside or not (store / "objects").is_dir() or name.startswith("-"):
        return (
            f"submodule {path!r} is empty in the task trees: it is not checked out in {found.top}"
        )
    url = f"submodule.{name}.url"
    words = ("-c", f"{url}={store}", "-c", f"submodule.{name}.update=checkout")
    ran = git.run(*words, "submodule", "update", "--init", "--force", "--no-fetch", "--", path)
    git.run("config", "--remove-section", f"submodule.{name}")
    if ran.is_ok:
        return ""
    return f"submodule {path!r} is empty in the task trees: {ran.reason}"


CLONE, MAKING, EMPTY = "repo.git", "repo.git.making", "no-hooks"
ORIGIN, LEDGER, CONFIG, EXCLUDE = "origin.json", "ledger.json", "config", "exclude"
Clock = Callable[[], int]
"""Return the time in whole seconds, as git stores it."""
_HEADS, ORIGIN_REFS = "refs/heads/", "refs/remotes/origin/"


def create_clone(
    home: Path, found: SourceRepo, slug: str, keep_hooks: bool, on_step: OnStep, lock: int
) -> None:
    """Clone into `home`, with the merge branch at the base; redo an earlier attempt."""
    making = home / MAKING
    remove_tree(making)
    (home / EMPTY).mkdir(exist_ok=True)
    git = Git(making, OWN_CLONE, on_step=on_step, safe=found.safe, lock=lock)
    _clone(Git(home, OWN_CLONE, on_step=on_step, safe=found.safe, lock=lock), found, making)
    if not git.is_true("cat-file", "-e", f"{found.base}^{{commit}}"):
        git.read_line("fetch", "--no-tags", "--no-write-fetch-head", found.shared, found.base)
    on_step("settings")
    _write_settings(git, home, found, keep_hooks)
    _rename_branches(git, slug)
    origin = read_refs(git)
    save_file(home / ORIGIN, msgspec.json.encode(origin, order="sorted"))
    save_file(home / CONFIG, (making / "config").read_bytes())
    save_file(home / EXCLUDE, b"")
    remove_tree(home / LEDGER)
    RefLedger(home / LEDGER, on_step).move(git, {merge_ref(slug): found.base})
    on_step("rename")
    making.rename(home / CLONE)


def _clone(git: Git, found: SourceRepo, making: Path) -> None:
    words = ("clone", "--quiet", "--bare", "--template=")
    for how in ("--local", "--no-local"):
        ran = git.run(*words, how, "--", found.shared, str(making), env={"GIT_DIR": ""})
        if ran.is_ok:
            return
        remove_tree(making)
    raise SourceError(f"{found.folder} could not be cloned: {ran.reason}; git fsck may tell more")


def _write_settings(git: Git, home: Path, found: SourceRepo, keep_hooks: bool) -> None:
    # Agents commit under the user's name.
    name, mail = (read_user_setting(Path(found.folder), key) for key in ("user.name", "user.email"))
    hooks = _find_hooks(found) if keep_hooks else str(home / EMPTY)
    settings = {
        "core.hooksPath": hooks,
        "core.logAllRefUpdates": "true",
        "gc.auto": "0",
        "maintenance.auto": "false",
        # An agent cannot reach the user's repository by its path either.
        "protocol.file.allow": "never",
        "user.name": name if name and mail else NAME,
        "user.email": mail if name and mail else MAIL,
    }
    git.run("config", "--remove-section", "remote.origin")
    # One write instead of a command for each; git lets a later line override an earlier one.
    with (git.folder / "config").open("a", encoding="utf-8", errors="surrogateescape") as file:
        for key, value in settings.items():
            section, _, name = key.rpartition(".")
            head, _, part = section.partition(".")
            title = f'[{head} "{part}"]' if part else f"[{head}]"
            file.write(f"{title}\n\t{name} = {_quote(value)}\n")
    remove_tree(git.folder / "FETCH_HEAD")
    (git.folder / "info").mkdir(exist_ok=True)
    (git.folder / "worktrees").mkdir(exist_ok=True)


def _quote(value: str) -> str:
    """Return a value as git's configuration quotes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _rename_branches(git: Git, slug: str) -> None:
    """Rename the user's branches to origin/..., and detach HEAD from all branches."""
    output = git.read_line("for-each-ref", "--format=%(objectname) %(refname)", _HEADS)
    lines = []
    for line in filter(None, output.split("\n")):
        at, _, name = line.partition(" ")
        lines += [f"create {ORIGIN_REFS}{name.removeprefix(_HEADS)} {at}\n", f"delete {name}\n"]
    git.read_line("symbolic-ref", "HEAD", f"{_HEADS}interlock/{slug}/nothing-here")
    feed = "".join(lines).encode(errors="surrogateescape")
    git.read_line("update-ref", "--no-deref", "--stdin", stdin=feed)


def _find_hooks(found: SourceRepo) -> str:
    """Return the folder of the user's git hooks."""
    own = read_user_setting(Path(found.folder), "core.hooksPath")
    return own or str(Path(found.shared) / "hooks")
