"""A launch: one execution of tests, as a source tells it, and the repositories it may concern."""

import msgspec


class TestCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many tests there were, and how they went."""

    tests: int = 0
    failed: int = 0
    skipped: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One test suite or CI job of a launch."""

    name: str
    item_id: int = 0
    status: str = ""
    tally: TestCounts = TestCounts()
    started_at: str = ""
    ended_at: str = ""
    clock: str = ""
    """Whose clock its times are of: executor, testing or sut; empty if unknown."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One execution. `launch_id` is the source's own; where it has none, a hash of the content."""

    launch_id: str
    name: str = ""
    uuid: str = ""
    number: int = 0
    status: str = ""
    started_at: str = ""
    ended_at: str = ""
    ci_started_at: str = ""
    ci_ended_at: str = ""
    attributes: dict[str, str] = {}
    version: str = ""
    """What was tested: a release, a build. Empty if unknown."""
    branch: str = ""
    commit: str = ""
    remote: str = ""
    url: str = ""
    ci_url: str = ""
    project: str = ""
    tally: TestCounts = TestCounts()
    jobs: tuple[Job, ...] = ()


class Repo(msgspec.Struct, frozen=True, kw_only=True):
    """A git repository that may hold the cause. Its purpose is what tells repositories apart."""

    name: str
    path: str = ""
    purpose: str = ""
    branch: str = ""
    url: str = ""
    """Where it can be browsed: commit links are made from it."""


class Checkout(Repo, frozen=True, kw_only=True):
    """A repository as it is looked at for one launch."""

    commit: str = ""
    """The tested revision where it is known, else the newest."""
    last_green: str = ""
    """The commit that last passed."""
