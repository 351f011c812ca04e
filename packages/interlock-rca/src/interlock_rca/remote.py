"""The client of uploads: send results to a server, and wait for its report."""

import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from interlock.system.errors import SourceError, UsageError
from interlock.system.http import find_token, format_short
from interlock_rca.ci_run import detect_provider, identify_run, name_attempt
from interlock_rca.sources.read import find_entries
from interlock_rca.sources.reportportal.client import parse_launch_word

TOKEN: Final = "INTERLOCK_TOKEN"  # noqa: S105 - a variable's name
_TIMEOUT: Final = 60.0
_POLL: Final = 1.0
_PATIENCE: Final = 5
"""The most attempts when a server is unreachable or busy."""


class RemoteReport(msgspec.Struct, frozen=True, kw_only=True):
    """The server's record of an upload."""

    id: str
    state: str
    address: str
    status: str = ""
    sentence: str = ""
    suite_id: int = 0
    verdict: str = ""
    failures: int = 0
    causes: int = 0
    summary: tuple[str, ...] = ()


def send_results(
    server: str,
    sources: Sequence[str],
    suite: str,
    token_file: Path | None,
    announce: Callable[[str], None],
) -> RemoteReport:
    """Send the sources' results, wait for the analysis and return its report; raise SourceError if
    it fails. `announce` gets the report's address at once."""
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise UsageError(f"--server {server[:200]!r}: write https://HOST or http://HOST:PORT")
    headers = {}
    if token_file is not None or os.environ.get(TOKEN, "").strip():
        token = find_token("Interlock", os.environ, (TOKEN,), "", token_file)
        headers["Authorization"] = f"Bearer {token}"
    with httpx.Client(base_url=server, headers=headers, timeout=_TIMEOUT) as client:
        query = {"suite": suite[:200], "run": _name_run(os.environ)[:200]}
        with tempfile.TemporaryFile() as body:
            kind = _pack(sources, body)
            sent = _ask(client, "POST", "/api/v1/reports", kind, body, query)
        announce(sent.address)
        while sent.state not in ("done", "failed"):
            time.sleep(_POLL)
            sent = _ask(client, "GET", f"/api/v1/reports/{sent.id}")
        return sent


def _name_run(environ: Mapping[str, str]) -> str:
    """Return the CI run and attempt that this process is part of; empty outside of CI."""
    return name_attempt(identify_run(environ).run) if detect_provider(environ) else ""


def _pack(sources: Sequence[str], body: BinaryIO) -> str:
    """Write one source as it is, or several as a zip; return the content type."""
    if rp := next((word for word in sources if parse_launch_word(word)), ""):
        raise UsageError(f"{rp} is on a server itself: --server takes files, folders and zips")
    if len(sources) == 1 and Path(sources[0]).is_file():
        content = Path(sources[0]).read_bytes()
        body.write(content)
        return "application/zip" if content.startswith(b"PK") else "application/xml"
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, word in enumerate(sources):
            for entry in find_entries(word)[0]:
                name = entry.label.removeprefix(word).lstrip("/!") or entry.name
                with entry.open() as stream:
                    archive.writestr(f"{number}/{name}", stream.read())
        if not archive.namelist():
            raise SourceError("No report and no log was found to send.")
    return "application/zip"


def _ask(
    client: httpx.Client,
    method: str,
    path: str,
    kind: str = "",
    body: BinaryIO | None = None,
    query: Mapping[str, str] | None = None,
) -> RemoteReport:
    """Send a request, and repeat it where that may help: sending the same results twice gives one
    report."""
    headers = {"Content-Type": kind} if kind else {}
    for attempt in range(_PATIENCE + 1):
        if body is not None:
            body.seek(0)
        wait = float(2**attempt)
        try:
            found = client.request(method, path, content=body, headers=headers, params=query)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            problem = f"{client.base_url} cannot be reached ({format_short(error)})"
        else:
            if found.status_code < 300:
                return _decode(found)
            problem = f"{client.base_url} answers: {_read_problem(found)}"
            if found.status_code not in (429, 502, 503, 504):
                raise SourceError(problem)
            given = found.headers.get("retry-after", "")
            wait = min(60.0, float(given)) if given.isdecimal() else wait
        if attempt < _PATIENCE:
            time.sleep(wait)
    raise SourceError(f"{problem}; tried {_PATIENCE + 1} times")


def _decode(found: httpx.Response) -> RemoteReport:
    try:
        return msgspec.json.decode(found.content, type=RemoteReport)
    except msgspec.DecodeError:
        raise SourceError(
            f"{found.url.host} is no Interlock server, or an older one: it does not say what "
            "became of the results"
        ) from None


def _read_problem(found: httpx.Response) -> str:
    try:
        problem: Any = msgspec.json.decode(found.content, type=dict[str, Any]).get("error")
    except msgspec.DecodeError:
        problem = None
    return format_short(problem) if problem else f"HTTP {found.status_code}"
