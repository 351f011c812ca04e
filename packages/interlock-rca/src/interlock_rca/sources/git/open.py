"""Open a repository: inspect the named folder, and choose the commit to look at.

Every way in which a repository can be incomplete has its sentence. A bad repository is no error:
the analysis continues with what there is. Also reads how users name repositories: by flag, in
interlock.toml, or in a workspace file.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.system.errors import CircuitError, SourceError
from interlock.system.git import Git, read_safe_folders
from interlock.system.git_remote import check_remote
from interlock.system.yaml_text import read_yaml
from interlock_rca.records import Repo
from interlock_rca.sources.git.roles import ROLES

_REVISION = re.compile(r"[0-9A-Za-z_](?:[0-9A-Za-z_./+@#-]{0,250})(?:[~^][0-9]{0,6}){0,8}")
_PARTIAL = r"^(extensions\.partialclone|remote\..*\.promisor)$"
_HASH = re.compile(r"[0-9a-fA-F]{4,64}")


class RepoProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of a repository. `fatal`: nothing can be read from it.

    Kinds at opening: missing, not-a-repository, dubious, unreadable, empty, corrupted (all fatal);
    bare, inside, shallow, partial, submodules, detached, unknown-revision. Kinds of later
    questions: no-last-green, unknown-revision, parted, cut, corrupted, slow, cache.
    """

    repo: str
    kind: str
    sentence: str
    fatal: bool = False


class RepoState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a repository. Without `git` nothing can be read from it."""

    git: Git | None = None
    git_dir: str = ""
    top: str = ""
    """The folder of its files; empty if it is bare."""
    tip: str = ""
    branch: str = ""
    """The name of the commit to look at: a branch, a tag, a commit, or HEAD."""
    shallow: frozenset[str] = frozenset()
    problems: tuple[RepoProblem, ...] = ()


def inspect_repository(repo: Repo, tested: Sequence[str] = ()) -> RepoState:
    """Return the repository's state. `tested` are the revisions that a launch names, best first."""
    try:
        return _RepoInspection(repo, tested).inspect()
    except _UnreadableRepoError as stop:
        return RepoState(problems=(stop.problem,))
    except (SourceError, OSError, ValueError) as error:
        return RepoState(problems=(_make_problem(repo, "unreadable", str(error), fatal=True),))


def resolve_revision(git: Git, word: str) -> str:
    """Return the commit that a branch, tag, hash or HEAD~3 means here, or ""."""
    if not _REVISION.fullmatch(word) or ".." in word or "@{" in word:
        return ""
    names = [f"refs/heads/{word}", f"refs/remotes/origin/{word}", f"refs/tags/{word}"]
    names += [f"refs/remotes/{word}"]
    if word.partition("~")[0].partition("^")[0] == "HEAD" or _HASH.fullmatch(word.lower()):
        names = [word.lower() if _HASH.fullmatch(word) else word, *names]
    elif word.startswith("refs/") or _HASH.match(word):
        names = [*names, word]
    asked = "".join(f"{name}^{{commit}}\n" for name in names).encode()
    ran = git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    for line in ran.text.splitlines():
        found, _, kind = line.partition(" ")
        if kind == "commit":
            return found
    return ""


class _UnreadableRepoError(Exception):
    def __init__(self, problem: RepoProblem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


def _make_problem(repo: Repo, kind: str, sentence: str, *, fatal: bool = False) -> RepoProblem:
    return RepoProblem(
        repo=repo.name, kind=kind, sentence=f"repository {repo.name}: {sentence}", fatal=fatal
    )


class _RepoInspection:
    """One inspection of one folder, with its problems."""

    def __init__(self, repo: Repo, tested: Sequence[str]) -> None:
        self.repo = repo
        self.tested = [word for word in tested if word]
        self.problems: list[RepoProblem] = []

    def inspect(self) -> RepoState:
        git, facts = self._open_git(self._find_folder())
        git_dir, is_bare, is_shallow, prefix = facts
        git = self._move_to_top(git, git_dir, is_bare == "true", prefix)
        shallow = self._read_shallow(git, git_dir) if is_shallow == "true" else frozenset()
        tip, branch = self._find_tip(git)
        if not self._object_exists(git, f"{tip}^{{tree}}"):
            raise self._make_stop(
                "corrupted", f"{tip[:12]} ({branch}) cannot be read; try: git fsck, or clone again"
            )
        if git.run("config", "--local", "--get-regexp", _PARTIAL).text:
            self._add_problem(
                "partial",
                "it is a partial clone: what was not fetched is not fetched now, and counts as "
                "not readable; git fetch --refetch --no-filter brings the rest",
            )
        if self._object_exists(git, f"{tip}:.gitmodules"):
            self._add_problem(
                "submodules",
                "it has submodules: the commits behind a new version of one are read only where "
                "it is checked out; add them as repositories of their own if they may hold the "
                "cause",
            )
        return RepoState(
            git=git,
            git_dir=git_dir,
            top="" if is_bare == "true" else str(git.folder),
            tip=tip,
            branch=branch,
            shallow=shallow,
            problems=tuple(self.problems),
        )

    def _add_problem(self, kind: str, sentence: str) -> None:
        self.problems.append(_make_problem(self.repo, kind, sentence))

    def _make_stop(self, kind: str, sentence: str) -> "_UnreadableRepoError":
        return _UnreadableRepoError(_make_problem(self.repo, kind, sentence, fatal=True))

    def _find_folder(self) -> Path:
        if not self.repo.path:
            raise self._make_stop("missing", "it has no path; clone it and give the folder")
        folder = Path(self.repo.path)
        if not folder.exists():
            raise self._make_stop(
                "missing", f"{folder} does not exist; correct the path, or clone it there"
            )
        if not folder.is_dir():
            raise self._make_stop(
                "missing", f"{folder} is not a folder; give the folder of a clone"
            )
        return folder.resolve()

    def _open_git(self, folder: Path) -> tuple[Git, list[str]]:
        facts = ("absolute-git-dir", "is-bare-repository", "is-shallow-repository", "show-prefix")
        words = ("rev-parse", *(f"--{fact}" for fact in facts))
        git = Git(folder)
        ran = git.run(*words)
        if not ran.is_ok and "dubious ownership" in ran.stderr:
            git = Git(folder, safe=read_safe_folders())
            ran = git.run(*words)
        if ran.is_ok:
            return git, [*ran.text.split("\n"), "", "", "", ""][:4]
        if "dubious ownership" in ran.stderr:
            raise self._make_stop(
                "dubious",
                f"{folder} belongs to another user, so git does not read it; if you trust it: "
                f"git config --global --add safe.directory {folder}",
            )
        if "not a git repository" in ran.stderr:
            raise self._make_stop(
                "not-a-repository", f"{folder} is not a git repository; give a clone"
            )
        raise self._make_stop("unreadable", f"{folder} cannot be read: {ran.reason}")

    def _move_to_top(self, git: Git, git_dir: str, is_bare: bool, prefix: str) -> Git:
        if is_bare or Path(git_dir) == git.folder:
            if is_bare:
                self._add_problem("bare", "it is bare: there is history, but no checked-out files")
            return Git(Path(git_dir), safe=git.safe)
        if not prefix:
            return git
        depth = len(Path(prefix).parts)
        top = git.folder.parents[depth - 1]
        self._add_problem("inside", f"{git.folder} lies inside {top}, and all of that is read")
        return Git(top, safe=git.safe)

    def _read_shallow(self, git: Git, git_dir: str) -> frozenset[str]:
        common = git.run("rev-parse", "--git-common-dir").text.strip()
        file = git.folder / (common or git_dir) / "shallow"
        found = frozenset(file.read_text(errors="replace").split())
        ends = ", ".join(sorted(commit[:12] for commit in found)[:3])
        self._add_problem(
            "shallow",
            f"it is a shallow clone: its history ends at {ends}, and what came before is unknown; "
            "git fetch --unshallow brings the rest",
        )
        return found

    def _find_tip(self, git: Git) -> tuple[str, str]:
        words = [self.repo.branch] if self.repo.branch else self.tested
        for word in words:
            found = resolve_revision(git, word)
            if found:
                return found, word
        tip, name = self._find_head(git)
        if words:
            names = " nor ".join(repr(word[:100]) for word in words)
            self._add_problem(
                "unknown-revision",
                f"it has no branch or commit {names}; {name} ({tip[:12]}) is looked at instead",
            )
        return tip, name

    def _find_head(self, git: Git) -> tuple[str, str]:
        named = git.run("symbolic-ref", "--quiet", "--short", "HEAD").text.strip()
        tip = git.run("rev-parse", "--verify", "--quiet", "HEAD").text.strip()
        if not tip:
            others = git.run("for-each-ref", "--count=1", "--format=%(refname:short)").text.strip()
            advice = f"name a branch that has, such as {others}" if others else "nothing to read"
            raise self._make_stop("empty", f"{named or 'HEAD'} has no commit yet; {advice}")
        if not named and not self.repo.branch:
            self._add_problem(
                "detached", f"HEAD is at no branch but at {tip[:12]}, which is looked at"
            )
        return tip, named or "HEAD"

    def _object_exists(self, git: Git, name: str) -> bool:
        return git.run("cat-file", "-e", name).is_ok


MAX_REPOS = 200
_MOST_BYTES = 1_000_000
_MOST_TEXT = 2_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*|[\w.-]+@[\w.-]+\.[\w.-]+:.*")
_KEYS = ("name", "path", "purpose", "role", "branch", "url", "remote")
_FORM = "NAME=PATH or NAME=PATH:PURPOSE, or the path of a folder that is there"
_UNFIT = re.compile(r"[^A-Za-z0-9_.+-]+")


def parse_repo(word: str) -> Repo:
    """Parse `NAME=PATH[:PURPOSE]` as after --repo; a folder alone gives its own name."""
    name, equals, rest = word.partition("=")
    if not equals and (called := _name_folder(word.strip())):
        name, equals, rest = called, "=", word
    if not equals or not rest.strip():
        raise SourceError(f"--repo {word[:200]!r} is not understood; write {_FORM}")
    if _ADDRESS.fullmatch(rest.strip()):
        raise SourceError(
            f"--repo {name}: {rest[:200]} is an address; clone it, and give the folder"
        )
    path, _, purpose = rest.partition(":")
    table = {"name": name.strip(), "path": path.strip(), "purpose": purpose.strip()}
    return _read_repo(table, "--repo", Path())


def _name_folder(word: str) -> str:
    """Return a name for the folder at a path, or ""."""
    path = word.partition(":")[0].strip()
    try:
        folder = _expand_home(path).resolve(strict=True) if path else None
    except (OSError, ValueError, RuntimeError):
        return ""
    if folder is None or not folder.is_dir():
        return ""
    return _UNFIT.sub("-", folder.name).strip("-.+")[:100] or "repo"


def read_repo_tables(
    tables: Sequence[Any], origin: str = "interlock.toml", folder: Path | None = None
) -> tuple[Repo, ...]:
    """Return the repositories of `[[repo]]` tables; relative paths start at `folder`."""
    if isinstance(tables, str | bytes | Mapping) or not isinstance(tables, Sequence):
        raise SourceError(f"{origin}: repositories are a list, one table each with name and path")
    if len(tables) > MAX_REPOS:
        raise SourceError(
            f"{origin}: {len(tables):,} repositories are too many; {MAX_REPOS} at most"
        )
    found = [
        _read_repo(table, f"{origin}, repository {number}", folder or Path())
        for number, table in enumerate(tables, start=1)
    ]
    return check_unique_names(found, origin)


def check_unique_names(repos: Sequence[Repo], origin: str) -> tuple[Repo, ...]:
    """Return all repositories in order. Raise SourceError if two names differ at most in case."""
    seen: dict[str, Repo] = {}
    for repo in repos:
        other = seen.setdefault(repo.name.lower(), repo)
        if other is not repo:
            raise SourceError(
                f"{origin}: two repositories are named {repo.name} ({other.path or other.url} and "
                f"{repo.path or repo.url}); give each its own name"
            )
    return tuple(repos)


def read_workspace(path: Path) -> tuple[Repo, ...]:
    """Return the `repos` of a workspace file, YAML or JSON; relative paths start at its folder."""
    value = _read_document(path)
    if not isinstance(value, dict) or "repos" not in value:
        raise SourceError(
            f"{path}: a workspace has a list `repos`, each with name, path and purpose"
        )
    return read_repo_tables(value["repos"] or [], str(path), path.parent)


def _read_document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise SourceError("a path cannot hold NUL characters") from None
    if len(content) > _MOST_BYTES:
        raise SourceError(f"{path} has more than the {_MOST_BYTES:,} bytes that are read")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return msgspec.json.decode(text)
        return read_yaml(text, str(path)).value
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except CircuitError as error:
        raise SourceError(str(error)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"{path} is not readable as JSON: {error}") from None


def _read_repo(table: Any, origin: str, folder: Path) -> Repo:
    if not isinstance(table, Mapping):
        raise SourceError(f"{origin}: it is not a table with name and path")
    for key, value in table.items():
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise SourceError(f"{origin}: {str(key)[:100]!r} is not known; known are: {known}")
        if value is not None and not isinstance(value, str):
            raise SourceError(f"{origin}: {key} must be text, not {str(value)[:100]!r}")
        if len(value or "") > _MOST_TEXT or not (value or "").isprintable():
            raise SourceError(f"{origin}: {key} must be one short line of text")
    texts = {key: (table.get(key) or "").strip() for key in _KEYS}
    if not texts["name"]:
        raise SourceError(f"{origin}: it has no name; evidence is written NAME:path:line")
    if not _NAME.fullmatch(texts["name"]):
        raise SourceError(
            f"{origin}: the name {texts['name'][:100]!r} must be letters, digits and . _ + - only"
        )
    texts["role"] = _check_role(texts, origin)
    if not texts["path"] and not texts["url"]:
        raise SourceError(f"{origin}: {texts['name']} has no path; give the folder of its clone")
    texts["remote"] = texts["remote"] and check_remote(texts["remote"])
    if texts["path"]:
        texts["path"] = str(folder / _expand_home(texts["path"]))
    return Repo(**texts)


def _check_role(texts: Mapping[str, str], origin: str) -> str:
    """Return the declared role; a purpose of one word may be it."""
    role = texts["role"] or (texts["purpose"] if texts["purpose"] in ROLES else "")
    if role and role not in ROLES:
        known = ", ".join(ROLES)
        raise SourceError(f"{origin}: the role {role[:100]!r} is not known; known are: {known}")
    return role


def _expand_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~somebody, who has no home here
        return Path(path)
