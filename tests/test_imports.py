"""What is loaded when: a plain run loads no feature, the package itself loads next to nothing."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from interlock.version import __version__
from tests.world.note import NOTE
from tests.world.places import ROOT

LOADED = """
import json, sys
{code}
assert not any("psycopg" in name for name in sys.modules), "a SQLite file needs no PostgreSQL"
telemetry = {"opentelemetry", "prometheus_client"} & {name.split(".")[0] for name in sys.modules}
assert not telemetry, "it is off"
ours = [name for name in sys.modules if name.startswith("interlock")]
print(json.dumps(sorted(ours)))
"""
SCRIPT = """
"*": {write: {answer: {text: Rain.}}, judge: {answer: {score: 0.9}}, send: {answer: {}}}
"""
RUN = """
from interlock.cli.app import main
sys.argv = ["interlock", "run", "note", "--cases", "cases.jsonl", "--agent", "script:crew.yaml"]
try:
    main()
except SystemExit as left:
    assert left.code == 4, left.code  # it waits for a person
"""
PYTHON = """
import interlock
with interlock.Project(".") as project:
    run = project.start("note", [{"id": "C1", "topic": "rain"}], agents="script:crew.yaml")
    assert run.wait(60).status == "waiting"
"""


def loaded(code: str, folder: Path) -> list[str]:
    """Our modules that a program has loaded when it is over."""
    found = subprocess.run(
        [sys.executable, "-c", LOADED.replace("{code}", code)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    names: list[str] = json.loads(found.stdout.splitlines()[-1])
    return names


@pytest.mark.parametrize("code", [RUN, PYTHON], ids=["shell", "python"])
def test_a_plain_run_loads_no_feature(code: str, tmp_path: Path) -> None:
    (tmp_path / "circuits").mkdir()
    (tmp_path / "circuits" / "note.yaml").write_text(NOTE)
    (tmp_path / "cases.jsonl").write_text('{"id": "C1", "topic": "rain"}\n')
    (tmp_path / "crew.yaml").write_text(SCRIPT)
    names = loaded(code, tmp_path)
    assert "interlock.runtime.loop" in names
    assert [name for name in names if name.startswith("interlock_")] == []


def test_the_package_itself_loads_next_to_nothing(tmp_path: Path) -> None:
    assert len(loaded("import interlock", tmp_path)) < 15
    assert len(loaded("import interlock.testing", tmp_path)) < 15


def test_every_name_is_there_and_nothing_else_is(tmp_path: Path) -> None:
    code = "import interlock\nassert all(getattr(interlock, name) for name in interlock.__all__)"
    assert loaded(code, tmp_path)
    with pytest.raises(AssertionError, match="has no attribute 'nonsense'"):
        loaded("import interlock\ninterlock.nonsense", tmp_path)


@pytest.mark.parametrize("package", sorted((ROOT / "packages").iterdir()), ids=lambda p: p.name)
def test_every_imported_package_is_declared(package: Path) -> None:
    declared = list_declared(package.name) | {package.name}
    distributions = packages_distributions()
    for file in sorted((package / "src").rglob("*.py")):
        for name in list_imported_packages(file) - sys.stdlib_module_names:
            found = distributions.get(name, [name])  # an editable install lists no files
            names = {each.lower().replace("_", "-") for each in found}
            assert names & declared, f"{file} imports {name}"


def list_declared(package: str) -> set[str]:
    """Return what a package requires, and what the packages of the workspace bring with them."""
    text = (ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    requirements = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    found = {
        name[0].lower()
        for group in requirements
        for each in group
        if (name := re.match(r"[\w-]+", each))
    }
    ours = {each for each in found if each.startswith("interlock") and each != package}
    if package != "interlock":  # its extra `all` names every other package
        for each in ours:
            found |= list_declared(each)
    return found


def list_imported_packages(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_all_packages_have_one_version() -> None:
    files = sorted((ROOT / "packages").glob("*/pyproject.toml"))
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    assert {project["version"] for project in projects} == {__version__}
    pins = [each for project in projects for each in project["dependencies"] if "==" in each]
    assert pins
    assert {pin.partition("==")[2] for pin in pins} == {__version__}
