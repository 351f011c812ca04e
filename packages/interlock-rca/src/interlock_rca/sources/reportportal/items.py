"""Read test items, as ReportPortal and the envelope write them, into failures.

Handles both spellings of every field, times in all their forms, and failed items that only sum up
others.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from interlock.system.test_output import TestCounts
from interlock.system.text import LOG_BOUND, clip_text
from interlock.system.time import format_rfc3339
from interlock_rca.records import Failure, Job, Ticket

_LONGEST_ID: Final = 10**18
_FAILED: Final = ("FAILED", "INTERRUPTED", "")
_JOINTS: Final = re.compile(r" / | > |/|\u203a")
_MESSAGE_BOUND: Final = 16 * 1024


class PortalItem(msgspec.Struct, frozen=True, kw_only=True):
    """One test item from either source."""

    item_id: int
    name: str = ""
    type: str = ""
    status: str = ""
    code_ref: str = ""
    description: str = ""
    message: str = ""
    stack: str = ""
    log: str = ""
    started_at: str = ""
    ended_at: str = ""
    launch_id: str = ""
    ancestors: tuple[int, ...] = ()
    """Ids of its containers, outermost first."""
    held_by: tuple[str, ...] = ()
    """Their names, if the server gives them."""
    attributes: dict[str, str] = {}
    has_issue: bool = False
    issue_type: str = ""
    issue_comment: str = ""
    auto_analyzed: bool = False
    tickets: tuple[Ticket, ...] = ()
    has_stats: bool = True
    tally: TestCounts | None = None


def read_items(rows: Iterable[Any]) -> list[PortalItem]:
    """Return the items in these rows, skipping rows without an id. The first of equal ids
    counts."""
    found: dict[int, PortalItem] = {}
    for row in rows:
        item = read_item(row)
        if item is not None:
            found.setdefault(item.item_id, item)
    return list(found.values())


def read_item(row: Any) -> PortalItem | None:
    item_id = read_number(row.get("id")) if isinstance(row, dict) else 0
    if not item_id:
        return None
    issue = row.get("issue")
    issue = issue if isinstance(issue, dict) else {}
    return PortalItem(
        item_id=item_id,
        name=read_text(row, "name"),
        type=read_text(row, "type").upper(),
        status=read_text(row, "status").upper(),
        code_ref=read_text(row, "codeRef", "code_ref"),
        description=read_text(row, "description"),
        message=read_text(row, "error_message", "errorMessage", "message"),
        stack=read_text(row, "stack_trace", "stackTrace", "stack"),
        log=read_text(row, "log"),
        started_at=format_rfc3339(row.get("startTime", row.get("start_time"))),
        ended_at=format_rfc3339(row.get("endTime", row.get("end_time"))),
        launch_id=read_text(row, "launchId", "launch_id"),
        ancestors=_read_ancestors(row, item_id),
        held_by=_read_holders(row),
        attributes=read_attributes(row.get("attributes")),
        has_issue=bool(issue) or bool(read_text(row, "issue_type")),
        issue_type=read_text(issue, "issueType") or read_text(row, "issue_type"),
        issue_comment=read_text(issue, "comment") or read_text(row, "issue_comment"),
        auto_analyzed=(issue.get("autoAnalyzed") or row.get("auto_analyzed")) is True,
        tickets=_read_tickets(issue.get("externalSystemIssues", row.get("external_issues"))),
        has_stats=row.get("hasStats") is not False,
        tally=read_counts(row.get("statistics")),
    )


def filter_own_failures(items: Iterable[PortalItem]) -> tuple[list[PortalItem], list[str]]:
    """Return the items that failed themselves, without containers of failed ones; and notes."""
    failed = [item for item in items if item.status in _FAILED and item.has_stats]
    holders = {ancestor for item in failed for ancestor in item.ancestors}
    own, notes = [], []
    for item in failed:
        if item.item_id in holders:
            continue
        if _is_empty_sum(item):
            notes.append(
                f"{item.type or 'item'} {item.item_id} ({item.name[:80]}) failed, "
                "but none of the tests in it did: not counted"
            )
        else:
            own.append(item)
    return own, notes


def _is_empty_sum(item: PortalItem) -> bool:
    """Return True if it sums up several tests, none of which failed. Only tests have issues."""
    if item.has_issue or item.type == "STEP" or item.tally is None:
        return False
    return item.tally.tests > 1 and not item.tally.failed


def build_failure(
    item: PortalItem, names: Mapping[int, str], launch_id: str, url: str = ""
) -> Failure:
    """Return the item as a failure without an id."""
    held_by = item.held_by or tuple(
        names[ancestor] for ancestor in item.ancestors if names.get(ancestor)
    )
    log, log_cut = clip_text(item.log, LOG_BOUND)
    stack, stack_cut = clip_text(item.stack, LOG_BOUND)
    return Failure(
        id="",
        test_name=item.name,
        class_name=_find_class_name(item),
        message=clip_text(item.message or item.description, _MESSAGE_BOUND)[0],
        stack=stack,
        log=log,
        log_truncated=log_cut or stack_cut,
        launch=launch_id,
        at=item.started_at,
        ended_at=item.ended_at,
        attributes={**item.attributes, **({"item_type": item.type} if item.type else {})},
        job=held_by[0] if held_by else "",
        path=" / ".join(held_by),
        item_id=item.item_id,
        url=url,
        code_ref=item.code_ref,
        issue_type=item.issue_type,
        issue_comment=item.issue_comment,
        auto_analyzed=item.auto_analyzed,
        tickets=item.tickets,
    )


def build_jobs(items: Iterable[PortalItem], failures: Iterable[Failure]) -> tuple[Job, ...]:
    """Return the outermost items as jobs; if they are missing, the jobs that failures name."""
    found = {
        item.name: Job(
            name=item.name,
            item_id=item.item_id,
            status=item.status,
            tally=item.tally or TestCounts(),
            started_at=item.started_at,
            ended_at=item.ended_at,
        )
        for item in items
        if not item.ancestors and item.type != "STEP" and item.name
    }
    for failure in failures:
        if failure.job:
            found.setdefault(failure.job, Job(name=failure.job, status="FAILED"))
    return tuple(found.values())


def read_attributes(value: Any) -> dict[str, str]:
    """Return attributes as one word per key, from a list of pairs or a map. Values without a key
    become `tags`; values of one key are joined."""
    if isinstance(value, dict):
        return {_to_text(key): _to_text(item) for key, item in value.items() if item is not None}
    found: dict[str, list[str]] = {}
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and item.get("value") is not None:
            key = _to_text(item.get("key")) or "tags"
            found.setdefault(key, []).append(_to_text(item["value"]))
    return {key: ", ".join(dict.fromkeys(values)) for key, values in found.items()}


def read_counts(statistics: Any) -> TestCounts | None:
    counts = statistics.get("executions") if isinstance(statistics, dict) else None
    if not isinstance(counts, dict):
        return None
    return TestCounts(
        tests=read_number(counts.get("total")),
        failed=read_number(counts.get("failed")),
        skipped=read_number(counts.get("skipped")),
    )


def read_number(value: Any) -> int:
    """Return an id or a count; 0 if invalid."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value < _LONGEST_ID else 0


def read_text(row: Mapping[str, Any], *keys: str) -> str:
    """Return the first nonempty value of these keys as text."""
    return _to_text(next((row[key] for key in keys if row.get(key) is not None), ""))


def _to_text(value: Any) -> str:
    """Return a text or a number as writable text, without lone surrogates."""
    if not isinstance(value, str | int):
        return ""
    return str(value).encode("utf-8", "replace").decode()


def _read_ancestors(row: Mapping[str, Any], item_id: int) -> tuple[int, ...]:
    path = read_text(row, "path")
    ids = [read_number(part) for part in path.split(".")]
    if len(ids) > 1 and all(ids) and ids[-1] == item_id:
        return tuple(ids[:-1])
    parent = read_number(row.get("parent")) or read_number(row.get("parent_id"))
    return (parent,) if parent else ()


def _read_holders(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = row.get("pathNames")
    paths = names.get("itemPaths") if isinstance(names, dict) else None
    found = [read_text(holder, "name") for holder in paths or () if isinstance(holder, dict)]
    path = read_text(row, "path")
    if not found and any(map(str.isalpha, path)):  # names, where others write numbers
        found = [part.strip() for part in _JOINTS.split(path)]
        found = found[:-1] if found[-1] == read_text(row, "name") else found
    return tuple(filter(None, found))


def _find_class_name(item: PortalItem) -> str:
    """Return the part of the code reference before the test's own name."""
    reference = item.code_ref
    for joint in (".", "::", "#", "/"):
        if reference.endswith(f"{joint}{item.name}"):
            return reference.removesuffix(f"{joint}{item.name}")
    return ""


def _read_tickets(rows: Any) -> tuple[Ticket, ...]:
    return tuple(
        Ticket(ticket_id=read_text(row, "ticketId", "ticket_id"), url=read_text(row, "url"))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and read_text(row, "ticketId", "ticket_id")
    )
