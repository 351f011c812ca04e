"""Which run results belong to: six CI systems, flags, git, and event files that lie."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlock.system.errors import UsageError
from interlock_rca.ci_run import CiRun, identify_run

A, B, C = "a" * 40, "b" * 40, "c" * 40
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "shop/web",
    "GITHUB_SHA": A,
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REF_NAME": "main",
    "GITHUB_RUN_ID": "981",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_JOB": "unit",
    "GITHUB_EVENT_NAME": "push",
}
PULL = GITHUB | {
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_REF": "refs/pull/12/merge",
    "GITHUB_HEAD_REF": "topic",
    "GITHUB_BASE_REF": "main",
}
CASES: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    (
        "gitlab",
        {
            "GITLAB_CI": "true",
            "CI_PROJECT_PATH": "group/sub/web",
            "CI_COMMIT_SHA": A,
            "CI_COMMIT_REF_NAME": "trunk",
            "CI_DEFAULT_BRANCH": "trunk",
            "CI_PIPELINE_ID": "77",
            "CI_JOB_NAME": "unit 3/12",
            "CI_JOB_ID": "9001",
            "CI_NODE_INDEX": "3",
            "CI_NODE_TOTAL": "12",
            "CI_COMMIT_BEFORE_SHA": "0" * 40,
        },
        {
            "project": "group/sub/web",
            "run": "77",
            "job": "unit",
            "job_id": "9001",
            "shard": "3/12",
            "scope": "default",
            "previous": "",
        },
    ),
    (
        "gitlab",
        {
            "GITLAB_CI": "true",
            "CI_COMMIT_SHA": A,
            "CI_COMMIT_REF_NAME": "refs/merge-requests/4/train",
            "CI_MERGE_REQUEST_IID": "4",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": B,
            "CI_MERGE_REQUEST_EVENT_TYPE": "merge_train",
        },
        {"scope": "queue", "pr": "4", "base": B, "target": "main"},
    ),
    (
        "jenkins",
        {
            "JENKINS_URL": "https://ci.example.org/",
            "GIT_URL": "https://bot:hunter2@git.example.org/shop/web.git",
            "GIT_COMMIT": A,
            "BRANCH_NAME": "PR-12",
            "CHANGE_BRANCH": "topic",
            "CHANGE_TARGET": "main",
            "CHANGE_ID": "12",
            "JOB_NAME": "shop/web/PR-12",
            "BUILD_TAG": "jenkins-shop-web-PR-12-3",
        },
        {"project": "shop/web", "job": "", "scope": "pull-request", "branch": "topic", "pr": "12"},
    ),
    (
        "azure",
        {
            "TF_BUILD": "True",
            "BUILD_REPOSITORY_URI": "https://dev.azure.com/shop/_git/web",
            "BUILD_SOURCEVERSION": A,
            "BUILD_SOURCEBRANCH": "refs/heads/main",
            "BUILD_BUILDID": "55",
            "SYSTEM_JOBNAME": "linux",
            "SYSTEM_JOBATTEMPT": "2",
            "SYSTEM_STAGEATTEMPT": "3",
            "SYSTEM_JOBPOSITIONINPHASE": "1",
            "SYSTEM_TOTALJOBSINPHASE": "4",
        },
        {"branch": "main", "attempt": 4, "shard": "1/4", "scope": "default", "job": "linux"},
    ),
    (
        "circleci",
        {
            "CIRCLECI": "true",
            "CIRCLE_REPOSITORY_URL": "git@github.com:shop/web.git",
            "CIRCLE_SHA1": A,
            "CIRCLE_BRANCH": "topic",
            "CIRCLE_PULL_REQUEST": "https://github.com/shop/web/pull/31",
            "CIRCLE_WORKFLOW_ID": "wf-1",
            "CIRCLE_JOB": "unit",
            "CIRCLE_NODE_INDEX": "0",
            "CIRCLE_NODE_TOTAL": "4",
        },
        {"project": "shop/web", "pr": "31", "shard": "1/4", "scope": "pull-request"},
    ),
    (
        "buildkite",
        {
            "BUILDKITE": "true",
            "BUILDKITE_REPO": "git@github.com:shop/web.git",
            "BUILDKITE_COMMIT": A,
            "BUILDKITE_BRANCH": "release-1",
            "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main",
            "BUILDKITE_PULL_REQUEST": "false",
            "BUILDKITE_BUILD_ID": "b-1",
            "BUILDKITE_STEP_KEY": "unit",
            "BUILDKITE_RETRY_COUNT": "1",
        },
        {"pr": "", "attempt": 2, "scope": "branch", "branch": "release-1"},
    ),
    (
        "github",
        GITHUB,
        {"project": "shop/web", "run": "981", "attempt": 2, "job": "unit", "scope": "default"},
    ),
]


def identify(environ: dict[str, str], folder: Path, **flags: str) -> CiRun:
    return identify_run(environ, flags, folder=folder).run


@pytest.mark.parametrize(("provider", "environ", "expected"), CASES)
def test_providers(
    provider: str, environ: dict[str, str], expected: dict[str, Any], tmp_path: Path
) -> None:
    run = identify(environ, tmp_path)
    assert (run.provider, run.commit) == (provider, A)
    assert {name: getattr(run, name) for name in expected} == expected


def write_event(folder: Path, event: Any) -> dict[str, str]:
    path = folder / "event.json"
    path.write_text(event if isinstance(event, str) else json.dumps(event))
    return {"GITHUB_EVENT_PATH": str(path)}


def test_the_event_of_a_pull_request_adds_and_never_overrules(tmp_path: Path) -> None:
    event = {
        "number": 99,
        "repository": {"default_branch": "topic"},
        "pull_request": {"number": 99, "head": {"sha": B}, "base": {"sha": C}},
    }
    found = identify_run(PULL | write_event(tmp_path, event), folder=tmp_path)
    assert (found.run.pr, found.run.head, found.run.base) == ("12", B, C)
    assert found.run.scope == "pull-request"
    assert "speaks of pull request 99, the run belongs to 12" in found.notes[0]
    for broken in ("{", "[1]", '{"number": {"a": 1}}', '{"pull_request": 3, "repository": "x"}'):
        found = identify_run(PULL | write_event(tmp_path, broken), folder=tmp_path)
        assert (found.run.pr, found.run.scope, found.run.head) == ("12", "pull-request", "")


def test_a_merge_queue_is_no_default_history(tmp_path: Path) -> None:
    event = {"merge_group": {"base_sha": C, "base_ref": "refs/heads/main"}}
    queue = {
        "GITHUB_EVENT_NAME": "merge_group",
        "GITHUB_REF_NAME": "gh-readonly-queue/main/pr-3-x",
    }
    run = identify(GITHUB | queue | write_event(tmp_path, event), tmp_path)
    assert (run.scope, run.base, run.target) == ("queue", C, "main")


@pytest.mark.parametrize(
    ("started_by", "fork", "scope"),
    [
        ("push", "shop/web", "default"),
        ("pull_request", "shop/web", "pull-request"),
        # A fork's branch may be called main, too.
        ("push", "mallory/web", "pull-request"),
    ],
)
def test_a_workflow_that_publishes_for_another_speaks_for_the_other(
    started_by: str, fork: str, scope: str, tmp_path: Path
) -> None:
    other = {"id": 5, "run_attempt": 3, "event": started_by, "head_sha": B, "head_branch": "main"}
    other["head_repository"] = {"full_name": fork}
    repository = {"full_name": "shop/web", "default_branch": "main"}
    event = {"workflow_run": other, "repository": repository}
    environ = GITHUB | {"GITHUB_EVENT_NAME": "workflow_run"} | write_event(tmp_path, event)
    run = identify(environ, tmp_path)
    assert (run.run, run.attempt, run.commit, run.scope) == ("5", 3, B, scope)


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_flags_go_before_our_variables_before_ci_before_git(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "f").write_text("1")
    git(tmp_path, "add", "f")
    git(tmp_path, "commit", "-qm", "one")
    head, tree = git(tmp_path, "rev-parse", "HEAD"), git(tmp_path, "rev-parse", "HEAD^{tree}")
    local = identify({}, tmp_path)
    assert (local.provider, local.commit, local.tree, local.branch) == ("local", head, tree, "main")
    ci = identify(GITHUB | {"GITHUB_SHA": head}, tmp_path)
    assert (ci.source, ci.run) == (tree, "981")
    mixed = identify(
        GITHUB | {"INTERLOCK_RUN": "ours", "INTERLOCK_JOB": "x", "INTERLOCK_VARIANT": "os=linux"},
        tmp_path,
        job="flag",
        commit=B,
    )
    assert (mixed.run, mixed.job, mixed.commit, mixed.tree) == ("ours", "flag", B, "")
    assert (mixed.label, mixed.source) == ("flag os=linux", B)
    (tmp_path / "f").write_text("2")
    changed = identify({}, tmp_path, run="4")
    assert changed.source != tree


@pytest.mark.parametrize(
    "flags",
    [
        {"attempt": "0"},
        {"attempt": "two"},
        {"commit": "HEAD"},
        {"shard": "5/4"},
        {"shard": "a"},
        {"variant": "linux"},
        {"variant": "os=a,os=b"},
    ],
)
def test_unusable_words_are_refused(flags: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must be|twice"):
        identify({}, tmp_path, **flags)
