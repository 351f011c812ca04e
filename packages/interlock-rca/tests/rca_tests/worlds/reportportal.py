"""A ReportPortal for tests: a real HTTP server in a thread, with faults on order.

Answers in the shapes of the real one, checks the token, keeps what is written. A fault is laid on a
part of a path and met by as many requests as wanted; `changes` alters the content between requests.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from interlock_rca.sources.reportportal.client import PortalAddress
from tests.world.http_server import serve_http

TOKEN = "key_of_the_tests"
PROJECT = "harbour"
LAUNCH_ID = 7001
LAUNCH_UUID = "3e0b6a0e-58c5-4e3c-9f0b-0f7a8f1d2c11"
STOCK = {
    "pb": "PRODUCT_BUG",
    "ab": "AUTOMATION_BUG",
    "si": "SYSTEM_ISSUE",
    "nd": "NO_DEFECT",
    "ti": "TO_INVESTIGATE",
}


class Fault:
    """What a request meets instead of an answer."""

    def __init__(self, kind: str, part: str, times: int, headers: dict[str, str]) -> None:
        self.kind = kind
        self.part = part
        self.times = times
        self.headers = headers


class Portal:
    """The content and the faults. Change them freely while the server runs."""

    def __init__(self) -> None:
        self.launch = a_launch()
        self.items: dict[int, dict[str, Any]] = {}
        self.logs: dict[int, list[dict[str, Any]]] = {}
        self.sub_types = stock_types()
        self.lists = {"item", "item/v2", "log", "log/nested"}
        self.page_limit = 10_000
        self.requests: list[str] = []
        self.written: list[dict[str, Any]] = []
        self.changes: Callable[[str], None] = lambda path: None
        self.url = ""
        self.stopped = threading.Event()
        self._faults: list[Fault] = []

    @property
    def address(self) -> PortalAddress:
        return PortalAddress(self.url, PROJECT, TOKEN)

    def fault(self, kind: str, part: str = "", times: int = 1, **headers: str) -> None:
        """`kind` is a status, or: slow, broken (the connection ends in the body), half (the JSON
        does), page (a web page comes), odd (other JSON comes)."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._faults.append(Fault(kind, part, times, named))

    def due(self, path: str) -> Fault | None:
        for fault in self._faults:
            if fault.times and fault.part in path:
                fault.times -= 1
                return fault
        return None

    def add(self, item: dict[str, Any], *logs: tuple[str, str]) -> None:
        self.items[item["id"]] = item
        self.logs[item["id"]] = [
            a_log(item["id"] * 100 + count, item["id"], level, message)
            for count, (level, message) in enumerate(logs)
        ]

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        here = f"/api/v1/{PROJECT}"
        if path in (f"{here}/launch/{LAUNCH_ID}", f"{here}/launch/uuid/{LAUNCH_UUID}"):
            return 200, self.launch
        if path == f"/api/v1/project/{PROJECT}":
            return 200, {"projectName": PROJECT, "configuration": {"subTypes": self.sub_types}}
        if path == "/api/users":
            return 200, {"id": 1, "userId": "mo", "fullName": "Mo Example"}
        rest = path.removeprefix(f"{here}/")
        if rest in self.lists and rest.startswith("item"):
            return 200, self._page(self._failed(query), query)
        if rest == "log" and "log" in self.lists:
            return 200, self._page(self.logs.get(int(query["filter.eq.item"]), []), query)
        if rest.startswith("log/nested/") and "log/nested" in self.lists:
            return 200, self._page(self.logs.get(int(rest.rpartition("/")[2]), []), query)
        found = self.items.get(int(rest.removeprefix("item/"))) if _is_item(rest) else None
        return (200, found) if found else (404, {"errorCode": 40401, "message": f"No {path}."})

    def _failed(self, query: dict[str, str]) -> list[dict[str, Any]]:
        launch = query.get("filter.eq.launchId") or query.get("launchId")
        status = query.get("filter.eq.status")
        return [
            item
            for item in self.items.values()
            if str(item["launchId"]) == launch and item["status"] == status
        ]

    def _page(self, rows: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
        size = min(int(query.get("page.size", "20")), self.page_limit)
        number = int(query.get("page.page", "1"))
        newest_first = query.get("page.sort", "").endswith("DESC")
        rows = sorted(rows, key=lambda row: row["id"], reverse=newest_first)
        pages = -(-len(rows) // size)
        return {
            "content": rows[(number - 1) * size : number * size],
            "page": {
                "number": number,
                "size": size,
                "totalElements": len(rows),
                "totalPages": pages,
            },
        }

    def write(self, body: dict[str, Any]) -> tuple[int, Any]:
        """A bulk change: refused as a whole if one item has no issue that could change."""
        unknown = [each["testItemId"] for each in body["issues"] if not self._has_issue(each)]
        if unknown:
            return 400, {"errorCode": 40022, "message": f"Items {unknown} have no issue."}
        for each in body["issues"]:
            self.written.append(each)
            self.items[each["testItemId"]]["issue"] = dict(each["issue"])
        return 200, [each["issue"] for each in body["issues"]]

    def _has_issue(self, change: dict[str, Any]) -> bool:
        return bool(self.items.get(change["testItemId"], {}).get("issue"))


def a_launch(**news: Any) -> dict[str, Any]:
    return {
        "id": LAUNCH_ID,
        "uuid": LAUNCH_UUID,
        "name": "nightly",
        "number": 12,
        "status": "FAILED",
        "startTime": 1_760_000_000_000,
        "endTime": 1_760_000_360_500,
        "statistics": {"executions": {"total": 9, "failed": 2, "passed": 6, "skipped": 1}},
        "attributes": [
            {"key": "build", "value": "2.14.0"},
            {"key": None, "value": "night"},
            {"key": "branch", "value": "release-2.14"},
        ],
        **news,
    }


def an_item(item_id: int, name: str, **news: Any) -> dict[str, Any]:
    """A failed step, to be investigated, with no parent."""
    return {
        "id": item_id,
        "uuid": f"00000000-0000-4000-8000-{item_id:012d}",
        "name": name,
        "type": "STEP",
        "status": "FAILED",
        "startTime": 1_760_000_001_000,
        "endTime": 1_760_000_002_000,
        "hasChildren": False,
        "hasStats": True,
        "launchId": LAUNCH_ID,
        "path": str(item_id),
        "attributes": [],
        "statistics": {"executions": {"total": 1, "failed": 1}},
        "issue": {"issueType": "ti001", "autoAnalyzed": False, "externalSystemIssues": []},
        **news,
    }


def a_log(log_id: int, item_id: int, level: str, message: str) -> dict[str, Any]:
    seconds, part = divmod(log_id % 100_000, 1000)
    return {
        "id": log_id,
        "itemId": item_id,
        "time": f"2025-10-09T08:53:{seconds % 60:02d}.{part:03d}Z",
        "level": level,
        "message": message,
    }


def stock_types() -> dict[str, list[dict[str, Any]]]:
    return {
        group: [a_type(number, f"{letters}001", letters.upper(), group)]
        for number, (letters, group) in enumerate(STOCK.items(), 1)
    }


def a_type(number: int, locator: str, short: str, group: str, long: str = "") -> dict[str, Any]:
    named = long or group.replace("_", " ").title()
    return {
        "id": number,
        "locator": locator,
        "typeRef": group,
        "longName": named,
        "shortName": short,
    }


def _is_item(rest: str) -> bool:
    return rest.startswith("item/") and rest.removeprefix("item/").isdigit()


class _Handler(BaseHTTPRequestHandler):
    portal: Portal

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._handle(lambda: self.portal.answer(parts.path, query))

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._handle(lambda: self.portal.write(body))

    def _handle(self, answer: Callable[[], tuple[int, Any]]) -> None:
        self.portal.requests.append(f"{self.command} {self.path}")
        fault = self.portal.due(self.path)
        if fault:
            self._meet(fault, answer)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, {"errorCode": 4001, "message": "Bad token."})
        else:
            status, body = answer()
            raw = json.dumps(body).encode()
            self.portal.changes(self.path)
            self._write(status, raw, len(raw))

    def _meet(self, fault: Fault, answer: Callable[[], tuple[int, Any]]) -> None:
        if fault.kind == "slow":
            self.portal.stopped.wait(30)
            self.close_connection = True
        elif fault.kind in ("broken", "half"):
            raw = json.dumps(answer()[1]).encode()
            half = raw[: len(raw) // 2]
            self._write(200, half, len(raw) if fault.kind == "broken" else len(half))
            self.close_connection = True
        elif fault.kind == "page":
            self._write(200, b"<html></html>", 13, {"Content-Type": "text/html"})
        elif fault.kind == "odd":
            self._send(200, {"content": 3})
        else:
            result = {"errorCode": 4000, "message": f"Refused, {TOKEN}."}
            self._send(int(fault.kind), result, fault.headers)

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self._write(status, raw, len(raw), headers)

    def _write(
        self, status: int, raw: bytes, length: int, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        output = {"Content-Type": "application/json", "Content-Length": str(length)}
        for name, value in {**output, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def a_portal() -> Iterator[Portal]:
    """A running server; it ends with the block."""
    portal = Portal()
    with serve_http(_Handler, portal=portal) as url:
        portal.url = url
        try:
            yield portal
        finally:
            portal.stopped.set()
