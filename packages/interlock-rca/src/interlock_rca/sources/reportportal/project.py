"""A project in ReportPortal: its queries, and the one change that it allows.

Handles both generations of its lists, and pages that change while they are read. `launch` knows
what a launch means.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

from interlock.system.errors import SourceError
from interlock.system.http import Params
from interlock_rca.sources.reportportal.client import (
    TIMEOUT_S,
    PortalAddress,
    PortalClient,
    PortalError,
)
from interlock_rca.sources.reportportal.items import read_number

_PAGE: Final = 200
_LOG_PAGE: Final = 300
_MOST_PAGES: Final = 5_000
_MOST_LOG_PAGES: Final = 4
_MOST_READINGS: Final = 3
_NO_SUCH_LIST: Final = (400, 404, 405, 410)


class ReportPortal:
    """A project in ReportPortal. Close it, or use it in a `with`."""

    def __init__(
        self,
        address: PortalAddress,
        *,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = address.url
        self.project = address.project
        self.notes: list[str] = []
        self._here = f"/api/v1/{quote(address.project, safe='')}"
        self._rest = PortalClient(address, timeout_s=timeout_s, sleep=sleep, clock=clock)

    def __enter__(self) -> "ReportPortal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rest.close()

    def get_launch(self, word: str) -> dict[str, Any]:
        """Return the launch with that id or uuid."""
        by = "" if word.isdigit() else "uuid/"
        return self._get_document(
            f"{self._here}/launch/{by}{quote(word, safe='')}", f"launch {word}"
        )

    def list_items(self, launch_id: int, status: str) -> list[dict[str, Any]]:
        """Return the items of a launch with that status, by the list that this server supports."""
        wanted: dict[str, str | int] = {"filter.eq.status": status, "page.sort": "id,ASC"}
        what = f"the {status.lower()} items of launch {launch_id}"
        try:
            first: Params = {"filter.eq.launchId": launch_id, **wanted}
            return self._list_all(f"{self._here}/item", first, what)
        except PortalError as error:
            if error.status not in _NO_SUCH_LIST:
                raise
        newer: Params = {
            "providerType": "launch",
            "launchId": launch_id,
            "params[launchId]": launch_id,
            **wanted,
        }
        return self._list_all(f"{self._here}/item/v2", newer, what)

    def get_item(self, item_id: int) -> dict[str, Any]:
        return self._get_document(f"{self._here}/item/{item_id}", f"item {item_id}")

    def list_logs(self, item_id: int) -> tuple[list[dict[str, Any]], bool]:
        """Return the newest log rows of an item, and True if there are older ones."""
        what = f"the log of item {item_id}"
        newest: dict[str, str | int] = {"page.sort": "logTime,DESC"}
        try:
            first: Params = {"filter.eq.item": item_id, **newest}
            rows, more = self._list_newest(f"{self._here}/log", first, what)
            if rows:
                return rows, more
        except PortalError as error:
            if error.status not in _NO_SUCH_LIST:
                raise
        nested: Params = {"params[parentId]": item_id, **newest}
        return self._list_newest(f"{self._here}/log/nested/{item_id}", nested, what)

    def list_defect_types(self) -> list[dict[str, Any]]:
        """Return the project's defect types of all groups."""
        project = quote(self.project, safe="")
        try:
            found = self._get_document(f"/api/v1/project/{project}", f"project {self.project}")
            settings = found.get("configuration")
        except PortalError as error:
            if error.status not in (*_NO_SUCH_LIST, 403):
                raise
            settings = self._get_document(f"{self._here}/settings", f"project {self.project}")
        groups = settings.get("subTypes") if isinstance(settings, dict) else None
        rows = groups.values() if isinstance(groups, dict) else ()
        return [
            kind for row in rows if isinstance(row, list) for kind in row if isinstance(kind, dict)
        ]

    def get_user(self) -> str:
        """Return the name of the token's user, or ""."""
        for path in ("/api/users", "/users"):
            try:
                found = self._get_document(path, "the current user")
            except SourceError:
                continue
            name = found.get("fullName") or found.get("userId")
            if isinstance(name, str) and name.strip():
                return name.strip()
        return ""

    def update_issues(self, issues: Sequence[Mapping[str, Any]]) -> None:
        """Change the issues of items in one request."""
        self._rest.request(
            "PUT", f"{self._here}/item", "the changes", body={"issues": list(issues)}
        )

    def _get_document(self, path: str, what: str) -> dict[str, Any]:
        found = self._rest.request("GET", path, what)
        if not isinstance(found, dict):
            raise PortalError(f"ReportPortal's answer for {what} is not an object.")
        return found

    def _list_all(self, path: str, params: Params, what: str) -> list[dict[str, Any]]:
        """Return all rows of a list, each once. A list that changes meanwhile is read again."""
        seen: dict[int, dict[str, Any]] = {}
        for _ in range(_MOST_READINGS):
            rows, totals = self._read_pages(path, params, what)
            if len(totals) <= 1 and len(rows) >= max(totals, default=0):
                return list(rows.values())
            seen |= rows
        self.notes.append(
            f"ReportPortal gave {len(seen)} of {what}, and says there are {max(totals)}: "
            "the launch may still be changing; read it again later"
        )
        return list(seen.values())

    def _read_pages(
        self, path: str, params: Params, what: str
    ) -> tuple[dict[int, dict[str, Any]], set[int]]:
        """Return the rows of all pages by id, and every total that the pages claimed."""
        rows: dict[int, dict[str, Any]] = {}
        totals: set[int] = set()
        for page in range(1, _MOST_PAGES + 1):
            known = len(rows)
            content, about = self._get_page(path, {**params, "page.size": _PAGE}, page, what)
            rows.update(
                {read_number(row["id"]): row for row in content if read_number(row.get("id"))}
            )
            if "totalElements" in about:
                totals.add(read_number(about["totalElements"]))
            pages = read_number(about.get("totalPages"))
            if not content or (page >= pages if pages else len(rows) == known):
                break
        return rows, totals

    def _list_newest(
        self, path: str, params: Params, what: str
    ) -> tuple[list[dict[str, Any]], bool]:
        rows: list[dict[str, Any]] = []
        for page in range(1, _MOST_LOG_PAGES + 1):
            content, about = self._get_page(path, {**params, "page.size": _LOG_PAGE}, page, what)
            rows.extend(content)
            if not content or page >= read_number(about.get("totalPages")):
                return rows, False
        return rows, True

    def _get_page(
        self, path: str, params: Params, page: int, what: str
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        found = self._rest.request("GET", path, what, params={**params, "page.page": page})
        content = found.get("content") if isinstance(found, dict) else None
        if not isinstance(content, list):
            raise PortalError(f"ReportPortal's answer for {what} is not a list.")
        about = found.get("page")
        rows = [row for row in content if isinstance(row, dict)]
        return rows, about if isinstance(about, dict) else {}
