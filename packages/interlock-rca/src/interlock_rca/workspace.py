"""The repositories of an investigation, opened once, and their changes.

Finds the last green and the tested revision of each.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import msgspec

from interlock_rca.config import RcaConfig
from interlock_rca.records import Checkout, Evidence, Launch, Repo, TestRange
from interlock_rca.sources.git.evidence import check_evidence
from interlock_rca.sources.git.history import Commit
from interlock_rca.sources.git.repository import Repository
from interlock_rca.sources.git.roles import guess_role

_COMMIT_WORDS = ("commit", "sha", "revision", "rev", "hash")


class CheckoutSet:
    """Repositories by name. An unreadable one stays in the set and reports its problem."""

    def __init__(self, config: RcaConfig) -> None:
        self._config = config
        self._commits: dict[tuple[str, str, str], list[Commit]] = {}
        self._writers: dict[tuple[str, str, str, int], str] = {}

    @cached_property
    def repositories(self) -> dict[str, Repository]:
        return {repo.name: self._open(repo) for repo in self._config.repos}

    def _open(self, repo: Repo) -> Repository:
        """Open the repository; its files tell its role if nobody declared one."""
        cache = Path(self._config.cache) if self._config.cache else None
        found = Repository(repo, cache=cache)
        if not repo.role and found.is_readable:
            found.repo = msgspec.structs.replace(
                repo, role=guess_role(found.list_files().paths, repo.name)
            )
        return found

    def list_problems(self) -> list[str]:
        """Return a sentence for each repository that could not be read completely."""
        found = [each.sentence for one in self.repositories.values() for each in one.problems]
        return list(dict.fromkeys(found))

    def find_tested(self, name: str, launch: Launch | None) -> str:
        """Return the revision on which a launch was run, if the repository has it: what the launch
        says about that repository, or else about itself."""
        repository = self.repositories.get(name)
        if launch is None or repository is None:
            return ""
        own = (value for key, value in launch.attributes.items() if _is_commit_of(name, key))
        words = (*own, launch.commit, launch.branch)
        return next((word for word in words if repository.resolve_revision(word)), "")

    def list_checkouts(
        self, launch: Launch | None, ranges: Mapping[str, TestRange] = MappingProxyType({})
    ) -> tuple[Checkout, ...]:
        """Return the repositories with their web addresses, the commit to look at and the last
        green one; `ranges` are those of one test, by repository."""
        return tuple(
            self._build_checkout(each, launch, ranges.get(name))
            for name, each in self.repositories.items()
        )

    def _build_checkout(
        self, repository: Repository, launch: Launch | None, found: TestRange | None
    ) -> Checkout:
        repo, page = repository.repo, repository.browse
        green = found.good if found else self.find_last_green(repository.name)
        return Checkout(
            name=repo.name,
            path=repo.path,
            purpose=repo.purpose,
            branch=repo.branch,
            url=page.home if page else repo.url,
            remote=repo.remote,
            commit=repository.resolve_or_tip(self.find_tested(repository.name, launch)),
            last_green=repository.resolve_revision(green),
        )

    def find_last_green(self, name: str) -> str:
        """Return the configured last green revision of a repository, or ""."""
        greens = self._config.last_green
        return greens.get(name) or greens.get("", "")

    def list_new_commits(
        self, repository: Repository, launch: Launch | None, found: TestRange | None = None
    ) -> list[Commit]:
        """Return the new commits since the last pass, newest first; for a test with its own range,
        the commits in it. A flipping test accuses no commit, so it has none."""
        if found is not None and found.kind == "unsteady":
            return []
        if found is not None and found.is_accusing:
            return self._list_range(repository, found.good, found.bad)
        return self._list_range(
            repository,
            self.find_last_green(repository.name),
            self.find_tested(repository.name, launch),
        )

    def is_bounded(self, repository: Repository, found: TestRange | None = None) -> bool:
        """Return True if a passing commit bounds the suspects."""
        if found is not None and found.is_accusing:
            return True
        return bool(repository.resolve_revision(self.find_last_green(repository.name)))

    def has_passed_with(self, name: str, commit: str, found: TestRange | None = None) -> bool:
        """Return True if a commit was present when the tests, or the test of the range, last
        passed."""
        repository = self.repositories.get(name)
        green = found.good if found else self.find_last_green(name)
        if repository is None or not repository.resolve_revision(green):
            return False
        return repository.is_on_branch(commit, green) is True

    def _list_range(self, repository: Repository, green: str, tip: str) -> list[Commit]:
        key = (repository.name, green, tip)
        if key not in self._commits:
            found = repository.list_commits_since(green, tip)
            if not found and repository.resolve_revision(green) != repository.resolve_or_tip(tip):
                # A tested revision older than the last green one says nothing.
                found = repository.list_commits_since(None, tip)
            self._commits[key] = found
        return self._commits[key]

    def find_new_writer(
        self, name: str, launch: Launch | None, path: str, line: int, found: TestRange | None = None
    ) -> str:
        """Return the commit that wrote a line since the last green run; "" if it is older or
        unknown."""
        repository = self.repositories[name]
        green = found.good if found else self.find_last_green(name)
        if not line or not repository.resolve_revision(green):
            return ""
        tip = self.find_tested(name, launch)
        key = (name, tip, path, line)
        if key not in self._writers:
            blamed = repository.blame_line(path, line, tip)
            self._writers[key] = blamed.commit if blamed else ""
        new = {commit.hash for commit in self.list_new_commits(repository, launch, found)}
        return self._writers[key] if self._writers[key] in new else ""

    def check_evidence(
        self, refs: Sequence[str], launch: Launch | None, log: str
    ) -> list[Evidence]:
        """Check that each cited reference exists."""
        tested = {name: self.find_tested(name, launch) for name in self.repositories}
        return check_evidence(refs, self.repositories, tested, log or None)


def _is_commit_of(name: str, key: str) -> bool:
    """Return True for attribute names such as `shop.commit` or `SHOP_SHA`."""
    words = re.split(r"[^a-z0-9]+", key.lower())
    return words[-1] in _COMMIT_WORDS and words[:-1] == re.split(r"[^a-z0-9]+", name.lower())
