"""Putting a task's tree in order: its folder, the file that leads to our clone, HEAD.

Knows the few files by which git knows a work tree, and writes them itself: a tree is made and
mended by the same lines. The agent's files are not touched. Refuses to know branches and commits.
"""

from pathlib import Path

from interlock.delivery.worktrees.violation import Violation
from interlock.system.files import exists, is_folder, put_aside, remove, write_whole

_LEFT_BEHIND = (
    *("index.lock", "HEAD.lock", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG"),
    *("AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "ORIG_HEAD", "sequencer"),
    *("rebase-merge", "rebase-apply", "BISECT_LOG", "BISECT_START", "BISECT_NAMES", "BISECT_TERMS"),
    *("BISECT_EXPECTED_REV", "config.worktree", "config.worktree.lock", "info"),
)


def mend_tree(folder: Path, admin: Path, aside: Path) -> list[Violation]:
    """A folder whose .git leads to `admin`. What stands in the way is put aside, never removed."""
    found = []
    if not is_folder(folder):
        if exists(folder):
            put_aside(folder, aside)
        folder.mkdir(parents=True)
        found.append(Violation("tree-replaced", f"{folder} was gone; work in it, do not remove it"))
    wanted = f"gitdir: {admin}\n".encode()
    link = folder / ".git"
    if not _is_file_with(link, wanted):
        if is_folder(link):
            put_aside(link, aside)
        remove(link)
        write_whole(link, wanted)
        sentence = f"{link} was removed or replaced and is put back; never run git init there"
        found.append(Violation("git-file", sentence))
    return found


def mend_admin(folder: Path, admin: Path, branch: str) -> list[Violation]:
    """What our clone knows of the tree, with HEAD on the task's branch."""
    found = []
    if not is_folder(admin):
        remove(admin)
        admin.mkdir(parents=True)
    head = f"ref: {branch}\n".encode()
    if not _is_file_with(admin / "HEAD", head):
        said = _said(admin / "HEAD")
        remove(admin / "HEAD")
        write_whole(admin / "HEAD", head)
        sentence = f"HEAD was at {said}, not on {_short(branch)}; stay on that branch"
        found.append(Violation("head-moved", sentence))
    facts = {"commondir": "../..\n", "gitdir": f"{folder / '.git'}\n", "locked": "interlock\n"}
    for name, content in facts.items():
        if not _is_file_with(admin / name, content.encode()):
            remove(admin / name)
            write_whole(admin / name, content.encode())
    return found


def clear(admin: Path) -> None:
    """No merge, rebase or lock is under way: whoever began it has ended."""
    for name in _LEFT_BEHIND:
        remove(admin / name)


def _is_file_with(file: Path, content: bytes) -> bool:
    return file.is_file() and not file.is_symlink() and file.read_bytes() == content


def _said(file: Path) -> str:
    if not file.is_file():
        return "nothing"
    text = file.read_bytes()[:200].decode(errors="replace").strip()
    return (
        _short(text.removeprefix("ref: "))
        if text.startswith("ref: ")
        else f"{text[:12]} (no branch)"
    )


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")
