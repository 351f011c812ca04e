"""One test case of a JUnit report while it is read, and the failure it becomes.

Knows what the dialects write inside `testcase` and `testsuite`. Refuses to know XML.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from interlock.rca.records import Failure
from interlock.rca.sources.build_facts import harmless_facts
from interlock.rca.sources.telling import telling
from interlock.rca.sources.xml_repair import restored
from interlock.system.text import ClippedText, bounded
from interlock.system.time import after, rfc3339

_MESSAGE_BOUND: Final = 16 * 1024
_ATTACHMENT: Final = re.compile(r"\[\[ATTACHMENT\|([^\]\n]{1,500})\]\]")
_MOST_ATTACHMENTS: Final = 20


class JUnitResult:
    """A `failure` or an `error`."""

    __slots__ = ("kind", "message", "text", "type")

    def __init__(self, kind: str, attributes: Mapping[str, str], text: ClippedText) -> None:
        self.kind = kind
        self.type = attributes.get("type", "")
        self.message = attributes.get("message", "")
        self.text = text


class JUnitCase:
    """A `testcase`."""

    __slots__ = ("attributes", "flaky", "log", "properties", "reruns", "results", "skipped")

    def __init__(self, attributes: Mapping[str, str], log: ClippedText) -> None:
        self.attributes = attributes
        self.results: list[JUnitResult] = []
        self.skipped = False
        self.flaky = False
        self.reruns = 0
        self.log = log
        self.properties: dict[str, str] = {}

    @property
    def test_name(self) -> str:
        return restored(self.attributes.get("name", "").strip())

    @property
    def class_name(self) -> str:
        named = self.attributes.get("classname") or self.attributes.get("class") or ""
        return restored(named.strip())


class JUnitSuite:
    """A `testsuite`, or the file itself for cases that stand in none."""

    __slots__ = ("attributes", "failed", "log", "name", "properties", "skipped", "tests", "waiting")

    def __init__(self, attributes: Mapping[str, str], name: str, log: ClippedText) -> None:
        self.attributes = attributes
        self.name = name
        self.tests = 0
        self.failed = 0
        self.skipped = 0
        self.log = log
        self.properties: dict[str, str] = {}
        self.waiting: list[Failure] = []
        """Failures without a log: the suite's own, which may still come, is theirs too."""


def failure_of(case: JUnitCase, suites: Iterable[JUnitSuite], job: str) -> Failure:
    """The case as a failure; its id is still to be given."""
    held_by = list(suites)
    log = restored(case.log.text()).strip("\n")
    stack, cut = bounded("\n\n".join(filter(None, (_body(each) for each in case.results))))
    at = rfc3339(case.attributes.get("timestamp", ""))
    seconds = _seconds(case.attributes.get("time", ""))
    return Failure(
        id="",
        test_name=case.test_name,
        class_name=case.class_name,
        type=restored(next((each.type for each in case.results if each.type), "")),
        message=_message(case.results, case.test_name),
        stack=stack,
        log=log,
        log_truncated=case.log.truncated or cut,
        at=at or rfc3339(_nearest(case, held_by, "timestamp")),
        ended_at=after(at, seconds) if at else "",
        attributes=_attributes(case, held_by, log),
        job=job,
        path=" / ".join(each.name for each in held_by if each.name),
        file=restored(_nearest(case, held_by, "file") or _nearest(case, held_by, "filepath")),
        line=_number(case.attributes.get("line", "")),
    )


def _message(results: Iterable[JUnitResult], test_name: str) -> str:
    said = (telling(restored(each.message.strip()), _body(each), test_name) for each in results)
    return bounded("\n".join(dict.fromkeys(filter(None, said))), _MESSAGE_BOUND)[0]


def _body(result: JUnitResult) -> str:
    return restored(result.text.text()).strip()


def _attributes(case: JUnitCase, suites: list[JUnitSuite], log: str) -> dict[str, str]:
    found = harmless_facts(case.properties)
    found["result"] = case.results[0].kind
    for name in ("time", "hostname"):
        if value := (case.attributes.get(name) if name == "time" else _nearest(case, suites, name)):
            found[name] = restored(value)[:200]
    if case.reruns:
        found["reruns"] = str(case.reruns)
    attached = list(dict.fromkeys(_ATTACHMENT.findall(log)))[:_MOST_ATTACHMENTS]
    if attached:
        found["attachments"] = "\n".join(attached)
    return found


def _nearest(case: JUnitCase, suites: list[JUnitSuite], name: str) -> str:
    holders = (case.attributes, *(each.attributes for each in reversed(suites)))
    return next((holder[name] for holder in holders if holder.get(name)), "")


def _seconds(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return -1.0


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
