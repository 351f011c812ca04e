"""A GitHub for tests: a real HTTP server in a thread, with issues, pages, entity tags and faults.

Answers in the shapes of the real one and keeps a log of what was asked. People act on it by its
methods; its clock moves one second with everything that happens.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from interlock.system.github import GithubAddress
from tests.world.http_server import serve_http

TOKEN = "ghp_of_the_tests"
REPO = "harbour/boats"
OWN = "interlock-user"
LONGEST_COMMENT = 65_536
_START = 1_790_000_000


class Github:
    """The content and the faults. Change them freely while the server runs."""

    def __init__(self) -> None:
        self.url = ""
        self.now = _START
        self.issues: list[dict[str, Any]] = []
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.events: dict[int, list[dict[str, Any]]] = {}
        self.labels: list[str] = []
        self.checks: list[dict[str, Any]] = []
        """Of each comment, who reacted how."""
        self.permissions = {"ann": "write", "bob": "admin", "eve": "read", OWN: "admin"}
        self.heeds_since = True
        self.log: list[tuple[str, str, int]] = []
        """Method, path with query, status."""
        self.lost: list[str] = []
        """Parts of paths whose next POST is carried out, but whose answer is lost."""
        self.stopped = threading.Event()
        self._faults: list[tuple[str, str, dict[str, str]]] = []
        self._ids = 1000

    @property
    def address(self) -> GithubAddress:
        return GithubAddress(self.url, REPO, TOKEN)

    def fault(self, kind: str, part: str = "", times: int = 1, **headers: str) -> None:
        """`kind` is a status with perhaps a message behind it, or: slow, half, page, odd."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._faults += [(kind, part, named)] * times

    def due(self, path: str) -> tuple[str, dict[str, str]] | None:
        for index, (kind, part, headers) in enumerate(self._faults):
            if part in path:
                del self._faults[index]
                return kind, headers
        return None

    def asked(self, since: int = 0) -> list[str]:
        return [f"{method} {urlsplit(path).path}" for method, path, _ in self.log[since:]]

    def tick(self) -> str:
        self.now += 1
        return _iso(self.now)

    def opened(self, title: str, body: str, by: str = OWN) -> dict[str, Any]:
        number, at = len(self.issues) + 1, self.tick()
        issue = {
            "number": number,
            "title": title,
            "body": body,
            "user": _user(by),
            "state": "open",
            "labels": [],
            "comments": 0,
            "created_at": at,
            "updated_at": at,
            "html_url": f"https://github.example/{REPO}/issues/{number}",
        }
        self.issues.append(issue)
        self.comments[number], self.events[number] = [], []
        return issue

    def comment(self, number: int, body: str, by: str = "ann", **news: Any) -> dict[str, Any]:
        self._ids += 1
        at = self.tick()
        comment = {
            "id": self._ids,
            "user": _user(by),
            "body": body,
            "created_at": at,
            "updated_at": at,
            "author_association": "MEMBER",
            "performed_via_github_app": None,
            "html_url": f"https://github.example/{REPO}/pull/{number}#issuecomment-{self._ids}",
            **news,
        }
        self.comments[number].append(comment)
        issue = self.issues[number - 1]
        issue |= {"comments": len(self.comments[number]), "updated_at": at}
        return comment

    def edit(self, comment: dict[str, Any], body: str, **news: Any) -> None:
        comment |= {"body": body, "updated_at": self.tick(), **news}

    def label(self, number: int, name: str, by: str = "ann", on: bool = True) -> None:
        at, issue = self.tick(), self.issues[number - 1]
        names = {each["name"] for each in issue["labels"]} - {name} | ({name} if on else set())
        issue |= {"labels": [{"name": each} for each in sorted(names)], "updated_at": at}
        event = {"event": "labeled" if on else "unlabeled", "created_at": at}
        self.events[number].append({**event, "actor": _user(by), "label": {"name": name}})

    def close(self, number: int, by: str = "ann") -> None:
        at = self.tick()
        self.issues[number - 1] |= {"state": "closed", "updated_at": at}
        self.events[number].append({"event": "closed", "actor": _user(by), "created_at": at})

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        here = f"/repos/{REPO}"
        if path == "/user":
            return 200, _user(OWN)
        if path == f"{here}/issues":
            rows = sorted(self.issues, key=lambda each: -each["number"])
            return 200, [
                row for row in rows if query.get("creator") in (None, row["user"]["login"])
            ]
        if path == f"{here}/issues/comments":
            every = [each for rows in self.comments.values() for each in rows]
            newest = sorted(every, key=lambda each: each["updated_at"], reverse=True)
            return 200, self._since(newest, query)
        if found := re.fullmatch(rf"{here}/collaborators/([^/]+)/permission", path):
            role = self.permissions.get(found[1])
            return (200, {"permission": role}) if role else (404, {"message": "Not Found"})
        if found := re.fullmatch(rf"{here}/issues/(\d+)(/comments|/events)?", path):
            number = int(found[1])
            if number > len(self.issues):
                return 404, {"message": "Not Found"}
            if found[2] == "/comments":
                return 200, self._since(self.comments[number], query)
            return 200, self.events[number] if found[2] else self.issues[number - 1]
        return 404, {"message": "Not Found"}

    def _since(self, rows: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
        since = query.get("since", "") if self.heeds_since else ""
        return [row for row in rows if row["updated_at"] >= since]

    def write(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        here = f"/repos/{REPO}"
        if path == f"{here}/issues":
            issue = self.opened(body["title"], body["body"])
            for name in body.get("labels", []):
                self.label(issue["number"], name, OWN)
            return 201, issue
        if path == f"{here}/labels":
            if body["name"] in self.labels:
                return 422, {"message": "Validation Failed"}
            self.labels.append(body["name"])
            return 201, body
        if found := re.fullmatch(rf"{here}/issues/(\d+)/comments", path):
            if len(body["body"]) > LONGEST_COMMENT:
                return 422, {"message": "Body is too long (maximum is 65536 characters)"}
            return 201, self.comment(int(found[1]), body["body"], OWN)
        if path == f"{here}/check-runs":
            output = body["output"]
            if len(output["summary"]) > 65_535 or len(output["annotations"]) > 50:
                return 422, {"message": "Invalid request"}
            self.checks.append(body)
            return 201, {"id": len(self.checks)}
        return 404, {"message": "Not Found"}

    def change(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """What a PATCH does: edits a comment, whoever wrote it."""
        number = int(path.rpartition("/")[2])
        all_comments = (each for comments in self.comments.values() for each in comments)
        found = next((each for each in all_comments if each["id"] == number), None)
        if found is None or "/issues/comments/" not in path:
            return 404, {"message": "Not Found"}
        if len(body["body"]) > LONGEST_COMMENT:
            return 422, {"message": "Body is too long (maximum is 65536 characters)"}
        self.edit(found, body["body"])
        return 200, found


def _user(login: str) -> dict[str, str]:
    return {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Handler(BaseHTTPRequestHandler):
    github: Github
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self._met_fault() or not self._may_enter():
            return
        status, body = self.github.answer(parts.path, query)
        headers: dict[str, str] = {}
        if status == 200 and isinstance(body, list):
            body, headers = self._page(body, parts.path, query)
        raw = json.dumps(body).encode()
        etag = f'W/"{hashlib.sha256(raw + str(headers).encode()).hexdigest()[:32]}"'
        if status == 200 and self.headers.get("If-None-Match") == etag:
            self._write(304, b"", {"ETag": etag})
        else:
            self._write(status, raw, {**headers, "ETag": etag})

    def _page(
        self, rows: list[Any], path: str, query: dict[str, str]
    ) -> tuple[list[Any], dict[str, str]]:
        size, number = min(int(query.get("per_page", "30")), 100), int(query.get("page", "1"))
        visible = rows[(number - 1) * size : number * size]
        if number * size >= len(rows):
            return visible, {}
        more = urlencode({**query, "page": number + 1})
        return visible, {"Link": f'<{self.github.url}{path}?{more}>; rel="next"'}

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._met_fault() and self._may_enter():
            status, answer = self.github.change(self.path, body)
            self._write(status, json.dumps(answer).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._met_fault() or not self._may_enter():
            return
        status, answer = self.github.write(self.path, body)
        lost = next((part for part in self.github.lost if part in self.path), None)
        if lost is not None:
            self.github.lost.remove(lost)
            self.close_connection = True
            return
        self._write(status, json.dumps(answer).encode())

    def _may_enter(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._write(401, b'{"message": "Bad credentials"}')
        return False

    def _met_fault(self) -> bool:
        due = self.github.due(self.path)
        if due is None:
            return False
        kind, headers = due
        if kind == "slow":
            self.github.stopped.wait(30)
            self.close_connection = True
        elif kind == "half":
            self._write(200, b'[{"id": 1')
        elif kind == "page":
            self._write(200, b"<html></html>", {"Content-Type": "text/html"})
        elif kind == "odd":
            self._write(200, b'{"content": 3}')
        else:
            status, _, message = kind.partition(" ")
            result = {"message": f"{message or 'Refused'}, {TOKEN}."}
            self._write(int(status), json.dumps(result).encode(), headers)
        return True

    def _write(self, status: int, raw: bytes, headers: dict[str, str] | None = None) -> None:
        self.github.log.append((self.command, self.path, status))
        self.send_response_only(status)
        fields = {
            "Date": formatdate(self.github.now, usegmt=True),
            "Content-Type": "application/json",
        }
        fields |= {"Content-Length": str(len(raw))} if status != 304 else {}
        for name, value in {**fields, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def a_github() -> Iterator[Github]:
    """A running server; it ends with the block."""
    github = Github()
    with serve_http(_Handler, github=github) as url:
        github.url = url
        try:
            yield github
        finally:
            github.stopped.set()
