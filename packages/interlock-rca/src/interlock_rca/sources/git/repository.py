"""A git repository that may hold the cause, with the questions an analysis asks of it.

Answers come from git's objects, never from checked-out files, and are kept while it is open. An
impossible answer is None or empty, and `problems` says why. Links to commits and files are made for
GitHub, GitLab, Bitbucket and Gitea, without credentials.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlsplit

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git
from interlock_rca.records import Repo
from interlock_rca.sources.git.change import (
    UNKNOWN,
    ChangeNature,
    ContentChange,
    Hunk,
    count_changed_lines,
    judge_by_files,
    judge_hunks,
    judge_merge,
    read_hunks,
)
from interlock_rca.sources.git.content import (
    Blame,
    Listing,
    RevisionFiles,
    TextHit,
    TreeEntry,
    normalize_path,
)
from interlock_rca.sources.git.history import Commit, CommitRange, GitLog, HistoryCache
from interlock_rca.sources.git.open import RepoProblem, inspect_repository, resolve_revision
from interlock_rca.sources.git.stack_paths import PathIndex, PathMatch

Kept = TypeVar("Kept")
_MOST = 2_000
_SCP = re.compile(r"(?:[^@/\s:]+@([\w.-]+)|([\w-]+\.[\w.-]+)):(\S+)")  # git@host:owner/name
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250})")
_NUMBER = re.compile(r"[0-9]{1,5}")
_KINDS = (
    ("gitlab", "gitlab"),
    ("bitbucket.org", "bitbucket"),
    ("bitbucket", "bitbucket-server"),
    ("stash", "bitbucket-server"),
    ("gitea", "gitea"),
    ("forgejo", "gitea"),
    ("codeberg", "gitea"),
)
_COMMIT = {
    "github": "{home}/commit/{rev}",
    "gitlab": "{home}/-/commit/{rev}",
    "bitbucket": "{home}/commits/{rev}",
    "bitbucket-server": "{home}/commits/{rev}",
    "gitea": "{home}/commit/{rev}",
}
_FILE = {
    "github": "{home}/blob/{rev}/{path}",
    "gitlab": "{home}/-/blob/{rev}/{path}",
    "bitbucket": "{home}/src/{rev}/{path}",
    "bitbucket-server": "{home}/browse/{path}?at={rev}",
    "gitea": "{home}/src/commit/{rev}/{path}",
}
_LINES = {
    "github": ("#L{first}", "#L{first}-L{last}"),
    "gitlab": ("#L{first}", "#L{first}-{last}"),
    "bitbucket": ("#lines-{first}", "#lines-{first}:{last}"),
    "bitbucket-server": ("#{first}", "#{first}-{last}"),
    "gitea": ("#L{first}", "#L{first}-L{last}"),
}


class BrowseLinks(msgspec.Struct, frozen=True):
    """A repository's web page, and the style of its links."""

    home: str
    kind: str = "github"

    @property
    def place(self) -> str:
        """Return host and path for comparison: `host/owner/name`."""
        return self.home.partition("://")[2].lower()

    def build_commit_url(self, commit: str) -> str:
        return _COMMIT[self.kind].format(home=self.home, rev=quote(commit, safe="/"))

    def build_file_url(self, path: str, rev: str, first: int = 0, last: int = 0) -> str:
        parts = {"home": self.home, "rev": quote(rev, safe="/"), "path": _quote_path(path)}
        url = _FILE[self.kind].format(**parts)
        if first <= 0:
            return url
        one, many = _LINES[self.kind]
        return url + (many if last > first else one).format(first=first, last=last)


def parse_browse_url(url: str) -> BrowseLinks | None:
    """Return the web page of a clone URL or page URL, or None."""
    url = url.strip()
    if not url or len(url) > _MOST or not url.isprintable():
        return None
    found = _split_url(url)
    if found is None:
        return None
    scheme, host, path = found
    path = path.strip("/").removesuffix(".git").strip("/")
    if not _HOST.fullmatch(host.partition(":")[0]) or not path or ".." in path.split("/"):
        return None
    kind = next((kind for word, kind in _KINDS if word in host.lower()), "github")
    if kind == "bitbucket-server":
        path = _find_server_path(path)
    return BrowseLinks(f"{scheme}://{host.lower()}/{_quote_path(path)}", kind)


def _split_url(url: str) -> tuple[str, str, str] | None:
    """Return the page's scheme, host (with a web page's port) and path."""
    scp = _SCP.fullmatch(url)
    if scp and "://" not in url:
        return "https", scp[1] or scp[2], scp[3]
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme in ("http", "https"):
        return scheme, f"{host}:{port}" if port else host, parts.path
    if scheme in ("ssh", "git", "git+ssh", "ssh+git"):
        return "https", host, parts.path
    return None


def _find_server_path(path: str) -> str:
    """Return the Bitbucket Server page of a clone path."""
    words = path.removeprefix("scm/").split("/")
    if words[0] in ("projects", "users") or len(words) != 2:
        return path
    if _NUMBER.fullmatch(words[0]):
        return path
    project, name = words
    if project.startswith("~"):
        return f"users/{project[1:]}/repos/{name}"
    return f"projects/{project}/repos/{name}"


def _quote_path(path: str) -> str:
    return quote(path, safe="/~@+-._", errors="replace")


MAX_COMMITS = 20_000
MAX_COMMITS_WITHOUT_GREEN = 200
"""The most commits to look at when the last green one is unknown."""
_MOST_DIFF = 200_000
_MOST_CHANGES = 300
_MOST_READ = 40_000_000
_MOST_REMEMBERED = 50_000


class Repository:
    """One open repository. It is never written to, and its contents never raise errors."""

    def __init__(
        self, repo: Repo, *, tested: Sequence[str] = (), cache: Path | None = None
    ) -> None:
        standing = inspect_repository(repo, tested)
        self.repo = repo
        self.name = repo.name
        self.tip = standing.tip
        self.branch = standing.branch
        self.top = standing.top
        self.problems: list[RepoProblem] = list(standing.problems)
        self._git = standing.git or Git(Path())
        self.git_dir = standing.git_dir
        self.is_shallow = bool(standing.shallow)
        self._content = RevisionFiles(self._git)
        self._cache = HistoryCache(cache, standing.git_dir)
        self._log = GitLog(self._git, standing.shallow, self._cache)
        self._index: tuple[str, PathIndex[None]] | None = None
        self._resolved: dict[str, str] = {}
        self._changes: dict[str, ContentChange] = {}
        self._kept: dict[str, tuple[str, Any]] = {}
        self._submodules: dict[str, Repository] = {}
        self._ancestry: dict[tuple[str, str], bool | None] = {}

    @property
    def is_readable(self) -> bool:
        return bool(self.tip)

    @property
    def git(self) -> Git:
        """Return git for other questions; it only reads."""
        return self._git

    @cached_property
    def browse(self) -> BrowseLinks | None:
        """Return its web page: by its settings, else by its remote `origin`."""
        url = self.repo.url
        if not url and self.is_readable:
            url = self._git.run("config", "--local", "--get", "remote.origin.url").text.strip()
        return parse_browse_url(url)

    def add_problem(self, kind: str, sentence: str) -> None:
        """Add a problem once."""
        problem = RepoProblem(
            repo=self.name, kind=kind, sentence=f"repository {self.name}: {sentence}"
        )
        if problem not in self.problems:
            self.problems.append(problem)

    def resolve_revision(self, word: str) -> str:
        """Return the commit that a branch, a tag, a hash or HEAD~3 means here, or ""."""
        if not self.is_readable or not word:
            return ""
        if word not in self._resolved:
            self._limit_cache(self._resolved)
            self._resolved[word] = resolve_revision(self._git, word)
        return self._resolved[word]

    def resolve_or_tip(self, tested: str) -> str:
        """Return the tested revision if it is known here, else the tip."""
        return self.resolve_revision(tested) or self.tip

    # History

    def list_commits_since(
        self, last_green: str | None, tip: str = "", *, most: int = MAX_COMMITS
    ) -> list[Commit]:
        """Return the commits of `tip` (of the branch, if "") that the last green one lacks, newest
        first. Without a last green one, return the newest few. Omissions are noted."""
        end = self.resolve_or_tip(tip)
        if not end:
            return []
        green = self.resolve_revision(last_green or "")
        try:
            found = self._log.list_between(
                green, end, most if green else min(MAX_COMMITS_WITHOUT_GREEN, most)
            )
        except SourceError as error:
            self.add_problem("corrupted", f"its history cannot be read whole: {error}")
            return []
        self._note_limits(found, last_green or "", green, end)
        return found.commits

    def _note_limits(self, found: CommitRange, asked: str, green: str, end: str) -> None:
        """Note what a range lacks."""
        count = len(found.commits)
        if self._cache.trouble:
            self.add_problem("cache", self._cache.trouble)
        if asked and not green:
            self.add_problem("unknown-revision", f"it has no last green commit {asked[:100]!r}")
        if not green:
            oldest = found.commits[-1].at[:10] if found.commits else "its beginning"
            range_text = "its one commit is" if count == 1 else f"its newest {count:,} commits are"
            self.add_problem(
                "no-last-green",
                f"no last green commit is known, so {range_text} looked at, back to {oldest}",
            )
        elif found.cut:
            self.add_problem(
                "cut",
                f"it has more than {count:,} commits since {asked[:100]}; the newest {count:,} are "
                "looked at",
            )
        if found.parted:
            self.add_problem(
                "parted",
                f"the last green commit {green[:12]} is not in the history of {end[:12]}; the "
                "commits since the two parted are looked at",
            )

    def read_commits(self, hashes: Sequence[str]) -> list[Commit]:
        """Return these commits in order; none if they cannot be read."""
        try:
            return self._log.read_commits(hashes)
        except SourceError as error:
            self.add_problem("corrupted", f"its history cannot be read whole: {error}")
            return []

    def find_commit(self, commit: str) -> str:
        """Return the full hash of an abbreviated commit, or ""."""
        full = self.resolve_revision(commit.lower())
        return full if full.startswith(commit.lower()) else ""

    def is_on_branch(self, commit: str, branch: str = "") -> bool | None:
        """Return True if a commit is in the history of a branch or commit; None if git cannot
        tell."""
        full, end = (
            self.resolve_revision(commit),
            self.resolve_revision(branch) if branch else self.tip,
        )
        if not full or not end:
            return None
        if full == end:
            return True
        if (full, end) not in self._ancestry:
            self._limit_cache(self._ancestry)
            code = self._git.run("merge-base", "--is-ancestor", full, end).code
            self._ancestry[full, end] = {0: True, 1: False}.get(code)
        return self._ancestry[full, end]

    # Files

    def read_entry(self, path: str, rev: str = "") -> TreeEntry | None:
        """Return the object at a path and revision (the tip, if ""); None if it cannot be read."""
        end = self.resolve_or_tip(rev) if not rev else self.resolve_revision(rev)
        if not self.is_readable:
            return None
        try:
            return self._content.read_entry(path, end)
        except SourceError as error:
            self.add_problem("corrupted", f"{path[:200]} cannot be read: {error}")
            return None

    def has_file(self, path: str, rev: str = "") -> bool | None:
        found = self.read_entry(path, rev)
        return None if found is None else bool(found.kind)

    def list_files(self, rev: str = "") -> Listing:
        end = self.resolve_or_tip(rev)
        if not end:
            return Listing(())
        try:
            found = self._content.list_files(end)
        except SourceError as error:
            self.add_problem("corrupted", f"its files cannot be listed: {error}")
            return Listing(())
        if found.cut:
            self.add_problem(
                "cut", f"it has very many files; {len(found.paths):,} of them are known"
            )
        return found

    def find_files(self, word: str, rev: str = "") -> list[PathMatch[None]]:
        """Return the files that a stack's path, class or module may mean."""
        end = self.resolve_or_tip(rev)
        if self._index is None or self._index[0] != end:
            self._index = (end, PathIndex((path, None) for path in self.list_files(end).paths))
        return self._index[1].find(word)

    def read_files(self, paths: Sequence[str], rev: str = "") -> dict[str, bytes]:
        """Return the contents of many files at a revision, without unreadable ones."""
        end = self.resolve_or_tip(rev)
        sound = {f"{end}:{path}": path for path in paths if path and normalize_path(path) == path}
        return {sound[name]: content for name, content in self._read_blobs(list(sound)).items()}

    def read_versions(self, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        """Return the contents of files, each at its own commit: (commit, path)."""
        sound = {
            f"{commit}:{path}": (commit, path)
            for commit, path in places
            if path and normalize_path(path) == path
        }
        return {sound[name]: content for name, content in self._read_blobs(list(sound)).items()}

    def _read_blobs(self, names: Sequence[str]) -> dict[str, bytes]:
        if not names or not self.is_readable:
            return {}
        try:
            return self._content.read_many(names, _MOST_READ)
        except SourceError as error:
            self.add_problem("slow", f"files cannot be read: {error}")
            return {}

    def search_text(
        self, texts: Sequence[str], within: Sequence[str], rev: str = ""
    ) -> list[TextHit]:
        """Return places where one of the texts occurs literally, in files whose path contains one
        of the words `within`; bounded, and empty if it takes too long."""
        if not self.is_readable or not any(texts):
            return []
        try:
            return self._content.search_text(texts, within, self.resolve_or_tip(rev))
        except SourceError as error:
            self.add_problem("slow", f"its files cannot be searched: {error}")
            return []

    def blame_line(self, path: str, line: int, tip: str = "") -> Blame | None:
        """Return the last change of that line, or None."""
        try:
            return (
                self._content.blame_line(path, line, self.resolve_or_tip(tip))
                if self.is_readable
                else None
            )
        except SourceError as error:
            self.add_problem("slow", f"who wrote {path[:200]}:{line} is not known: {error}")
            return None

    def keep(self, what: str, rev: str, build: Callable[["Repository", str], Kept]) -> Kept:
        """Return data built from a revision's files, cached while that revision is the latest
        one."""
        end = self.resolve_or_tip(rev)
        if self._kept.get(what, ("",))[0] != end:
            self._kept[what] = (end, build(self, end))
        return cast("Kept", self._kept[what][1])

    def list_submodule_commits(self, path: str, old: str, new: str) -> list[Commit]:
        """Return the commits behind a submodule's move, newest first; none if it is not checked out
        or lacks them."""
        if not self.top or normalize_path(path) != path:
            return []
        folder = Path(self.top, path)
        if not (folder / ".git").exists():
            return []
        if path not in self._submodules:
            self._submodules[path] = Repository(Repo(name=path, path=str(folder)))
        found = self._submodules[path]
        ends = [found.resolve_revision(each) for each in (old, new)] if found.is_readable else [""]
        return found.list_commits_since(*ends) if all(ends) else []

    # Changes

    def find_line_origins(self, path: str, first: int, last: int, rev: str = "") -> list[str]:
        """Return the commits that wrote these lines, those with most lines first."""
        try:
            found = (
                self._content.find_line_origins(path, first, last, self.resolve_or_tip(rev))
                if self.is_readable
                else {}
            )
        except SourceError as error:
            self.add_problem("slow", f"who wrote {path[:200]} is not known: {error}")
            return []
        return [commit for commit, _ in Counter(found.values()).most_common()]

    def read_brought(self, commit: str, rev: str = "") -> tuple[Hunk, ...]:
        """Return a commit's own hunks, or all hunks of the merge that brought it into the
        revision."""
        known = self._log.read_commits([commit]) if self.is_readable else []
        if not known or not known[0].parents:
            return ()  # everything came with the first commit: that says nothing
        try:
            end = self.resolve_or_tip(rev)
            merge = self._content.find_merge_of(commit, end)
            if merge != commit and len(self._log.read_commits([merge])) == 1:
                first = self._log.read_commits([merge])[0]
                if first.parents > 1:
                    ran = self._content.read_merged_diff(merge, _MOST_DIFF)
                    return tuple(read_hunks(ran.text))
        except SourceError as error:
            self.add_problem("slow", f"what came with {commit[:12]} is not known: {error}")
        return self.read_change(known[0]).hunks

    def read_change(self, commit: Commit) -> ContentChange:
        """Return a commit's changes and their class. The latest ones are cached."""
        found = self._changes.get(commit.hash)
        if found is None:
            found = self._judge_change(commit)
            if len(self._changes) >= _MOST_CHANGES:
                self._changes.clear()
            self._changes[commit.hash] = found
        return found

    def _judge_change(self, commit: Commit) -> ContentChange:
        nature = judge_by_files(commit)
        if nature is not None and not nature.is_behavioural:
            return ContentChange(nature)
        try:
            ran = self._content.read_diff(commit.hash, _MOST_DIFF)
        except SourceError as error:
            return ContentChange(
                nature or ChangeNature(UNKNOWN, f"its diff cannot be read: {error}")
            )
        if commit.parents > 1:
            return ContentChange(nature or judge_merge(ran.text))
        hunks = tuple(read_hunks(ran.text))
        if ran.cut:
            cut = ChangeNature(UNKNOWN, f"its diff has more than {_MOST_DIFF:,} bytes")
            return ContentChange(nature or cut, hunks)
        return ContentChange(nature or judge_hunks(hunks), hunks, whole=True)

    def count_changed_lines(self, commit: Commit) -> tuple[int, int] | None:
        """Return added and removed lines; None for a merge, or if counting is expensive."""
        found = self.read_change(commit)
        return count_changed_lines(found.hunks) if found.whole else None

    def build_commit_url(self, commit: str) -> str:
        return self.browse.build_commit_url(commit) if self.browse else ""

    def build_file_url(self, path: str, rev: str = "", first: int = 0, last: int = 0) -> str:
        return (
            self.browse.build_file_url(path, self.resolve_or_tip(rev), first, last)
            if self.browse
            else ""
        )

    def _limit_cache(self, kept: dict[str, str] | dict[tuple[str, str], bool | None]) -> None:
        if len(kept) >= _MOST_REMEMBERED:
            kept.clear()
