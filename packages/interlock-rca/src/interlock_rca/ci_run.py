"""Identify the run that results belong to, from flags, the environment and git.

Flags override `INTERLOCK_*`, which override the CI system's variables, which override git. A table
maps variable names; one function per system handles the rest. The author of a pull request controls
event files, so these only fill gaps and never override the environment.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from interlock.system.errors import SourceError, UsageError
from interlock.system.files import UnreadableFile, read_file
from interlock.system.git import READ, Git, read_safe_folders
from interlock.system.strict_json import Problem, read_object
from interlock.system.text import clean_text

Scope = Literal["default", "queue", "branch", "pull-request"]
"""The line of development that results count for: the default branch, a merge queue, another
branch, or a pull request."""


class CiRun(msgspec.Struct, frozen=True, kw_only=True):
    """One job of one attempt of one run, and the source that it tested."""

    provider: str = "local"
    project: str = ""
    """A name such as owner/name."""
    run: str = ""
    attempt: int = 1
    job: str = ""
    job_id: str = ""
    """Distinguishes a repeated job where the CI system does not count attempts."""
    variant: tuple[tuple[str, str], ...] = ()
    """The matrix values, sorted by name."""
    shard: str = ""
    """A part such as 3/12; empty for the whole."""
    commit: str = ""
    """The checked-out commit; for a pull request on GitHub, the merge commit."""
    head: str = ""
    """The pull request's own last commit."""
    tree: str = ""
    """Git's hash of the source, independent of its history."""
    base: str = ""
    """The commit where a pull request or a queue's batch begins, according to the CI system."""
    previous: str = ""
    """The commit that the CI system built before this one."""
    branch: str = ""
    target: str = ""
    """The branch into which it is to be merged."""
    pr: str = ""
    event: str = ""
    scope: Scope = "default"
    at: float = 0.0
    """The start of the run in seconds since 1970."""

    @property
    def source(self) -> str:
        """Return the subject of verdicts: the tree, else the commit, else the run."""
        return self.tree or self.commit or f"{self.provider}:{self.run}"

    @property
    def label(self) -> str:
        """Return the job and its variant in one word. Results of different labels are never
        compared."""
        return " ".join([*filter(None, [self.job]), *(f"{k}={v}" for k, v in self.variant)])

    @property
    def key(self) -> tuple[str, ...]:
        """Return the key by which uploads are recognized as the same. A run's number alone may
        repeat."""
        names = ("provider", "project", "run", "job", "job_id", "shard", "commit")
        words = [str(getattr(self, name)) for name in names]
        return (*words, str(self.attempt), *(f"{k}={v}" for k, v in self.variant))


class Identified(msgspec.Struct, frozen=True):
    """A run, with the oddities met while identifying it."""

    run: CiRun
    notes: tuple[str, ...] = ()


Facts = dict[str, str]
_Reader = Callable[[Mapping[str, str], Facts, list[str]], None]
_DETECT: Final = {
    "github": "GITHUB_ACTIONS",
    "gitlab": "GITLAB_CI",
    "azure": "TF_BUILD",
    "circleci": "CIRCLECI",
    "buildkite": "BUILDKITE",
    "jenkins": "JENKINS_URL",
}
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "github": {
        "project": "GITHUB_REPOSITORY",
        "commit": "GITHUB_SHA",
        "branch": "GITHUB_HEAD_REF GITHUB_REF_NAME",
        "target": "GITHUB_BASE_REF",
        "run": "GITHUB_RUN_ID",
        "job": "GITHUB_JOB",
        "attempt": "GITHUB_RUN_ATTEMPT",
        "event": "GITHUB_EVENT_NAME",
    },
    "gitlab": {
        "project": "CI_PROJECT_PATH",
        "commit": "CI_COMMIT_SHA",
        "branch": "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME CI_COMMIT_REF_NAME",
        "target": "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        "pr": "CI_MERGE_REQUEST_IID",
        "run": "CI_PIPELINE_ID",
        "job": "CI_JOB_NAME",
        "job_id": "CI_JOB_ID",
        "shard": "CI_NODE_INDEX",
        "shards": "CI_NODE_TOTAL",
        "event": "CI_PIPELINE_SOURCE",
        "base": "CI_MERGE_REQUEST_DIFF_BASE_SHA",
        "previous": "CI_COMMIT_BEFORE_SHA",
        "default_branch": "CI_DEFAULT_BRANCH",
    },
    "jenkins": {
        "project": "GIT_URL GIT_URL_1",
        "commit": "GIT_COMMIT",
        "branch": "CHANGE_BRANCH BRANCH_NAME GIT_LOCAL_BRANCH GIT_BRANCH",
        "target": "CHANGE_TARGET",
        "pr": "CHANGE_ID",
        "run": "BUILD_TAG",
        "job": "STAGE_NAME",
        "previous": "GIT_PREVIOUS_SUCCESSFUL_COMMIT GIT_PREVIOUS_COMMIT",
    },
    "azure": {
        "project": "BUILD_REPOSITORY_NAME BUILD_REPOSITORY_URI",
        "commit": "BUILD_SOURCEVERSION",
        "head": "SYSTEM_PULLREQUEST_SOURCECOMMITID",
        "branch": "SYSTEM_PULLREQUEST_SOURCEBRANCH BUILD_SOURCEBRANCH",
        "target": "SYSTEM_PULLREQUEST_TARGETBRANCH",
        "pr": "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER SYSTEM_PULLREQUEST_PULLREQUESTID",
        "run": "BUILD_BUILDID",
        "job": "SYSTEM_JOBNAME AGENT_JOBNAME SYSTEM_PHASENAME",
        "job_id": "SYSTEM_JOBID",
        "attempt": "SYSTEM_JOBATTEMPT",
        "shard": "SYSTEM_JOBPOSITIONINPHASE",
        "shards": "SYSTEM_TOTALJOBSINPHASE",
        "event": "BUILD_REASON",
    },
    "circleci": {
        "project": "CIRCLE_REPOSITORY_URL",
        "commit": "CIRCLE_SHA1",
        "branch": "CIRCLE_BRANCH",
        "pr": "CIRCLE_PULL_REQUEST",
        "run": "CIRCLE_WORKFLOW_ID",
        "job": "CIRCLE_JOB",
        "shard": "CIRCLE_NODE_INDEX",
        "shards": "CIRCLE_NODE_TOTAL",
    },
    "buildkite": {
        "project": "BUILDKITE_REPO",
        "commit": "BUILDKITE_COMMIT",
        "branch": "BUILDKITE_BRANCH",
        "target": "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
        "pr": "BUILDKITE_PULL_REQUEST",
        "run": "BUILDKITE_BUILD_ID",
        "job": "BUILDKITE_STEP_KEY BUILDKITE_LABEL",
        "job_id": "BUILDKITE_JOB_ID",
        "attempt": "BUILDKITE_RETRY_COUNT",
        "shard": "BUILDKITE_PARALLEL_JOB",
        "shards": "BUILDKITE_PARALLEL_JOB_COUNT",
        "event": "BUILDKITE_SOURCE",
        "default_branch": "BUILDKITE_PIPELINE_DEFAULT_BRANCH",
    },
}
OWN_NAMES: Final = (
    *("project", "run", "attempt", "job", "variant", "shard", "commit", "head", "tree", "base"),
    *("branch", "target", "pr", "event"),
)
"""The names accepted as a flag or as a variable `INTERLOCK_NAME`."""
_LONGEST: Final = 300
_LARGEST_EVENT: Final = 8_000_000
_HASH: Final = re.compile(r"[0-9a-f]{7,64}")
_PULL: Final = re.compile(r"refs/pull/([0-9]{1,12})/")
_COUNTED: Final = re.compile(r"(.+?)\s+([0-9]{1,6})/([0-9]{1,6})")
_FROM_ZERO: Final = ("circleci", "buildkite")
"""CI systems that count shards from 0."""


def identify_run(
    environ: Mapping[str, str],
    flags: Mapping[str, str] | None = None,
    *,
    folder: Path = Path(),
    default_branch: str = "",
    now: float = 0.0,
) -> Identified:
    """Return the run that this process is part of. `default_branch` comes from the project's
    settings. Raise UsageError if a flag or an `INTERLOCK_` variable is unusable."""
    notes: list[str] = []
    provider = detect_provider(environ)
    facts = _read_provider(provider, environ, notes)
    own = {name: environ.get(f"INTERLOCK_{name.upper()}", "") for name in OWN_NAMES}
    own["default_branch"] = environ.get("INTERLOCK_DEFAULT_BRANCH", "") or default_branch
    for words in (own, flags or {}):
        facts |= {name: clean_text(value)[:_LONGEST] for name, value in words.items() if value}
    if (flags or {}).get("commit") or own["commit"]:
        given = (flags or {}).get("tree") or own["tree"]
        facts = {**facts, "tree": given or "", "head": (flags or {}).get("head") or own["head"]}
    _add_git_facts(folder, facts, is_local=not provider)
    return Identified(_build_run(provider or "local", facts, notes, now), tuple(notes))


def detect_provider(environ: Mapping[str, str]) -> str:
    """Return the name of the CI system this runs in, or ""."""
    return next((name for name, variable in _DETECT.items() if environ.get(variable)), "")


def _read_provider(provider: str, environ: Mapping[str, str], notes: list[str]) -> Facts:
    facts: Facts = {}
    for field, names in _NAMES.get(provider, {}).items():
        value = next((environ[name] for name in names.split() if environ.get(name)), "")
        facts[field] = clean_text(value)[:_LONGEST]
    if provider:
        _READERS[provider](environ, facts, notes)
    shard, shards = facts.pop("shard", ""), facts.pop("shards", "")
    if shard.isdecimal() and shards.isdecimal() and int(shards) > 1:
        facts["shard"] = f"{int(shard) + (provider in _FROM_ZERO)}/{int(shards)}"
    return facts


def _read_github(environ: Mapping[str, str], facts: Facts, notes: list[str]) -> None:
    event = _read_event(environ.get("GITHUB_EVENT_PATH", ""), notes)
    name = facts["event"]
    facts["default_branch"] = _get_text(event, "repository", "default_branch")
    found = _PULL.match(environ.get("GITHUB_REF", ""))
    claimed = str(event.get("number") or _get_text(event, "pull_request", "number"))
    if found:
        facts["pr"] = found[1]
        if claimed.isdecimal() and claimed != found[1]:
            notes.append(
                f"the event file speaks of pull request {claimed}, the run belongs to {found[1]}: "
                "the run is believed"
            )
    elif name.startswith("pull_request") and claimed.isdecimal():
        facts["pr"] = claimed
    if name.startswith("pull_request"):
        facts["head"] = _get_hash(event, "pull_request", "head", "sha")
        facts["base"] = _get_hash(event, "pull_request", "base", "sha")
        if name == "pull_request_target":
            # The checked-out commit is the target's; the workflow decides what it tests.
            facts["branch"] = _get_text(event, "pull_request", "head", "ref") or facts["branch"]
    elif name == "merge_group":
        facts["base"] = _get_hash(event, "merge_group", "base_sha")
        facts["target"] = _get_text(event, "merge_group", "base_ref").removeprefix("refs/heads/")
    elif name == "workflow_run":
        _read_workflow_run(event, facts)
    elif name == "push":
        facts["previous"] = _get_hash(event, "before")


def _read_workflow_run(event: Mapping[str, Any], facts: Facts) -> None:
    """Read the event of a workflow that publishes for another one: results belong to the other, and
    its trigger decides whose history they are."""
    other = event.get("workflow_run")
    if not isinstance(other, dict):
        return
    facts["commit"] = _get_hash(other, "head_sha") or facts["commit"]
    facts["branch"] = _get_text(other, "head_branch")
    facts["run"] = str(other.get("id") or facts["run"])[:_LONGEST]
    facts["attempt"] = str(other.get("run_attempt") or 1)
    facts["event"] = _get_text(other, "event")
    ours = _get_text(event, "repository", "full_name")
    if _get_text(other, "head_repository", "full_name") != ours and not facts.get("pr"):
        facts["event"] = "pull_request"
    pulls = other.get("pull_requests")
    if isinstance(pulls, list) and pulls and isinstance(pulls[0], dict):
        facts["pr"] = str(pulls[0].get("number", ""))


def _read_gitlab(environ: Mapping[str, str], facts: Facts, notes: list[str]) -> None:
    if found := _COUNTED.fullmatch(facts["job"]):  # "unit 3/12", a job of `parallel: 12`
        facts["job"] = found[1]
        facts["shard"], facts["shards"] = facts["shard"] or found[2], facts["shards"] or found[3]
    if environ.get("CI_MERGE_REQUEST_EVENT_TYPE") == "merge_train":
        facts["event"] = "merge_train"
    if not facts["previous"].strip("0"):
        facts["previous"] = ""


def _read_jenkins(environ: Mapping[str, str], facts: Facts, notes: list[str]) -> None:
    facts["branch"] = facts["branch"].removeprefix("origin/")
    if not facts["job"]:
        # A multibranch job is named after its branch; that is no job name.
        name, branch = environ.get("JOB_NAME", ""), environ.get("BRANCH_NAME", "")
        facts["job"] = "" if branch else clean_text(name)[:_LONGEST]


def _read_azure(environ: Mapping[str, str], facts: Facts, notes: list[str]) -> None:
    for name in ("branch", "target"):
        facts[name] = facts[name].removeprefix("refs/heads/")
    stage = environ.get("SYSTEM_STAGEATTEMPT", "")
    if stage.isdecimal() and facts["attempt"].isdecimal():
        facts["attempt"] = str(int(stage) + int(facts["attempt"]) - 1)


def _read_circleci(environ: Mapping[str, str], facts: Facts, notes: list[str]) -> None:
    facts["pr"] = facts["pr"].rstrip("/").rpartition("/")[2]


def _read_buildkite(environ: Mapping[str, str], facts: Facts, notes: list[str]) -> None:
    facts["pr"] = "" if facts["pr"] == "false" else facts["pr"]
    if facts["attempt"].isdecimal():
        facts["attempt"] = str(int(facts["attempt"]) + 1)
    if facts["branch"].startswith("gh-readonly-queue/"):
        facts["event"] = "merge_group"


_READERS: Final[Mapping[str, _Reader]] = {
    "github": _read_github,
    "gitlab": _read_gitlab,
    "jenkins": _read_jenkins,
    "azure": _read_azure,
    "circleci": _read_circleci,
    "buildkite": _read_buildkite,
}


def _read_event(place: str, notes: list[str]) -> dict[str, Any]:
    if not place:
        return {}
    raw = read_file(Path(place), _LARGEST_EVENT)
    found = Problem("empty", raw.reason) if isinstance(raw, UnreadableFile) else read_object(raw)
    if isinstance(found, Problem):
        notes.append(f"the event file cannot be used: {found.sentence}")
        return {}
    return found


def _get_text(event: Mapping[str, Any], *path: str) -> str:
    value: Any = event
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    is_word = isinstance(value, str | int) and not isinstance(value, bool)
    return clean_text(str(value))[:_LONGEST] if is_word else ""


def _get_hash(event: Mapping[str, Any], *path: str) -> str:
    text = _get_text(event, *path).lower()
    return text if _HASH.fullmatch(text) and text.strip("0") else ""


def _add_git_facts(folder: Path, facts: Facts, *, is_local: bool) -> None:
    """Fill gaps from the checkout: the commit's tree, and outside of CI also commit, branch and
    project. Without git nothing is added."""
    try:
        git = Git(folder.resolve(), READ, safe=read_safe_folders())
        if not git.is_true("rev-parse", "--git-dir"):
            return
        if is_local:
            _add_local_facts(git, facts)
        commit = facts.get("commit", "")
        if commit and not facts.get("tree") and _HASH.fullmatch(commit.lower()):
            facts["tree"] = git.try_line(
                "rev-parse", "--verify", "--quiet", f"{commit.lower()}^{{tree}}"
            )
        if not facts.get("default_branch"):
            remote = git.try_line("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
            facts["default_branch"] = remote.removeprefix("origin/")
    except SourceError:
        return


def _add_local_facts(git: Git, facts: Facts) -> None:
    if not facts.get("project"):
        facts["project"] = git.try_line("config", "--local", "--get", "remote.origin.url")
    if facts.get("commit"):
        return
    facts["commit"] = git.try_line("rev-parse", "--verify", "--quiet", "HEAD")
    if not facts.get("branch"):
        facts["branch"] = git.try_line("symbolic-ref", "--quiet", "--short", "HEAD")
    if facts["commit"] and not git.is_true("diff-index", "--quiet", "HEAD", "--"):
        # Without a known source, results count for this run only.
        facts["tree"] = f"changed:{facts.get('run', '')}"


def _build_run(provider: str, facts: Facts, notes: list[str], now: float) -> CiRun:
    attempt = facts.get("attempt") or "1"
    if not attempt.isdecimal() or not 1 <= int(attempt) < 10**9:
        raise UsageError(f"the attempt must be a number from 1, not {attempt!r}")
    commit = facts.get("commit", "")
    if commit and not _HASH.fullmatch(commit.lower()):
        raise UsageError(f"the commit must be a hash of 7 to 64 hex digits, not {commit!r}")
    return CiRun(
        provider=provider,
        project=_normalize_project(facts.get("project", "")),
        run=facts.get("run", ""),
        attempt=int(attempt),
        job=facts.get("job", ""),
        job_id=facts.get("job_id", ""),
        variant=parse_variant(facts.get("variant", "")),
        shard=_normalize_shard(facts.get("shard", "")),
        commit=commit.lower(),
        head=facts.get("head", "").lower(),
        tree=facts.get("tree", ""),
        base=facts.get("base", "").lower(),
        previous=facts.get("previous", "").lower(),
        branch=facts.get("branch", "").removeprefix("refs/heads/"),
        target=facts.get("target", ""),
        pr=facts.get("pr", ""),
        event=facts.get("event", ""),
        scope=_decide_scope(facts),
        at=now,
    )


def _decide_scope(facts: Mapping[str, str]) -> Scope:
    event, branch = facts.get("event", ""), facts.get("branch", "").removeprefix("refs/heads/")
    if event in ("merge_group", "merge_train") or branch.startswith("gh-readonly-queue/"):
        return "queue"
    if facts.get("pr") or event.startswith(("pull_request", "merge_request")):
        return "pull-request"
    usual = (facts["default_branch"],) if facts.get("default_branch") else ("main", "master", "")
    return "default" if branch in usual else "branch"


def _normalize_project(text: str) -> str:
    """Return owner/name of an address; the part before an @ may be a secret."""
    if "://" in text:
        text = urlsplit(text).path
    elif re.match(r"[\w.-]+@[\w.-]+:", text):
        text = text.partition(":")[2]
    return text.strip("/").removesuffix(".git")


def _normalize_shard(text: str) -> str:
    if not text:
        return ""
    number, _, total = text.partition("/")
    fits = number.isdecimal() and (not total or total.isdecimal())
    if not fits or not 1 <= int(number) <= int(total or number):
        raise UsageError(f"the shard must be written 3/12 (or 3), counted from 1, not {text!r}")
    return f"{int(number)}/{int(total)}" if total else str(int(number))


def parse_variant(text: str) -> tuple[tuple[str, str], ...]:
    """Parse `os=linux,python=3.12` into pairs sorted by name. Raise UsageError for anything
    else."""
    pairs: dict[str, str] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = word.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise UsageError(f"the variant must be written name=value, not {word!r}")
        if pairs.setdefault(name.strip(), value.strip()) != value.strip():
            raise UsageError(f"the variant names {name.strip()!r} twice")
    return tuple(sorted(pairs.items()))


def refuse_claim(own: CiRun, run: CiRun) -> str:
    """Return why results are not accepted here, or "". A pull request's job can write anything into
    its results, so a claim to speak for the default branch is not believed."""
    if own.scope != "pull-request" or run.scope == "pull-request":
        return ""
    whose = f"the {run.scope} history" if run.scope != "branch" else f"branch {run.branch}"
    return (
        f"results of run {run.run} claim to be of {whose}, but this job belongs to pull request "
        f"{own.pr}"
    )


def name_attempt(run: CiRun) -> str:
    return f"{run.run or run.provider}#{run.attempt}"
