"""Every command that the README and the how-tos show is typed as it stands, where its files are.

No agent of a vendor is installed: stand-ins of their names fail at once. A command may end in any
way but as a wrong one: exit code 2 says that it, or what it names, does not exist. The tutorial and
the pages about Python have tests of their own, which also compare what is printed. What other pages
show as printed is compared where something prints it.
"""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.docs.commands import (
    PAGES,
    Block,
    Shell,
    find_unprinted,
    list_blocks,
    list_outputs,
)
from tests.soak import again
from tests.world.places import ROOT

KERNEL_TESTS = ROOT / "packages" / "interlock" / "tests" / "kernel_tests"
DELIVERY_TESTS = ROOT / "packages" / "interlock-delivery" / "tests" / "delivery_tests"
NOT_RUN = {
    "SOURCE...": "a placeholder, not a command",
    "calibrate --scenario web-shop": "takes minutes; the package of calibrations tries it",
    "--dispatch file": "waits for watchers; the kernel's tests have it",
    "--dispatch batch-file": "waits for watchers; the kernel's tests have it",
    "--scenario mine.json": "waits for watchers",
    "--hitl github": "needs a repository on GitHub; the tests of epics have one",
    "interlock serve": "serves until it is stopped; the tests of the window have it",
    "--server https": "needs a server; the tests of the window have one",
    "respond --agent": "waits for signals; check-a-watcher tries it with conform",
    "push --send": "needs a ReportPortal; the tests of rca have one",
    "push  ": "needs a ReportPortal; the tests of rca have one",
    "make test >": "runs a project's own tests",
}
"""What is not run here, by a part of the command, and why."""
QUICK = "write-a-plan.md"
"""The page that `make test` tries; `make soak` tries all."""
OWN_TESTS = ("docs/tutorial.md", "docs/extend.md", "docs/reference/cli.md")
COMPARED = {
    "README.md": "packages/interlock-rca/tests/rca_tests/cli/test_demo.py",
    "docs/howto/drive-over-acp.md": "packages/interlock/tests/kernel_tests/cli/test_run_acp.py",
    "docs/howto/run-overnight.md": "packages/interlock/tests/kernel_tests/cli/test_run_limits.py",
    "docs/protocols/checkpoint.md": "tests/docs/test_command_blocks.py",
}
"""The tests that compare what a page shows as printed, by page."""
COMMANDS = [
    (page, [(block, each) for block in list_blocks(page) for each in block.list_commands()])
    for page in PAGES
    if str(page.relative_to(ROOT)) not in OWN_TESTS
]
REPORT = """\
<testsuite name="shop" tests="2" failures="1">
  <testcase classname="cart" name="adds"/>
  <testcase classname="cart" name="totals">
    <failure message="expected 3, got 4">AssertionError: expected 3, got 4</failure>
  </testcase>
</testsuite>
"""
EPIC = "# Epic 3: Boats\nStatus: ready\n\n## Story 3.1: Login\n### Tasks\n- [ ] The form\n"
MINE = """\
circuit: mine
start: write
ends: [done]
steps: {write: {role: author, timeout: 5m}, judge: {role: critic, timeout: 5m}}
rules: [{at: write, to: judge}]
otherwise: done
"""
TRIAGED = """\
{"symptom_category": "product", "severity": "high", "defect_type_hypothesis": "pb001",
 "candidate_repos": ["shop"], "skip_investigation": false, "cascade_suspected": false}
"""
ANSWER = """#!/bin/sh
cat > /dev/null
echo '{"text": "fine", "score": 0.9}'
"""


def lay_out(shell: Shell) -> None:
    """The files that the pages speak of."""
    note = next(each for each in list_blocks(ROOT / "README.md") if each.language == "yaml")
    shell.write("circuits/note.yaml", note.text)
    shell.write("my.yaml", MINE)
    for name in ("write.sh", "send.sh", "my-agent", "judge.py"):
        shell.write(name, ANSWER)
    shell.write("my_agent.py", "print('{}')\n")
    watcher = (
        ROOT / "packages/interlock/tests/kernel_tests/testing/conform/watchers/single.py"
    ).read_text(encoding="utf-8")
    shell.write("my_watcher.py", watcher)
    shell.write("my-watcher", f"#!/usr/bin/env python\n{watcher}")
    for name in ("cases.jsonl", "c.jsonl"):
        shell.write(name, '{"id": "C1", "topic": "login"}\n')
    shell.write("results/junit.xml", REPORT)
    plan = (
        ROOT / "packages/interlock-delivery/tests/delivery_tests/plan/golden/plan.md"
    ).read_text(encoding="utf-8")
    shell.write("plan.md", plan)
    shell.write("epic.md", EPIC)
    shell.write("boats.md", EPIC)
    shell.write("transcript.txt", "AUDIT_PASSED: T-7\n\nVerification Results:\n- pytest: 12 pass\n")
    shell.write("comments.jsonl", '{"id": 1, "author": "ann", "body": "/approve"}\n')
    shell.write("answer.json", TRIAGED)
    for name in ("claude", "codex", "gemini", "opencode"):
        shell.install(name, "#!/bin/sh\nexit 1\n")
    for folder in (shell.folder, shell.folder.parent / "shop", shell.folder.parent / "shop-tests"):
        folder.mkdir(exist_ok=True)
        (folder / "README.md").write_text("A shop.\n", encoding="utf-8")
        for words in (
            ("init", "-q", "-b", "main"),
            ("add", "-A"),
            ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "First"),
            ("tag", "v1.8.2"),
        ):
            subprocess.run(["git", *words], cwd=folder, check=True)


def is_run(command: str) -> bool:
    return not any(part in command for part in NOT_RUN)


def test_there_is_a_command_for_each_reason_not_to_run_one() -> None:
    visible = [
        each for page in PAGES for block in list_blocks(page) for each in block.list_commands()
    ]
    assert [part for part in NOT_RUN if not any(part in each for each in visible)] == []


def test_everything_shown_as_printed_is_compared() -> None:
    visible = {str(page.relative_to(ROOT)) for page in PAGES if list_outputs(page)}
    assert visible - set(OWN_TESTS) == set(COMPARED)
    for page, file in COMPARED.items():
        assert f'find_unprinted("{page}"' in (ROOT / file).read_text(encoding="utf-8")


def test_a_checkpoint_is_written_as_its_page_shows(tmp_path: Path) -> None:
    blocks = list_blocks(ROOT / "docs/protocols/checkpoint.md")
    command = next(each for block in blocks for each in block.list_commands())
    assert find_unprinted("docs/protocols/checkpoint.md", Shell(tmp_path).type(command).out) == []


def list_lines(program: str) -> list[str]:
    """The lines of all pages that call this program, without what is said beside them."""
    lines = [
        line.split("  #")[0].strip()
        for page in PAGES
        for block in list_blocks(page)
        if block.is_shell
        for line in block.text.splitlines()
    ]
    return [line for line in lines if line.startswith(f"{program} ")]


def test_what_make_and_pip_are_asked_for_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = re.findall(r"^([a-z0-9]+):", makefile, re.MULTILINE)
    kernel = ROOT / "packages" / "interlock" / "pyproject.toml"
    project = tomllib.loads(kernel.read_text(encoding="utf-8"))["project"]
    known = {each.parent.name for each in ROOT.glob("packages/*/pyproject.toml")}
    known |= {f"interlock[{extra}]" for extra in project["optional-dependencies"]}
    made = [line.split()[1] for line in list_lines("make") if ">" not in line]
    assert made
    assert set(made) <= set(rules)
    installed = [word for line in list_lines("pip") for word in shlex.split(line)[2:]]
    assert installed
    unknown = [each for each in installed if each not in known and each != "./tides"]
    assert [each for each in unknown if not list(ROOT.glob(f"{each}/pyproject.toml"))] == []


def test_what_git_is_asked_for_works_on_a_repository(tmp_path: Path) -> None:
    """In one that holds the branch which a delivery of plan.md publishes."""
    shell = Shell(tmp_path)
    setup = "git init -q -b main && git config user.name A && git config user.email a@b"
    commits = "git commit -q --allow-empty -m one && git branch interlock/plan"
    assert shell.type(f"{setup} && {commits}").code == 0
    lines = list_lines("git")
    assert lines
    assert [(line, shell.type(line).code) for line in lines] == [(line, 0) for line in lines]


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        (page.name, commands) if page.name == QUICK else again(page.name, commands)
        for page, commands in COMMANDS
        if commands
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_command_of_a_page_can_be_typed(
    tmp_path: Path, page: str, commands: list[tuple[Block, str]]
) -> None:
    shell = Shell(tmp_path)
    lay_out(shell)
    if any("compare" in each or "tune" in each for _, each in commands):
        measured = "interlock calibrate --scenario network-daemon --agent basic --out result.json"
        assert shell.type(measured).code == 0
        for name in ("before.json", "after.json", "claude.json"):
            shell.write(name, (shell.folder / "result.json").read_text(encoding="utf-8"))
    wrong = []
    for block, command in commands:
        if is_run(command):
            typed = shell.type(command)
            if typed.code in (2, None, 127) or "Traceback" in typed.out:
                wrong.append(
                    f"{block.page}:{block.line}: {command}: {typed.code}\n{typed.out[-400:]}"
                )
    assert wrong == [], "\n".join(wrong)
