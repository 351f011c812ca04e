"""Verdicts for machines: one record, or JUnit XML.

Knows both formats and how to keep a watcher's words from breaking them. Refuses to know terminals.
"""

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from interlock.testing.conform.verdict import ScenarioResult

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def record(command: Sequence[str], verdicts: Sequence[ScenarioResult]) -> dict[str, Any]:
    return {
        "command": list(command),
        "conforms": conforms(verdicts),
        **{f"{word}ed": _count(verdicts, word) for word in ("pass", "fail")},
        "skipped": _count(verdicts, "skip"),
        "scenarios": msgspec.to_builtins(list(verdicts)),
    }


def conforms(verdicts: Sequence[ScenarioResult]) -> bool:
    return not _count(verdicts, "fail")


def junit(command: Sequence[str], verdicts: Sequence[ScenarioResult]) -> bytes:
    suite = ElementTree.Element(
        "testsuite",
        name="interlock conform",
        tests=str(len(verdicts)),
        failures=str(_count(verdicts, "fail")),
        errors="0",
        skipped=str(_count(verdicts, "skip")),
        time=f"{sum(each.seconds for each in verdicts):.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="command", value=_xml(" ".join(command)))
    for verdict in verdicts:
        _add(suite, verdict)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add(suite: ElementTree.Element, verdict: ScenarioResult) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname="interlock.conform",
        name=verdict.scenario,
        time=f"{verdict.seconds:.3f}",
    )
    if verdict.verdict == "fail":
        failure = ElementTree.SubElement(case, "failure", message=_xml(verdict.seen))
        failure.text = _xml(
            f"expected: {verdict.expected}\nseen: {verdict.seen}\nwhy it matters: {verdict.why}"
        )
    if verdict.verdict == "skip":
        ElementTree.SubElement(case, "skipped", message=_xml(verdict.seen))
    if verdict.notes:
        ElementTree.SubElement(case, "system-out").text = _xml("\n".join(verdict.notes))


def _count(verdicts: Sequence[ScenarioResult], word: str) -> int:
    return sum(each.verdict == word for each in verdicts)


def _xml(text: str) -> str:
    """Characters that XML cannot hold, not even escaped, are shown as a question mark."""
    return _NO_XML.sub("\ufffd", text)
