"""Test runs of four languages, each of which leaves a JUnit report.

Environments are made once for each project below the work folder: a venv, or `node_modules`. Go and
Java run with what is installed on this machine.
"""

import json
import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

SECONDS = 90
_JAR_NAMES = """
junit-platform-console junit-platform-commons junit-platform-engine junit-platform-launcher
junit-platform-reporting junit-platform-suite-api junit-jupiter-api junit-jupiter-engine
junit-jupiter-params junit-vintage-engine junit4 opentest4j opentest4j-reporting-events
apiguardian-api hamcrest picocli assertj-core mockito-core byte-buddy byte-buddy-agent objenesis
commons-lang3 commons-io commons-logging commons-collections4 guava truth
"""
_JARS = _JAR_NAMES.split()
_QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class Project(msgspec.Struct, frozen=True):
    """A public repository, and how its tests are run."""

    repository: str
    language: str
    runner: str
    needs: tuple[str, ...] = ()
    """Packages that the tests need beside what the project itself asks for."""
    flags: tuple[str, ...] = ()
    rev: str = "HEAD"
    """Where mining starts."""

    @property
    def name(self) -> str:
        return self.repository.partition("/")[2]


class RunResult(NamedTuple):
    """A JUnit report, and the names of the tests in it."""

    tree: "ET.ElementTree[ET.Element]"
    red: frozenset[tuple[str, str]]
    green: frozenset[tuple[str, str]]


class RunError(Exception):
    """A test run left no report."""


def run_tests(
    project: Project, work: Path, repo: Path, tests: Sequence[str], out: Path
) -> RunResult:
    """Run the test files in the checkout; raise RunError if that gives no report."""
    out.unlink(missing_ok=True)
    present = [each for each in tests if (repo / each).is_file()]
    if not present:
        raise RunError("the test files are gone")
    try:
        _RUNNERS[project.runner](project, work / "env" / project.name, repo, present, out)
        tree = ET.parse(out)
    except (OSError, subprocess.TimeoutExpired, ET.ParseError, ValueError) as error:
        raise RunError(str(error)) from error
    red, green = set(), set()
    for case in tree.iter("testcase"):
        tags = {child.tag for child in case}
        name = (case.get("classname", ""), case.get("name", ""))
        if tags & {"failure", "error"}:
            red.add(name)
        elif "skipped" not in tags:
            green.add(name)
    return RunResult(tree, frozenset(red), frozenset(green - red))


def prepare(project: Project, work: Path, repo: Path) -> None:
    """Make the project's environment from its checkout, unless it is there."""
    env = work / "env" / project.name
    if env.exists():
        return
    env.mkdir(parents=True)
    if project.runner == "pytest":
        _call(["python3", "-m", "venv", str(env)], env, seconds=120)
        pip = [str(env / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
        _call([*pip, "pytest", str(repo), *project.needs], env, seconds=300)
    elif project.runner in _NODE:
        (env / "package.json").write_bytes((repo / "package.json").read_bytes())
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--force"]
        _call([*npm, "--no-package-lock", *project.needs], env, seconds=400)


def _call(
    words: Sequence[str],
    folder: Path,
    env: Mapping[str, str] | None = None,
    seconds: int = SECONDS,
) -> bytes:
    done = subprocess.run(
        words,
        check=False,
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
    )
    return done.stdout


def _run_pytest(
    project: Project, env: Path, repo: Path, tests: Sequence[str], report: Path
) -> None:
    places = {"PYTHONPATH": f"{repo / 'src'}:{repo}", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [str(env / "bin" / "python"), "-m", "pytest", "-q", "-o", "addopts="]
    words += ["-o", "filterwarnings=", "-p", "no:cacheprovider", *project.flags]
    _call([*words, f"--junitxml={report}", *tests], repo, places)


def _run_node(project: Project, env: Path, repo: Path, tests: Sequence[str], report: Path) -> None:
    modules = repo / "node_modules"
    if not modules.is_symlink():
        modules.symlink_to(env / "node_modules")
    words = [str(report) if word == "REPORT" else word for word in _NODE[project.runner]]
    words = [word.replace("REPORT", str(report)) for word in words]
    program = modules / ".bin" / words[0]
    start = [str(program)] if program.exists() else words[:1]
    settings = {"JEST_JUNIT_OUTPUT_FILE": str(report), "CI": "true", "NODE_ENV": "test"}
    _call([*start, *words[1:], *project.flags, *tests], repo, settings)


_NODE = {
    "mocha": ("mocha", "--reporter", "xunit", "--reporter-option", "output=REPORT"),
    "jest": ("jest", "--reporters=jest-junit", "--coverage=false", "--runTestsByPath"),
    "vitest": ("vitest", "run", "--reporter=junit", "--outputFile=REPORT"),
    "node": ("node", "--test", "--test-reporter=junit", "--test-reporter-destination=REPORT"),
}


def _run_go(project: Project, env: Path, repo: Path, tests: Sequence[str], report: Path) -> None:
    root = repo
    for parent in (repo / tests[0]).parents:
        if (parent / "go.mod").exists():
            root = parent
            break
    folders = sorted({(repo / each).parent for each in tests})
    places = [f"./{folder.relative_to(root)}" for folder in folders if folder.is_relative_to(root)]
    settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GONOSUMDB": "*"}
    printed = _call(["go", "test", "-vet=off", "-json", *project.flags, *places], root, settings)
    ET.ElementTree(_convert_go(printed)).write(report)


def _convert_go(printed: bytes) -> ET.Element:
    """Turn `go test -json` into a report; only the innermost tests that failed count as failed."""
    said: dict[tuple[str, str], list[str]] = {}
    ended: dict[tuple[str, str], str] = {}
    for line in printed.decode("utf-8", "replace").splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        key = (event.get("Package", ""), event.get("Test", ""))
        if event["Action"] == "output":
            said.setdefault(key, []).append(event["Output"])
        elif event["Action"] in ("pass", "fail", "skip"):
            ended[key] = event["Action"]
    suite = ET.Element("testsuite", name="go")
    failed = {key for key, action in ended.items() if action == "fail" and key[1]}
    for (package, test), action in ended.items():
        is_outer = any(each[0] == package and each[1].startswith(f"{test}/") for each in failed)
        if not test or (action == "fail" and is_outer):
            continue
        case = ET.SubElement(suite, "testcase", classname=package, name=test)
        if action == "fail":
            text = "".join(said.get((package, test), []))
            ET.SubElement(case, "failure", message="Failed").text = _clean(text)
        elif action == "skip":
            ET.SubElement(case, "skipped")
    return suite


def _clean(text: str) -> str:
    return "".join(sign for sign in text if sign in "\n\t" or sign >= " ")


def _run_java(project: Project, env: Path, repo: Path, tests: Sequence[str], report: Path) -> None:
    """Compile the tests and what they use; the report is of all their classes."""
    build, reports = env / "build", env / "reports"
    _call(["rm", "-rf", str(build), str(reports)], env)
    build.mkdir()
    for modules in repo.glob("**/module-info.java"):
        modules.unlink()  # everything is on one class path
    roots = list(_find_roots(repo))
    jars = [f"/usr/share/java/{name}.jar" for name in _JARS]
    resources = [str(path) for path in repo.glob("**/src/*/resources") if path.is_dir()]
    path = ":".join([str(build), *resources, *jars])
    words = [
        "javac",
        *(f"-J{flag}" for flag in _QUICK_JAVA),
        "-proc:none",
        "-nowarn",
        "-encoding",
        "UTF-8",
        "-d",
        str(build),
        "-cp",
        path,
    ]
    words += ["-sourcepath", ":".join(map(str, roots)), *(str(repo / each) for each in tests)]
    printed = _call(words, repo)
    classes = [
        str((repo / each).relative_to(root)).removesuffix(".java").replace("/", ".")
        for each in tests
        for root in roots
        if (repo / each).is_relative_to(root)
    ]
    folder = next(iter((repo / tests[0]).parents))
    while folder != repo and not (folder / "src").is_dir():
        folder = folder.parent
    launch = [
        "java",
        *_QUICK_JAVA,
        "-cp",
        path,
        "org.junit.platform.console.ConsoleLauncher",
        "--details=none",
    ]
    launch += [f"--reports-dir={reports}", *(f"--select-class={name}" for name in classes)]
    printed += _call(launch, folder)
    whole = ET.Element("testsuites")
    for file in sorted(reports.glob("*.xml")):
        whole.append(ET.parse(file).getroot())
    if not len(whole):
        raise RunError(printed.decode("utf-8", "replace")[-500:])
    ET.ElementTree(whole).write(report)


def _find_roots(repo: Path) -> Iterator[Path]:
    """Yield the folders below which packages begin."""
    for name in ("main", "test"):
        yield from (each for each in repo.glob(f"**/src/{name}/java") if each.is_dir())
    yield from (each for each in (repo / "java", repo / "javatests") if each.is_dir())


_RUNNERS = {
    "pytest": _run_pytest,
    **dict.fromkeys(_NODE, _run_node),
    "go": _run_go,
    "javac": _run_java,
}
