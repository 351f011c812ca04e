"""`interlock ci` and the action: a pipeline's run from results to what people see."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.world.command_line import World
from tests.world.git_repo import GitRepo
from tests.world.github import OWN, REPO, TOKEN, a_github
from tests.world.places import ROOT

CASE = '<testcase classname="tests.test_cart" name="{}">{}</testcase>'
BROKEN = (
    '<failure message="assert 3 == 4">Traceback:\n  File "shop/cart.py", line 2, in total\n'
    "AssertionError: assert 3 == 4</failure>"
)
ACTION = ROOT / "action.yml"


class Pipeline:
    """A repository with some green nights on main, and CI's environment for one more run."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.repo = GitRepo(folder)
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": REPO,
            "GITHUB_JOB": "unit",
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_OUTPUT": str(folder / "output"),
        }
        self.repo.write({".gitignore": ".interlock/\nr.xml\ninterlock-report/\nsummary\noutput\n"})
        self.change("shop/cart.py", "def total():\n    return 4\n", "Add a cart")
        for night in range(3):
            self.change("docs.md", f"{night}\n", f"Write {night}")
            self.set_results(adds="", other="")
            self.on_main(night)
            assert self.type("ingest", "r.xml").returncode == 0

    def change(self, path: str, text: str, subject: str) -> None:
        self.repo.write({path: text})
        self.repo.git("add", "-A")
        self.repo.git("commit", "-qm", subject)

    def set_results(self, **results: str) -> None:
        cases = "".join(CASE.format(name, inside) for name, inside in results.items())
        self.world.write("r.xml", f'<testsuite name="pytest">{cases}</testsuite>')

    def on_main(self, run: int) -> None:
        commit = self.repo.git("rev-parse", "HEAD")
        self.environ |= {"GITHUB_SHA": commit, "GITHUB_RUN_ID": str(run), "GITHUB_REF_NAME": "main"}
        self.environ |= {"GITHUB_EVENT_NAME": "push"}

    def on_pull_request(self, run: int) -> None:
        self.on_main(run)
        self.environ |= {"GITHUB_REF": "refs/pull/1/merge", "GITHUB_EVENT_NAME": "pull_request"}
        self.environ |= {"GITHUB_HEAD_REF": "topic", "GITHUB_BASE_REF": "main"}

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "interlock", *words],
            cwd=self.world.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def run_action(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """The action's steps as a runner runs them: inputs become variables, then bash."""
        action = yaml.safe_load(ACTION.read_text())
        given = {name: each["default"] for name, each in action["inputs"].items()} | {"version": ""}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        for step in action["runs"]["steps"]:
            assert "${{" not in step["run"], "nothing is pasted into a script"
            variables = {
                name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
                for name, value in step["env"].items()
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.world.folder,
                env=self.environ | variables,
                capture_output=True,
                text=True,
                check=False,
            )
        return done

    @property
    def outputs(self) -> dict[str, str]:
        text = (self.world.folder / "output").read_text()
        found = re.findall(r"^([\w-]+)<<(\S+)\n(.*?)\n\2$", text, re.DOTALL | re.MULTILINE)
        return {name: value for name, _, value in found}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path / "shop")


def test_a_regression_on_a_pull_request_is_shown_with_its_suspect(pipeline: Pipeline) -> None:
    pipeline.change("shop/cart.py", "def total():\n    return 3\n", "Round totals")
    pipeline.set_results(adds=BROKEN, other="")
    pipeline.on_pull_request(9)
    before = sorted((pipeline.world.folder / ".interlock/history").rglob("*"))
    with a_github() as github:
        github.opened("Round totals", "")
        pipeline.environ |= {"GITHUB_API_URL": github.url}
        done = pipeline.run_action(results="r.xml", fail_on="new", token=TOKEN)
        (comment,) = (each["body"] for each in github.comments[1] if each["user"]["login"] == OWN)
    assert done.returncode == 1, done.stderr
    assert pipeline.outputs["verdict"] == "new"
    assert pipeline.outputs["baseline"] == "3 earlier sources of the default branch"
    suspect = pipeline.repo.git("rev-parse", "--short=10", "HEAD")
    summary = (pipeline.world.folder / "summary").read_text()
    for text in (comment, summary):
        assert "1 new cause (1 test)" in text
        assert f"**Suspect** `{suspect}`" in text
        assert "last passed on" in text
    assert "::error file=shop/cart.py,line=2,title=new%3A tests.test_cart" in done.stdout
    assert len(before) < len(sorted((pipeline.world.folder / ".interlock/history").rglob("*")))
    top = pipeline.type("history", "test", "tests.test_cart::adds", "--json")
    assert '"failing"' not in top.stdout, "a pull request adds nothing to main's history"


def test_shards_are_joined_and_a_missing_one_is_said(pipeline: Pipeline) -> None:
    pipeline.on_main(9)
    for number in (1, 3):
        pipeline.set_results(**{f"part{number}": ""})
        done = pipeline.run_action(
            mode="ingest", results="r.xml", shard=f"{number}/3", store=f"leg{number}"
        )
        assert done.returncode == 0, done.stderr
    joined = pipeline.run_action(legs="leg1\nleg3", fail_on="new")
    assert joined.returncode == 1
    assert pipeline.outputs["verdict"] == "incomplete"
    assert "no results of unit shard 2 of 3" in (pipeline.world.folder / "summary").read_text()
    pipeline.set_results(part2="")
    pipeline.run_action(mode="ingest", results="r.xml", shard="2/3", store="leg2")
    assert pipeline.run_action(legs="leg1\nleg2\nleg3", fail_on="new").returncode == 0
    pipeline.environ["GITHUB_RUN_ID"] = "10"
    other = pipeline.run_action(legs="leg1")
    assert other.returncode == 3
    assert "results of run 9" in other.stderr


@pytest.mark.parametrize(
    ("inputs", "code", "said"),
    [
        ({"results": "none/*.xml"}, 3, "none/*.xml"),
        ({"results": "r.xml", "title": "$(touch pwned) `touch pwned`"}, 0, ""),
        ({"results": "r.xml\n$(touch pwned)"}, 3, "pwned"),
        ({"results": "r.xml", "fail_on": "sometimes"}, 2, "sometimes"),
    ],
)
def test_hostile_and_wrong_inputs(
    pipeline: Pipeline, inputs: dict[str, Any], code: int, said: str
) -> None:
    pipeline.on_main(9)
    pipeline.set_results(adds="")
    done = pipeline.run_action(**inputs)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stderr
    assert not (pipeline.world.folder / "pwned").exists()


def test_trouble_of_the_reporter_is_no_failure(pipeline: Pipeline) -> None:
    """No memory, no database, no repository, a name that is a command: the words are still said."""
    pipeline.on_main(9)
    pipeline.set_results(adds=BROKEN, other="")
    pipeline.world.write(
        "r.xml",
        pipeline.world.folder.joinpath("r.xml")
        .read_text()
        .replace('name="other"', 'name="other&#10;::error::pwned"'),
    )
    pipeline.world.write("file", "")
    done = pipeline.type("ci", "r.xml", "--store", "file/x", "--db", "file/y", "--repo", "nowhere")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning:") >= 2
    visible = done.stdout[done.stdout.index("::stop-commands::") :]
    guard = re.match(r"::stop-commands::(\w{32})\n", visible)
    assert guard
    assert visible.endswith(f"::{guard[1]}::\n")
    assert "new: tests.test_cart::adds (no earlier result is known)" in visible
    assert not re.search(r"^::error::", done.stdout, re.MULTILINE)
    down = pipeline.type("ci", "r.xml", "--store", "http://127.0.0.1:1/")
    assert (down.returncode, "warning: nothing is remembered" in down.stderr) == (0, True)


def test_secrets_in_results_are_nowhere_to_be_read(pipeline: Pipeline) -> None:
    """Not in the summary, the annotations, the log, the outputs, the report or the memory."""
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    broken = BROKEN.replace("assert 3 == 4", f"login with password={secret} refused")
    pipeline.on_main(9)
    pipeline.set_results(adds=broken, other="")
    done = pipeline.type("ci", "r.xml", "--repo", "shop=.")
    assert done.returncode == 0, done.stderr
    assert "new: tests.test_cart::adds" in done.stdout
    assert secret not in done.stdout + done.stderr
    folder = pipeline.world.folder
    written = [file for file in folder.rglob("*") if file.is_file() and ".git" not in file.parts]
    assert {folder / "summary", folder / "output"} <= {*written}
    kept = [file for file in written if secret.encode() in file.read_bytes()]
    assert kept == [folder / "r.xml"]


def test_flags_say_which_run_it_is_to_the_search_for_causes_too(pipeline: Pipeline) -> None:
    """Outside of any CI system, on another branch than the default one."""
    for name in [name for name in pipeline.environ if name.startswith("GITHUB")]:
        del pipeline.environ[name]
    words = ["--project", "shop/web", "--job", "unit", "--branch", "release"]
    pipeline.set_results(adds="", other="")
    assert pipeline.type("ingest", "r.xml", "--run", "20", *words).returncode == 0
    pipeline.change("shop/cart.py", "def total():\n    return 3\n", "Round totals")
    pipeline.set_results(adds=BROKEN, other="")
    pipeline.repo.git("checkout", "-q", "--detach")
    done = pipeline.type("ci", "r.xml", "--run", "21", *words)
    assert done.returncode == 0, done.stderr
    assert "1 compared with the last pass of the same test" in done.stderr
    assert "Round totals" in done.stdout


def test_a_run_number_that_was_used_before_brings_nothing_back(pipeline: Pipeline) -> None:
    """The same number for another commit, and no number at all: only this run's results count."""
    pipeline.set_results(adds=BROKEN, other="")
    pipeline.on_main(9)
    assert pipeline.type("ci", "r.xml").returncode == 0
    pipeline.change("shop/cart.py", "def total():\n    return 5\n", "Mend totals")
    pipeline.set_results(adds="", more="")
    pipeline.on_main(9)
    again = json.loads(pipeline.type("ci", "r.xml", "--json").stdout)
    assert (again["failed"], again["tests"]) == ("0", 2)
    for name in [name for name in pipeline.environ if name.startswith("GITHUB")]:
        del pipeline.environ[name]
    for results, failed in (({"adds": BROKEN}, "1"), ({"adds": "", "more": ""}, "0")):
        pipeline.set_results(**results)
        local = pipeline.type("ci", "r.xml", "--json")
        assert json.loads(local.stdout)["failed"] == failed, local.stderr
