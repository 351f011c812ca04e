"""Write findings back to ReportPortal: only differences, each item with its own words.

Formats comments, maps our codes to the project's own defect types, and reads every issue before
writing; links and text of others stay. Items are identified by ReportPortal's id only.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import ndiff
from typing import Any, Final

import msgspec

from interlock_rca.sources.reportportal.client import PROJECT_VARIABLE, URL_VARIABLE, PortalError
from interlock_rca.sources.reportportal.items import read_number, read_text
from interlock_rca.sources.reportportal.project import ReportPortal

_CHUNK: Final = 50
_GONE: Final = "ReportPortal does not have it"
_LONGEST_NAME: Final = 200
_JOINT: Final = "\n\n---\n"
_HEADING: Final = "**Analysis:**\n\n"
"""Begins our part of a comment whose rest somebody else wrote."""
_SIGNED: Final = re.compile(
    r"^Analysis was submitted(?: by [^\n]*)? \(via Interlock\)$", re.MULTILINE
)
_SPOILT: Final = (400, 404, 406, 409, 422)
"""Statuses that refuse a bulk change because of one item in it."""
_MOST_FAULTS: Final = 2
"""After this many unaccepted items in a row, the items are not the problem."""
_COMMIT: Final = re.compile(r"https?://\S+/(?:-/)?commits?/\S+")
_GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "pb": ("PRODUCT_BUG", ("product bug",)),
    "ab": ("AUTOMATION_BUG", ("automation bug",)),
    "au": ("AUTOMATION_BUG", ("automation bug",)),
    "si": ("SYSTEM_ISSUE", ("system issue",)),
    "en": ("SYSTEM_ISSUE", ("environment issue", "environment")),
    "ib": ("SYSTEM_ISSUE", ("infrastructure bug", "infrastructure issue", "infrastructure")),
    "fw": ("SYSTEM_ISSUE", ("firmware issue", "firmware bug", "firmware")),
    "nd": ("NO_DEFECT", ("no defect",)),
    "ti": ("TO_INVESTIGATE", ("to investigate",)),
}
"""By a code's first letters: ReportPortal's group, and names that a project may give its own
type."""


class DefectUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The wanted contents of one item."""

    item_id: int
    defect_type: str
    comment: str
    launch_id: str = ""
    """The launch that the item must belong to, if given."""


class DefectIssue(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an item."""

    issue_type: str = ""
    comment: str = ""


class DefectChange(msgspec.Struct, frozen=True, kw_only=True):
    """One item that differs, before and after."""

    item_id: int
    name: str
    before: DefectIssue
    after: DefectIssue


class PushResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a push; of a dry one, what it would do."""

    dry_run: bool
    changes: tuple[DefectChange, ...] = ()
    unchanged: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    """The items left alone, with reasons."""
    unwritten: tuple[int, ...] = ()
    """Those items that ReportPortal did not accept."""
    notes: tuple[str, ...] = ()


class DefectTypes:
    """Maps our codes to the project's defect types."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = sorted(
            (row for row in rows if read_text(row, "locator")),
            key=lambda row: (read_number(row.get("id")), read_text(row, "locator")),
        )

    def find_locator(self, code: str) -> str:
        """Return the project's code for ours; ours if the project lists none."""
        if not self._rows or any(read_text(row, "locator") == code for row in self._rows):
            return code
        letters = re.sub(r"[0-9]+$", "", code).lower()
        group, names = _GROUPS.get(letters, ("", ()))
        marks = (("shortName", (letters,)), ("longName", names), ("typeRef", (group.lower(),)))
        for key, wanted in marks:
            for row in self._rows:
                if read_text(row, key) and read_text(row, key).lower() in wanted:
                    return read_text(row, "locator")
        return ""


def format_comment(message: str, evidence: Iterable[str] = (), submitted_by: str = "") -> str:
    """Return an item's comment: the finding, suspected commits, and the author."""
    commits = [ref for ref in dict.fromkeys(evidence) if _COMMIT.fullmatch(ref)]
    parts = [message.strip()]
    if commits:
        parts.append("\n".join(("**Suspected commit(s):**", *commits)))
    by = f" by {' '.join(submitted_by.split())}" if submitted_by.strip() else ""
    parts.append(f"Analysis was submitted{by} (via Interlock)")
    return _JOINT.join(parts)


def push_updates(
    portal: ReportPortal, updates: Sequence[DefectUpdate], *, dry_run: bool = True
) -> PushResult:
    """Compare every item with its wanted contents and, unless dry, write the differences."""
    plan = _PushPlan(portal, _read_defect_types(portal))
    last = {update.item_id: update for update in updates}
    for item_id in sorted(last):
        plan.add_update(last[item_id])
    if plan.refused and {why for _, why in plan.refused} == {_GONE} and not plan.known:
        raise PortalError(
            f"ReportPortal has none of these {len(plan.refused)} items in project "
            f"{portal.project}: check {PROJECT_VARIABLE} and {URL_VARIABLE}.",
            404,
        )
    if not dry_run:
        plan.send_all()
    return PushResult(
        dry_run=dry_run,
        changes=tuple(change for change, _ in plan.changes),
        unchanged=tuple(plan.unchanged),
        refused=tuple(sorted(plan.refused)),
        unwritten=tuple(sorted(plan.unwritten)),
        notes=tuple(portal.notes),
    )


def format_change(change: DefectChange) -> list[str]:
    """Return the change as lines for people: `-` for removed, `+` for added."""
    lines = [f"item {change.item_id}: {' '.join(change.name.split())[:_LONGEST_NAME]}"]
    if change.before.issue_type != change.after.issue_type:
        lines.append(f"- type {change.before.issue_type or 'none'}")
        lines.append(f"+ type {change.after.issue_type}")
    before, after = change.before.comment.splitlines(), change.after.comment.splitlines()
    return lines + [line for line in ndiff(before, after) if not line.startswith("?")]


def _read_defect_types(portal: ReportPortal) -> DefectTypes:
    try:
        return DefectTypes(portal.list_defect_types())
    except PortalError as error:
        if error.status not in (403, 404):
            raise
        portal.notes.append("the project's defect types cannot be read: our own codes are sent")
        return DefectTypes(())


_Row = tuple[DefectChange, dict[str, Any]]
"""A change, and the request body for it."""


class _PushPlan:
    def __init__(self, portal: ReportPortal, types: DefectTypes) -> None:
        self.changes: list[_Row] = []
        self.unchanged: list[int] = []
        self.refused: list[tuple[int, str]] = []
        self.unwritten: list[int] = []
        self._written = 0
        self._portal = portal
        self._types = types

    def add_update(self, update: DefectUpdate) -> None:
        problem, item = self._find_item(update)
        if problem or item is None:
            self.refused.append((update.item_id, problem))
            return
        issue = item.get("issue")
        issue = issue if isinstance(issue, dict) else {}
        before = DefectIssue(
            issue_type=read_text(issue, "issueType"), comment=read_text(issue, "comment")
        )
        after = DefectIssue(
            issue_type=self._types.find_locator(update.defect_type),
            comment=_merge_comment(before.comment, update.comment),
        )
        is_same_text = _normalize_text(after.comment) == _normalize_text(before.comment)
        if after.issue_type == before.issue_type and is_same_text:
            self.unchanged.append(update.item_id)
            return
        change = DefectChange(
            item_id=update.item_id, name=read_text(item, "name"), before=before, after=after
        )
        body = {"testItemId": update.item_id, "issue": _build_issue(issue, after)}
        self.changes.append((change, body))

    @property
    def known(self) -> bool:
        """Return True if the project has any of the items."""
        return bool(self.changes or self.unchanged)

    def _find_item(self, update: DefectUpdate) -> tuple[str, dict[str, Any] | None]:
        """Return the item's current contents, or why it is left alone."""
        if not 0 < update.item_id < 2**63:
            return "it is not an item of ReportPortal", None
        if not self._types.find_locator(update.defect_type):
            return f"the project has no defect type for {update.defect_type}", None
        try:
            item = self._portal.get_item(update.item_id)
        except PortalError as error:
            if error.status != 404:
                raise
            return _GONE, None
        launch = read_text(item, "launchId")
        if update.launch_id and launch != update.launch_id:
            return f"it is of launch {launch}, not of {update.launch_id}", None
        if read_text(item, "status") == "PASSED":
            return "it passed", None
        return "", item

    def send_all(self) -> None:
        try:
            for start in range(0, len(self.changes), _CHUNK):
                self._send_chunk(self.changes[start : start + _CHUNK])
        except PortalError as error:
            if not self._written:
                raise
            message = (
                f"{error} Before that, {self._written} of {len(self.changes)} items were changed"
            )
            raise PortalError(f"{message}: push again for the others.", error.status) from None
        self.changes = [row for row in self.changes if row[0].item_id not in self.unwritten]

    def _send_chunk(self, chunk: Sequence[_Row]) -> None:
        try:
            self._portal.update_issues([body for _, body in chunk])
        except PortalError as error:
            may_be_one = error.status in _SPOILT or (error.status >= 500 and len(chunk) > 1)
            if not may_be_one:
                raise
            self._send_singly(chunk)
        else:
            self._written += len(chunk)

    def _send_singly(self, chunk: Sequence[_Row]) -> None:
        """Send items one by one after one of them spoiled a bulk change."""
        faults = 0
        for change, body in chunk:
            try:
                self._portal.update_issues([body])
            except PortalError as error:
                faults = 0 if error.status in _SPOILT else faults + 1
                if error.status in (0, 401, 403) or faults == _MOST_FAULTS:
                    raise
                self.refused.append((change.item_id, str(error)))
                self.unwritten.append(change.item_id)
            else:
                faults, self._written = 0, self._written + 1


def _build_issue(issue: Mapping[str, Any], after: DefectIssue) -> dict[str, Any]:
    """Return the whole issue to write: our changes, and others' links as they are."""
    body: dict[str, Any] = {
        "issueType": after.issue_type,
        "comment": after.comment,
        "autoAnalyzed": False,
        "externalSystemIssues": issue.get("externalSystemIssues") or [],
    }
    if isinstance(issue.get("ignoreAnalyzer"), bool):
        body["ignoreAnalyzer"] = issue["ignoreAnalyzer"]
    return body


def _merge_comment(before: str, ours: str) -> str:
    """Return our comment below any text of others, replacing our older one. Text that is already
    there is not repeated."""
    theirs = _normalize_text(before)
    if f"\n{_strip_signature(_normalize_text(ours))}\n" in f"\n{_strip_signature(theirs)}\n":
        return before
    if _SIGNED.search(theirs.rpartition("\n")[2]):
        theirs = theirs.rpartition(_JOINT + _HEADING)[0]
    return f"{theirs}{_JOINT}{_HEADING}{ours}" if theirs else ours


def _normalize_text(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _strip_signature(text: str) -> str:
    return _SIGNED.sub("(via Interlock)", text)
