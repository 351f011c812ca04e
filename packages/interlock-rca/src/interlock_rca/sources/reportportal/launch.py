"""Read a ReportPortal launch as ours: its failed tests with their logs.

Chooses the log row that holds the error, and how much of the rest to keep.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock.system.text import ClippedText, clip_text
from interlock.system.time import format_rfc3339
from interlock_rca.records import Failure, Launch
from interlock_rca.sources.build_facts import add_build_facts
from interlock_rca.sources.envelope import FailureNamer
from interlock_rca.sources.reportportal import items as rp_items
from interlock_rca.sources.reportportal.project import ReportPortal

_ERRORS: Final = ("ERROR", "FATAL")
_ERROR_LEVEL: Final = 40_000
_DEEPEST: Final = 3
_MOST_STEPS: Final = 20
_MOST_REFUSALS: Final = 3
_NO_MORE: Final = "further logs were not requested: the failures have none"
_AT_ONCE: Final = 8
_FEW: Final = 50


def read_launch(portal: ReportPortal, word: str) -> tuple[Launch, list[Failure], list[str]]:
    """Return the launch with that id or uuid, its failures and notes."""
    document = portal.get_launch(word)
    number = rp_items.read_number(document.get("id"))
    if not number:
        raise SourceError(f"ReportPortal's answer for launch {word} has no id.")
    launch = _build_launch(document, number, portal)
    items, own, notes = _list_failed(portal, number, launch.tally.failed)
    if launch.status == "IN_PROGRESS":
        notes.append(
            f"launch {number} is still in progress: "
            "analyse it again when it has finished; new failures are added then"
        )
    names = {item.item_id: item.name for item in items}
    logs, ids = _LogReader(portal), FailureNamer()
    silent = [
        rp_items.build_failure(item, names, launch.launch_id, _format_url(launch.url, item))
        for item in own
    ]
    failures = [ids.assign_id(failure) for failure in logs.add_logs(silent)]
    launch = msgspec.structs.replace(launch, jobs=rp_items.build_jobs(items, failures))
    return launch, failures, [*portal.notes, *notes, *logs.notes]


def _list_failed(
    portal: ReportPortal, launch_id: int, expected: int
) -> tuple[list[rp_items.PortalItem], list[rp_items.PortalItem], list[str]]:
    """Return everything that did not pass, the items that failed themselves, and notes.
    ReportPortal counts an interrupted test as failed but lists it apart, so it is asked for where
    some are missing."""
    items = rp_items.read_items(portal.list_items(launch_id, "FAILED"))
    own, notes = rp_items.filter_own_failures(items)
    if len(own) < expected:
        rows = portal.list_items(launch_id, "INTERRUPTED")
        known = {item.item_id for item in items}
        items += [item for item in rp_items.read_items(rows) if item.item_id not in known]
        own, notes = rp_items.filter_own_failures(items)
    return items, own, notes


def _build_launch(document: dict[str, Any], number: int, portal: ReportPortal) -> Launch:
    attributes = rp_items.read_attributes(document.get("attributes"))
    launch = Launch(
        launch_id=str(number),
        name=rp_items.read_text(document, "name"),
        uuid=rp_items.read_text(document, "uuid"),
        number=rp_items.read_number(document.get("number")),
        status=rp_items.read_text(document, "status"),
        started_at=format_rfc3339(document.get("startTime")),
        ended_at=format_rfc3339(document.get("endTime")),
        attributes=attributes,
        url=f"{portal.url}/ui/#{portal.project}/launches/all/{number}",
        project=portal.project,
        tally=rp_items.read_counts(document.get("statistics")) or TestCounts(),
    )
    return add_build_facts(launch, attributes)


def _format_url(launch_url: str, item: rp_items.PortalItem) -> str:
    path = "/".join(str(number) for number in (*item.ancestors, item.item_id))
    return f"{launch_url}/{path}/log"


class _LogReader:
    """Reads the logs of items, and gives up when the server keeps refusing."""

    def __init__(self, portal: ReportPortal) -> None:
        self.notes: list[str] = []
        self._portal = portal
        self._refusals = 0

    def add_logs(self, failures: Sequence[Failure]) -> Iterator[Failure]:
        """Yield the failures with their logs and the errors in them. Many are read concurrently,
        because most of the time is waiting."""
        width = _AT_ONCE if len(failures) > _FEW else 1
        with ThreadPoolExecutor(width) as pool:
            for start in range(0, len(failures), width):
                if self._refusals >= _MOST_REFUSALS:
                    self.notes.append(_NO_MORE)
                    yield from failures[start:]
                    return
                asked = failures[start : start + width]
                yield from map(self._record_answer, asked, pool.map(self._fetch, asked))

    def _fetch(self, failure: Failure) -> Failure | SourceError:
        try:
            rows, truncated = self._fetch_rows(failure.item_id, _DEEPEST)
        except SourceError as error:
            return error
        rows.sort(
            key=lambda row: (format_rfc3339(row.get("time")), rp_items.read_number(row.get("id")))
        )
        return _add_rows(failure, rows, truncated)

    def _record_answer(self, failure: Failure, answer: Failure | SourceError) -> Failure:
        if isinstance(answer, SourceError):
            self._refusals += 1
            self.notes.append(str(answer))
            return failure
        self._refusals = 0
        return answer

    def _fetch_rows(self, item_id: int, depth: int) -> tuple[list[dict[str, Any]], bool]:
        found, truncated = self._portal.list_logs(item_id)
        rows = [row for row in found if isinstance(row.get("message"), str)]
        steps = [
            rp_items.read_number(row.get("id"))
            for row in found
            if "message" not in row and rp_items.read_text(row, "status") in ("FAILED", "")
        ]
        for step in [number for number in steps if number][:_MOST_STEPS] if depth else ():
            inner, cut = self._fetch_rows(step, depth - 1)
            rows.extend(inner)
            truncated = truncated or cut
        return rows, truncated


def _add_rows(failure: Failure, rows: list[dict[str, Any]], truncated: bool) -> Failure:
    log = ClippedText()
    for row in rows:
        level = str(row.get("level") or "").upper()
        log.add(f"{format_rfc3339(row.get('time'))} {level} {row['message']}\n")
    error = _find_error(rows)
    stack, cut = clip_text(error or failure.stack)
    return msgspec.structs.replace(
        failure,
        message=error.partition("\n")[0].strip()[:1000] or failure.message,
        stack=stack,
        log=log.text().rstrip("\n"),
        log_truncated=failure.log_truncated or truncated or log.truncated or cut,
    )


def _find_error(rows: Iterable[dict[str, Any]]) -> str:
    """Return the last error with a stack, as runners write it when a test ends; else the last
    error."""
    errors: list[str] = [row["message"].strip() for row in rows if _is_error(row)]
    with_stack = [error for error in errors if "\n" in error]
    return (with_stack or errors or [""])[-1]


def _is_error(row: dict[str, Any]) -> bool:
    level = row.get("level")
    return level in _ERRORS or (isinstance(level, int) and level >= _ERROR_LEVEL)
