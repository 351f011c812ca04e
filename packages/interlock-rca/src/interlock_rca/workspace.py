"""The repositories of an investigation, opened once, and what changed in them.

Finds which revision of each last passed and which was tested.
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
    """Repositories by name. One that cannot be read is there all the same, and says why."""

    def __init__(self, config: RcaConfig) -> None:
        self._config = config
        self._commits: dict[tuple[str, str, str], list[Commit]] = {}
        self._writers: dict[tuple[str, str, str, int], str] = {}

    @cached_property
    def repositories(self) -> dict[str, Repository]:
        return {repo.name: self._open(repo) for repo in self._config.repos}

    def _open(self, repo: Repo) -> Repository:
        """The repository, with the role that its files tell where nobody declared one."""
        cache = Path(self._config.cache) if self._config.cache else None
        found = Repository(repo, cache=cache)
        if not repo.role and found.is_readable:
            found.repo = msgspec.structs.replace(
                repo, role=guess_role(found.list_files().paths, repo.name)
            )
        return found

    def list_problems(self) -> list[str]:
        """What could not be read, or not whole: a sentence each."""
        found = [each.sentence for one in self.repositories.values() for each in one.problems]
        return list(dict.fromkeys(found))

    def find_tested(self, name: str, launch: Launch | None) -> str:
        """The revision of a repository that a launch was run on, as far as it is known there: what
        the launch says about that repository, or else about itself."""
        repository = self.repositories.get(name)
        if launch is None or repository is None:
            return ""
        own = (value for key, value in launch.attributes.items() if _is_commit_of(name, key))
        words = (*own, launch.commit, launch.branch)
        return next((word for word in words if repository.resolve_revision(word)), "")

    def list_checkouts(
        self, launch: Launch | None, ranges: Mapping[str, TestRange] = MappingProxyType({})
    ) -> tuple[Checkout, ...]:
        """The repositories as an agent should know them: where to browse them, which commit is
        looked at and which last passed; `ranges` are those of one test, by repository."""
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
        """The revision of a repository that last passed, as the configuration has it, or ""."""
        greens = self._config.last_green
        return greens.get(name) or greens.get("", "")

    def list_new_commits(
        self, repository: Repository, launch: Launch | None, found: TestRange | None = None
    ) -> list[Commit]:
        """What is new in it since it last passed, newest first; of a test with a range of its own,
        what lies in that. Of a test that flips nothing is accused, so there is nothing to list."""
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
        """Whether it is known where these commits begin to be suspect: at one that passed."""
        if found is not None and found.is_accusing:
            return True
        return bool(repository.resolve_revision(self.find_last_green(repository.name)))

    def has_passed_with(self, name: str, commit: str, found: TestRange | None = None) -> bool:
        """Whether a commit was there when the tests last passed, or the test of that range did."""
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
                # What was tested is older than what last passed: then that tells nothing.
                found = repository.list_commits_since(None, tip)
            self._commits[key] = found
        return self._commits[key]

    def find_new_writer(
        self, name: str, launch: Launch | None, path: str, line: int, found: TestRange | None = None
    ) -> str:
        """The commit that wrote a line since the last green run; "" if it is older, or if nobody
        knows what last passed."""
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
        """Whether what was cited is there."""
        tested = {name: self.find_tested(name, launch) for name in self.repositories}
        return check_evidence(refs, self.repositories, tested, log or None)


def _is_commit_of(name: str, key: str) -> bool:
    """Whether an attribute is called like `shop.commit` or `SHOP_SHA`."""
    words = re.split(r"[^a-z0-9]+", key.lower())
    return words[-1] in _COMMIT_WORDS and words[:-1] == re.split(r"[^a-z0-9]+", name.lower())
