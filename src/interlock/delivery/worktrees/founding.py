"""Making our clone of the user's repository: all of it or nothing.

Knows that nothing leads back: no remote, no hooks, no protocol for files; the user's branches are
seen as `origin/...`, so that the only branches are ours. The objects are hard links, which git
never writes to. Refuses to know tasks.
"""

from pathlib import Path

import msgspec

from interlock.delivery.worktrees.ledger import RefLedger
from interlock.delivery.worktrees.names import line_ref
from interlock.delivery.worktrees.source import SourceRepo
from interlock.system.errors import SourceError
from interlock.system.files import remove, save_file
from interlock.system.git import MAIL, NAME, OWN_CLONE, Git, Heed, read_user_setting

CLONE, MAKING, EMPTY = "repo.git", "repo.git.making", "no-hooks"
ORIGIN, LEDGER, CONFIG, EXCLUDE = "origin.json", "ledger.json", "config", "exclude"
_HEADS, ORIGIN_REFS = "refs/heads/", "refs/remotes/origin/"


def make(home: Path, found: SourceRepo, slug: str, keep_hooks: bool, heed: Heed, lock: int) -> None:
    """The clone in `home`, with the line at the base. What an earlier try left is made anew."""
    making = home / MAKING
    remove(making)
    (home / EMPTY).mkdir(exist_ok=True)
    git = Git(making, OWN_CLONE, heed=heed, safe=found.safe, lock=lock)
    _clone(Git(home, OWN_CLONE, heed=heed, safe=found.safe, lock=lock), found, making)
    if not git.holds("cat-file", "-e", f"{found.base}^{{commit}}"):
        git.ask("fetch", "--no-tags", "--no-write-fetch-head", found.shared, found.base)
    heed("settings")
    _settings(git, home, found, keep_hooks)
    _rename_branches(git, slug)
    origin = refs_of(git)
    save_file(home / ORIGIN, msgspec.json.encode(origin, order="sorted"))
    save_file(home / CONFIG, (making / "config").read_bytes())
    save_file(home / EXCLUDE, b"")
    remove(home / LEDGER)
    RefLedger(home / LEDGER, heed).move(git, {line_ref(slug): found.base})
    heed("rename")
    making.rename(home / CLONE)


def refs_of(git: Git) -> dict[str, str]:
    """Every ref and where it leads."""
    said = git.ask("for-each-ref", "--format=%(objectname) %(refname)")
    # Of this clone no line is anything else; names cannot hold blanks.
    pairs = (line.partition(" ") for line in said.split("\n") if line)
    return {_plain(name): at for at, _, name in pairs}


def _plain(name: str) -> str:
    """JSON cannot hold names that are no UTF-8: what is none is written out."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _clone(git: Git, found: SourceRepo, making: Path) -> None:
    words = ("clone", "--quiet", "--bare", "--template=")
    for how in ("--local", "--no-local"):
        ran = git.run(*words, how, "--", found.shared, str(making), also={"GIT_DIR": ""})
        if ran.fine:
            return
        remove(making)
    raise SourceError(f"{found.folder} could not be cloned: {ran.reason}; git fsck may tell more")


def _settings(git: Git, home: Path, found: SourceRepo, keep_hooks: bool) -> None:
    # Agents commit under the user's name.
    name, mail = (read_user_setting(Path(found.folder), key) for key in ("user.name", "user.email"))
    hooks = _hooks(found) if keep_hooks else str(home / EMPTY)
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
    for key, value in settings.items():
        git.ask("config", key, value)
    git.run("config", "--remove-section", "remote.origin")
    remove(git.folder / "FETCH_HEAD")
    (git.folder / "info").mkdir(exist_ok=True)
    (git.folder / "worktrees").mkdir(exist_ok=True)


def _rename_branches(git: Git, slug: str) -> None:
    """The user's branches become origin/...; a HEAD that leads nowhere keeps ours from being it."""
    said = git.ask("for-each-ref", "--format=%(objectname) %(refname)", _HEADS)
    lines = []
    for line in filter(None, said.split("\n")):
        at, _, name = line.partition(" ")
        lines += [f"create {ORIGIN_REFS}{name.removeprefix(_HEADS)} {at}\n", f"delete {name}\n"]
    git.ask("symbolic-ref", "HEAD", f"{_HEADS}interlock/{slug}/nothing-here")
    feed = "".join(lines).encode(errors="surrogateescape")
    git.ask("update-ref", "--no-deref", "--stdin", feed=feed)


def _hooks(found: SourceRepo) -> str:
    """Where the user keeps hooks: as set up (a path may begin at the top of a tree), or beside."""
    own = read_user_setting(Path(found.folder), "core.hooksPath")
    return own or str(Path(found.shared) / "hooks")
