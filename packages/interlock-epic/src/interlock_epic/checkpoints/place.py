"""Locate the state of an epic: `.sage/state` in the project, and a copy in the git folder.

`git reset --hard` cannot touch untracked files, `git clean -fd` skips excluded ones, and `git clean
-fdx` skips the git directory. Links in place of our folders are refused.
"""

import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from interlock.system.errors import SourceError
from interlock.system.files import UnreadableFile, append_line, read_file
from interlock.system.git import USER_TREE, Git, is_installed

_STATE: Final = (".sage", "state")
_SHADOW: Final = ("interlock", "epics")
_EXCLUDED: Final = "/.sage/state/"
_LARGEST_EXCLUDE: Final = 1 << 20


class StateFolder(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of one project. Without a repository there is no shadow."""

    root: Path
    git_dir: Path | None = None
    exclude: Path | None = None

    @property
    def state(self) -> Path:
        return self.root.joinpath(*_STATE)

    @property
    def shadow(self) -> Path | None:
        return self.git_dir.joinpath(*_SHADOW) if self.git_dir else None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of checkpoints, the visible one first."""
        return (self.state, self.shadow) if self.shadow else (self.state,)

    @property
    def safest(self) -> Path:
        """Return the folder that no reset and no clean can touch, if there is one."""
        return self.shadow or self.state


def find_state_folder(folder: Path) -> StateFolder:
    """Return the project around a folder: the top of its worktree, or the folder itself."""
    folder = folder.resolve()
    if not is_installed():
        return StateFolder(root=folder)
    git = Git(folder, USER_TREE)
    ran = git.run("rev-parse", "--show-toplevel")
    if not ran.is_ok:
        if "not a git repository" in ran.stderr or "work tree" in ran.stderr:
            return StateFolder(root=folder)
        raise SourceError(f"the repository around {folder} cannot be read: {ran.reason}")
    top = Path(ran.line)
    git_dir = Path(git.try_line("rev-parse", "--absolute-git-dir"))
    exclude = (folder / git.try_line("rev-parse", "--git-path", "info/exclude")).resolve()
    return StateFolder(root=top, git_dir=git_dir, exclude=exclude)


def check_folders(place: StateFolder) -> None:
    """Raise SourceError if one of our folders is a link or not a folder."""
    for path in _list_folders(place):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SourceError(f"{path} cannot be used: {error.strerror}") from None
        if not stat.S_ISDIR(mode):
            what = "a symbolic link" if stat.S_ISLNK(mode) else "not a folder"
            raise SourceError(f"{path} is {what}: remove it, so that the state stays here")


def make_folders(place: StateFolder) -> None:
    """Make the folders, private to this user, and exclude them from git clean."""
    check_folders(place)
    for path in _list_folders(place):
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise SourceError(f"{path} cannot be made: {error.strerror}") from None
    _add_exclude(place)


def _list_folders(place: StateFolder) -> list[Path]:
    found = [place.root / _STATE[0], place.state]
    if place.git_dir and place.shadow:
        found += [place.git_dir / _SHADOW[0], place.shadow]
    return found


def _add_exclude(place: StateFolder) -> None:
    """Add a line to the repository's exclude file; if that fails, the shadow is enough."""
    if place.exclude is None:
        return
    before = read_file(place.exclude, _LARGEST_EXCLUDE)
    if isinstance(before, UnreadableFile) and before.kind == "gone":
        before = b""
    if isinstance(before, UnreadableFile) or _EXCLUDED.encode() in before.splitlines():
        return
    with suppress(OSError):
        place.exclude.parent.mkdir(exist_ok=True)
        append_line(place.exclude, _EXCLUDED.encode(), sync=True)
