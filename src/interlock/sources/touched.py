"""Which of some commits touched the files that a stack names.

Knows that a file may have had other names before. Pure: works on commits that were read already.
Refuses to know which touch matters.
"""

from collections.abc import Iterable, Iterator

from interlock.sources.frames import Match, PathIndex
from interlock.sources.git_log import Commit


class Touched:
    """Commits by the files they touched. Give them newest first, as `commits_since` does."""

    def __init__(self, commits: Iterable[Commit]) -> None:
        self._index = PathIndex(_touches(commits))

    def touching(self, paths: Iterable[str]) -> list[Match[Commit]]:
        """Of each path, class or module of a stack: the file it means, how surely, and the commits
        that touched it under any of its names, newest first."""
        return [match for word in paths for match in self._index.find(word)]


def _touches(commits: Iterable[Commit]) -> Iterator[tuple[str, Commit]]:
    """Each file with its commits; what touched an earlier name counts for the later one too."""
    later: dict[str, str] = {}
    for commit in commits:
        names = set[str]()
        for change in commit.files:
            names.update((change.path, later.get(change.path, change.path)))
            if change.old:
                names.add(change.old)
        for change in commit.files:
            if change.kind == "R":
                later[change.old] = later.get(change.path, change.path)
        for name in sorted(names):
            yield name, commit
