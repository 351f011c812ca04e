"""The memory of results on a team's server, over its HTTP API.

It uses the same frames as a folder. Blobs never change, so each is fetched once and kept on this
machine. The token comes from the environment only.
"""

import hashlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from interlock.system.errors import StoreError, UsageError
from interlock.system.http import HttpClient, decode_json, format_short
from interlock.system.retry import RetrySchedule, TransientError, is_transient, read_retry_after
from interlock_history.store import BlobKind, FolderStore, HistoryStore

TOKENS: Final = ("INTERLOCK_STORE_TOKEN", "INTERLOCK_TOKEN")
FOLDER: Final = Path(".interlock") / "history-of-servers"
_SCHEDULE: Final = RetrySchedule((0.5, 2.0, 5.0), longest=30.0)
_TIMEOUT_S: Final = 30.0
_LARGEST: Final = 1 << 28
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class HttpStore(HistoryStore):
    """A memory behind `interlock serve`."""

    def __init__(
        self,
        word: str,
        environ: Mapping[str, str] = os.environ,
        *,
        folder: Path = FOLDER,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(word)
        if "@" in parts.netloc or not parts.hostname:
            raise UsageError(f"name only the server, as https://server/; {TOKENS[0]} has the token")
        url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        token = next((environ[name] for name in TOKENS if environ.get(name)), "")
        if token and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise UsageError(f"{url} would carry the token for everybody to read: use https://")
        own = folder / hashlib.sha256(url.encode()).hexdigest()[:16]
        super().__init__(url, own)
        self._kept = FolderStore(own)
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = HttpClient(
            f"{url}/api/v1/history",
            headers,
            setting="--store",
            timeout_s=_TIMEOUT_S,
            largest=_LARGEST,
            error=StoreError,
        )
        weakref.finalize(self, self._client.close)  # whoever asks the memory has nothing to close

    def _list_keys(self, kind: BlobKind) -> list[str]:
        keys = self._ask_for_field("GET", kind, "keys")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise StoreError(f"{self.name} does not answer as 'interlock serve' does")
        return keys

    def _read_blob(self, kind: BlobKind, key: str) -> bytes | None:
        kept = self._kept.find_blob(kind, key)
        if kept is not None:
            return kept
        raw: bytes | None = self._ask("GET", f"{kind}/{key}", missing=True)
        if raw is None:
            self._add_problem(f"{self._describe(kind, key)} is not there")
            return None
        self._keep(kind, key, raw)
        return raw

    def _create_blob(self, kind: BlobKind, key: str, data: bytes) -> bool:
        is_new = self._ask_for_field("POST", f"{kind}/{key}", "new", data) is True
        if is_new:
            self._keep(kind, key, data)
        else:
            self._kept.drop_blob(kind, key)  # the server may have an earlier time for it
        return is_new

    def _replace_blob(self, kind: BlobKind, key: str, data: bytes) -> None:
        self._keep(kind, key, data)  # the server took the earlier one of the two by itself

    def _remove_blobs(self, kind: BlobKind, keys: Iterable[str]) -> None:
        if any(True for _ in keys):
            raise UsageError(f"forget results of {self.name} on the server itself")

    def _describe(self, kind: BlobKind, key: str) -> str:
        return f"{self.name}: {kind} {key}"

    def _keep(self, kind: BlobKind, key: str, data: bytes) -> None:
        """Keep a copy on this machine; without it, the next process asks again."""
        try:
            self._kept.keep_blob(kind, key, data)
        except OSError:
            return

    def _ask_for_field(self, method: str, path: str, name: str, body: Any = None) -> Any:
        raw = self._ask(method, path, body)
        try:
            found = decode_json(raw)
        except TransientError:
            found = None  # a sign-in page, perhaps
        return found.get(name) if isinstance(found, dict) else None

    def _ask(self, method: str, path: str, body: Any = None, *, missing: bool = False) -> Any:
        """Return the content of an answer, or None if it is missing and may be."""
        failures = 0
        while True:
            try:
                response, raw = self._client.send(method, f"/{path}", body=body)
                status = response.status_code
                if not is_transient(status):
                    break
                wanted = read_retry_after(response.headers)
                error = TransientError(f"answered {status}", status, wanted)
            except TransientError as problem:
                error = problem
            failures += 1
            wait = _SCHEDULE.find_wait(failures, error.wait_s)
            if wait is None:
                raise StoreError(f"the history on {self.name} cannot be used: it {error.reason}")
            self._sleep(wait)
        if status == 404 and missing:
            return None
        if status in (401, 403):
            raise StoreError(
                f"{self.name} refuses this ({_read_error(raw)}): set {TOKENS[0]} to a token with "
                "the scopes read and upload"
            )
        if not response.is_success:
            raise StoreError(f"{self.name} refuses this ({status}): {_read_error(raw)}")
        return raw


def _read_error(raw: bytes) -> str:
    try:
        found = decode_json(raw)
    except TransientError:
        return "no reason given"
    text = found.get("error") if isinstance(found, dict) else None
    return format_short(text) if isinstance(text, str) else "no reason given"
