"""Play scenarios, several at a time, each with a watcher and a workspace of its own.

Nothing is left running or lying about. Results are for machines: one record, or JUnit XML that no
output of a watcher can break.
"""

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from interlock.system.errors import SourceError
from interlock.testing.conform.scenarios import ConformScenario
from interlock.testing.conform.stage import (
    FailedError,
    Outcome,
    Patience,
    ScenarioResult,
    SkippedError,
    Stage,
    Watcher,
)
from interlock.testing.conform.workspace import ScratchWorkspace


class ConformKit(msgspec.Struct, frozen=True):
    """A command, and how it is tested."""

    command: tuple[str, ...]
    patience: Patience
    jobs: int = 4
    keep: Path | None = None

    def play(self, scenarios: Sequence[ConformScenario]) -> list[ScenarioResult]:
        """Play the scenarios and return all verdicts, in the table's order."""
        argv = _resolve_command(self.command)
        stop = threading.Event()
        with _open_folder(self.keep) as folder, ThreadPoolExecutor(self.jobs) as pool:
            try:
                playing = [
                    pool.submit(self._play, scenario, argv, folder / scenario.name, stop)
                    for scenario in scenarios
                ]
                return [future.result() for future in playing]
            except BaseException:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _play(
        self, scenario: ConformScenario, argv: Sequence[str], folder: Path, stop: threading.Event
    ) -> ScenarioResult:
        workspace = folder / "workspace"
        workspace.mkdir(parents=True)

        def start(made: ScratchWorkspace) -> Watcher:
            return Watcher(
                _fill_placeholders(argv, made), workspace, made.root, folder / "watcher.log"
            )

        stage = Stage(workspace, start, self.patience, stop)
        began = time.monotonic()
        try:
            verdict = _judge_scenario(scenario, stage)
        finally:
            stage.stop()
        seconds = round(time.monotonic() - began, 3)
        return msgspec.structs.replace(verdict, notes=tuple(stage.notes), seconds=seconds)


def _judge_scenario(scenario: ConformScenario, stage: Stage) -> ScenarioResult:
    verdict = ScenarioResult(
        scenario=scenario.name, verdict="pass", expected=scenario.checks, seen="", why=scenario.why
    )
    try:
        word, seen = _run_scenario(scenario, stage)
        stage.finish()
    except FailedError as failed:
        word, seen = "fail", failed.seen
        verdict = msgspec.structs.replace(verdict, expected=failed.expected)
    except OSError as error:
        word, seen = "fail", str(error)
        verdict = msgspec.structs.replace(verdict, expected="our folders and files stay in place")
    return msgspec.structs.replace(verdict, verdict=word, seen=seen)


def _run_scenario(scenario: ConformScenario, stage: Stage) -> tuple[Outcome, str]:
    try:
        return "pass", scenario.play(stage)
    except SkippedError as skipped:
        return "skip", str(skipped)


@contextmanager
def _open_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise SourceError(f"{keep} is not empty; name a new folder")
        yield keep.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="interlock-conform-") as name:
        yield Path(name).resolve()


def _resolve_command(command: Sequence[str]) -> list[str]:
    """Return the command with absolute paths, so that it can be started elsewhere."""
    if not command:
        raise SourceError("name the watcher's command after --: interlock conform -- COMMAND")
    program = shutil.which(command[0])
    if program is None:
        raise SourceError(f"there is no command {command[0]!r} to run")
    rest = [str(Path(word).absolute()) if _is_file(word) else word for word in command[1:]]
    return [str(Path(program).absolute()), *rest]


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


def _fill_placeholders(argv: Sequence[str], workspace: ScratchWorkspace) -> list[str]:
    """Replace our own words in braces; other braces are the command's."""
    words: Mapping[str, Path] = {
        "{root}": workspace.root,
        "{workspace}": workspace.folder,
        "{here}": Path.cwd(),
    }
    filled = list(argv)
    for word, path in words.items():
        filled = [argument.replace(word, str(path)) for argument in filled]
    return filled


_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def build_record(command: Sequence[str], verdicts: Sequence[ScenarioResult]) -> dict[str, Any]:
    return {
        "command": list(command),
        "conforms": is_conforming(verdicts),
        **{f"{word}ed": _count_verdicts(verdicts, word) for word in ("pass", "fail")},
        "skipped": _count_verdicts(verdicts, "skip"),
        "scenarios": msgspec.to_builtins(list(verdicts)),
    }


def is_conforming(verdicts: Sequence[ScenarioResult]) -> bool:
    return not _count_verdicts(verdicts, "fail")


def render_junit(command: Sequence[str], verdicts: Sequence[ScenarioResult]) -> bytes:
    suite = ElementTree.Element(
        "testsuite",
        name="interlock conform",
        tests=str(len(verdicts)),
        failures=str(_count_verdicts(verdicts, "fail")),
        errors="0",
        skipped=str(_count_verdicts(verdicts, "skip")),
        time=f"{sum(verdict.seconds for verdict in verdicts):.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(
        properties, "property", name="command", value=_clean_xml(" ".join(command))
    )
    for verdict in verdicts:
        _add_case(suite, verdict)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_case(suite: ElementTree.Element, verdict: ScenarioResult) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname="interlock.conform",
        name=verdict.scenario,
        time=f"{verdict.seconds:.3f}",
    )
    if verdict.verdict == "fail":
        failure = ElementTree.SubElement(case, "failure", message=_clean_xml(verdict.seen))
        failure.text = _clean_xml(
            f"expected: {verdict.expected}\nseen: {verdict.seen}\nwhy it matters: {verdict.why}"
        )
    if verdict.verdict == "skip":
        ElementTree.SubElement(case, "skipped", message=_clean_xml(verdict.seen))
    if verdict.notes:
        ElementTree.SubElement(case, "system-out").text = _clean_xml("\n".join(verdict.notes))


def _count_verdicts(verdicts: Sequence[ScenarioResult], word: str) -> int:
    return sum(verdict.verdict == word for verdict in verdicts)


def _clean_xml(text: str) -> str:
    """Replace characters that XML cannot hold, not even escaped, with a question mark."""
    return _NO_XML.sub("\ufffd", text)
