"""A GitLab for tests: a real HTTP server in a thread, with notes of a merge request and faults."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.world.http_server import serve_http

TOKEN = "glpat-of-the-tests"
PROJECT = "harbour/boats"
OWN = 7
LONGEST_NOTE = 1_000_000


class Gitlab:
    """The notes of merge request 1 and the faults. Change them freely while the server runs."""

    def __init__(self) -> None:
        self.url = ""
        self.notes: list[dict[str, Any]] = []
        self.now = 1_790_000_000
        self.fault: tuple[str, int] | None = None
        """A part of a path, and the status that it is answered with."""
        self.log: list[tuple[str, str, int]] = []

    def add(self, body: str, author: int = OWN) -> dict[str, Any]:
        self.now += 1
        at = datetime.fromtimestamp(self.now, UTC).isoformat()
        person = {"id": author, "username": f"user{author}"}
        note = {"id": 100 + len(self.notes), "body": body, "author": person, "system": False}
        note |= {"created_at": at, "updated_at": at}
        self.notes.append(note)
        return note

    def edit(self, note: dict[str, Any], body: str) -> None:
        self.now += 1
        at = datetime.fromtimestamp(self.now, UTC).isoformat()
        note |= {"body": body, "updated_at": at}

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = urlsplit(path)
        if parts.path == "/api/v4/user":
            return 200, {"id": OWN, "username": f"user{OWN}"}
        found = re.fullmatch(
            r"/api/v4/projects/([^/]+)/merge_requests/1/notes(?:/(\d+))?", parts.path
        )
        if found is None or unquote(found[1]) != PROJECT:
            return 404, {"message": "404 Not found"}
        if len(body.get("body", "")) > LONGEST_NOTE:
            return 400, {"message": "body is too long"}
        if method == "POST":
            return 201, self.add(body["body"])
        if method == "PUT":
            note = next(each for each in self.notes if str(each["id"]) == found[2])
            if note["author"]["id"] != OWN:
                return 403, {"message": "403 Forbidden"}
            self.edit(note, body["body"])
            return 200, note
        query = {name: int(values[0]) for name, values in parse_qs(parts.query).items()}
        size, page = min(query.get("per_page", 20), 100), query.get("page", 1)
        newest_first = self.notes[::-1]
        return 200, newest_first[(page - 1) * size : page * size]


class _Handler(BaseHTTPRequestHandler):
    gitlab: Gitlab
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault = self.gitlab.fault
        status, answer = 401, {"message": "401 Unauthorized"}
        if fault is not None and fault[0] in self.path:
            status, answer = fault[1], {"message": f"Refused, {TOKEN}"}
        elif self.headers.get("PRIVATE-TOKEN") == TOKEN:
            body = json.loads(raw) if raw else {}
            status, answer = self.gitlab.answer(self.command, self.path, body)
        self.gitlab.log.append((self.command, self.path, status))
        content = json.dumps(answer).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def a_gitlab() -> Iterator[Gitlab]:
    """A running server; it ends with the block."""
    gitlab = Gitlab()
    with serve_http(_Handler, gitlab=gitlab) as url:
        gitlab.url = f"{url}/api/v4"
        yield gitlab
