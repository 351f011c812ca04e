"""The pipelines of examples/ci/: pinned, few rights, and our steps in them do what they say."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from history_tests.cli.test_ci import ACTION, BROKEN, Pipeline
from tests.world.github import OWN, REPO, TOKEN, a_github

EXAMPLES = ACTION.parent / "examples" / "ci"
OURS = "OWNER/interlock@FULL_SHA"
RIGHTS = {("contents", "read"), ("actions", "read"), ("pull-requests", "write")}
WORKFLOWS = sorted(EXAMPLES.glob("github-*.yml"))


def load(name: str) -> dict[str, Any]:
    found = yaml.safe_load((EXAMPLES / name).read_text())
    assert isinstance(found, dict)
    return found


def list_steps(workflow: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in workflow["jobs"].items():
        yield from ((name, step) for step in job["steps"])


def find_step(workflow: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(step for _, step in list_steps(workflow) if step.get("name") == name)


def fill_in(values: Mapping[str, Any], context: Mapping[str, str]) -> dict[str, str]:
    """As a runner does it, with the few expressions that the test knows."""
    return {
        name.replace("-", "_"): re.sub(
            r"\$\{\{ (.+?) \}\}", lambda found: context[found[1]], str(value)
        )
        for name, value in values.items()
    }


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path / "shop")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_pinned_have_few_rights_and_paste_nothing(path: Path) -> None:
    workflow, known = load(path.name), yaml.safe_load(ACTION.read_text())["inputs"]
    for name, job in workflow["jobs"].items():
        rights = set(job.get("permissions", workflow["permissions"]).items())
        ours = [step for step in job["steps"] if step.get("uses") == OURS]
        publishes = any(step["with"].get("mode", "ci") == "ci" for step in ours)
        assert rights <= RIGHTS, name
        assert publishes or ("pull-requests", "write") not in rights, name
    for _, step in list_steps(workflow):
        assert "${{" not in step.get("run", "")
        uses = step.get("uses", OURS)
        assert uses == OURS or re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", uses), uses
        if uses == OURS:
            assert set(step.get("with", {})) <= set(known)
        if "checkout" in uses:
            assert step["with"]["persist-credentials"] is False
        if "cache/save" in uses:
            # What a comment starts runs on the default branch, whoever wrote it.
            pushed = r"event(_name)? == '(push|issue_comment)'"
            assert re.search(pushed, step["if"]), "pull requests only read"


def test_the_matrix_hands_on_and_one_job_publishes(pipeline: Pipeline) -> None:
    workflow, folder = load("github-matrix.yml"), pipeline.world.folder
    pipeline.on_main(9)
    for number in "123":
        pipeline.set_results(**{f"part{number}": BROKEN if number == "2" else ""})
        (folder / "leg/results").mkdir(parents=True)
        shutil.move(folder / "r.xml", folder / "leg/results/junit.xml")
        context = {"matrix.os": "linux", "matrix.shard": number}
        done = pipeline.run_action(**fill_in(find_step(workflow, "Remember")["with"], context))
        assert done.returncode == 0, done.stderr
        shutil.move(folder / "leg", folder / f"legs/interlock-linux-{number}-1")
    pipeline.environ["GITHUB_JOB"] = "report"
    script = find_step(workflow, "List the legs")["run"]
    subprocess.run(["bash", "-ec", script], cwd=folder, env=pipeline.environ, check=True)
    context = {"steps.legs.outputs.folders": pipeline.outputs["folders"]}
    done = pipeline.run_action(**fill_in(find_step(workflow, "Report")["with"], context))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert "1 new cause (1 test)" in (folder / "summary").read_text()
    assert pipeline.type("history", "test", "part2").stdout.count("unit os=linux") == 1


def test_a_fork_is_commented_on_and_adds_nothing_to_main(pipeline: Pipeline) -> None:
    """The event is of the default branch, the results are a stranger's, whose branch is also called
    main."""
    workflow, folder = load("github-forks-report.yml"), pipeline.world.folder
    pipeline.change("shop/cart.py", "def total():\n    return 3\n", "Round totals")
    head = pipeline.repo.git("rev-parse", "HEAD")
    pipeline.repo.git("reset", "-q", "--hard", "HEAD~1")
    pipeline.set_results(adds=BROKEN, other="")
    (folder / "temp/results").mkdir(parents=True)
    shutil.move(folder / "r.xml", folder / "temp/results/junit.xml")
    other = {"id": 77, "run_attempt": 1, "event": "pull_request", "pull_requests": []}
    other |= {
        "head_sha": head,
        "head_branch": "main",
        "head_repository": {"full_name": "eve/boats"},
    }
    event = {
        "repository": {"full_name": REPO, "default_branch": "main"},
        "workflow_run": other,
    }
    pipeline.world.write("event.json", json.dumps(event))
    pipeline.on_main(78)
    pipeline.environ |= {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_JOB": "unit"}
    pipeline.environ |= {"GITHUB_EVENT_PATH": str(folder / "event.json")}
    pipeline.environ |= {"GITHUB_REF": "refs/heads/main"}
    context = {"runner.temp": "temp", "steps.pr.outputs.number": "1"}
    with a_github() as github:
        github.opened("Round totals", "", by="eve")
        pipeline.environ |= {"GITHUB_API_URL": github.url}
        inputs = fill_in(find_step(workflow, "Report")["with"], context)
        done = pipeline.run_action(**inputs, token=TOKEN)
        (comment,) = (each["body"] for each in github.comments[1] if each["user"]["login"] == OWN)
    assert done.returncode == 0, done.stderr
    assert "1 new cause (1 test)" in comment
    assert f"**Suspect** `{head[:10]}`" in comment
    exported = map(json.loads, pipeline.type("history", "export").stdout.splitlines())
    failed = [each for each in exported if each["status"] != "pass"]
    assert [(each["test"], each["scope"]) for each in failed] == [
        ("tests.test_cart::adds", "pull-request")
    ]


@pytest.mark.parametrize("name", ["gitlab.yml", "Jenkinsfile"])
def test_other_systems_report_and_their_pull_requests_leave_the_memory(
    pipeline: Pipeline, name: str
) -> None:
    folder = pipeline.world.folder
    pipeline.set_results(adds=BROKEN, other="")
    (folder / "results").mkdir()
    shutil.move(folder / "r.xml", folder / "results/junit.xml")
    commit = pipeline.repo.git("rev-parse", "HEAD")
    environ = {each: text for each, text in pipeline.environ.items() if "GITHUB" not in each}
    environ |= {"HOME": str(folder.parent)}
    if name == "gitlab.yml":
        template = load(name)[".interlock"]
        script = "\n".join(template["script"])
        environ |= {"GITLAB_CI": "true", "CI_COMMIT_SHA": commit, "CI_PIPELINE_ID": "5"}
        environ |= {"CI_COMMIT_REF_NAME": "main", "CI_DEFAULT_BRANCH": "main"}
        environ |= {each: str(text) for each, text in template["variables"].items()}
        policies = {each["cache"]["policy"] for each in load(name).values() if "cache" in each}
        assert policies == {"pull", "pull-push"}
    else:
        script = re.findall(r"sh '''(.+?)'''", (EXAMPLES / name).read_text(), re.DOTALL)[0]
        environ |= {"JENKINS_URL": "http://x", "GIT_COMMIT": commit, "BUILD_TAG": "b-5"}
        environ |= {"CHANGE_ID": "3", "CHANGE_TARGET": "main", "STAGE_NAME": "unit"}
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert "1 new" in (folder / "interlock-report/ci/ci-summary.md").read_text()
    assert (folder / "interlock-report/ci/gl-code-quality-report.json").exists()
    if name == "Jenkinsfile":
        assert list((folder.parent / "interlock-history").iterdir()) == []
