"""Reads the JUnit XML of the small world, as simply as can be."""

from pathlib import Path
from xml.etree import ElementTree

import msgspec


class Result(msgspec.Struct, frozen=True):
    name: str
    status: str
    type: str
    message: str
    text: str
    log: str


def read_results(folder: Path) -> list[Result]:
    """Every execution of a test in that folder."""
    return [
        _result(case)
        for path in sorted(folder.glob("*.xml"))
        for case in ElementTree.parse(path).getroot().iter("testcase")
    ]


def failing(results: list[Result]) -> set[str]:
    return {result.name for result in results if result.status != "passed"}


def _result(case: ElementTree.Element) -> Result:
    name = f"{case.attrib['classname']}.{case.attrib['name']}"
    log = case.findtext("system-out") or ""
    for tag in ("failure", "error"):
        found = case.find(tag)
        if found is not None:
            output = found.attrib
            return Result(name, tag, output["type"], output["message"], found.text or "", log)
    return Result(name, "passed", "", "", "", log)
