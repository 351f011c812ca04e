"""Send requests to GitHub's REST API, and sort refusals: try later, no permission, or final.

Each request is sent once and never waits: the caller decides when to try again. The token comes
from the environment or a file, and never appears in a message or a repr.
"""

import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from interlock.system.errors import SourceError
from interlock.system.http import (
    HttpClient,
    Params,
    decode_json,
    find_token,
    is_web_page,
    read_error_message,
)
from interlock.system.retry import TransientError, is_transient, read_retry_after

URL: Final = "GITHUB_API_URL"
REPOSITORY: Final = "GITHUB_REPOSITORY"
TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
"""The variables that may hold the token; the first that is set is used."""
KEY_FILE: Final = ".github-token"
PUBLIC: Final = "https://api.github.com"
_REPO: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


class GithubAddress(msgspec.Struct, frozen=True):
    """A repository on a GitHub server, and the token for it."""

    url: str
    repo: str
    token: str

    def __repr__(self) -> str:
        return f"GithubAddress({self.url!r}, {self.repo!r}, token hidden)"


def github_address(
    environ: Mapping[str, str], *, url: str = "", repo: str = "", key_file: Path | None = None
) -> GithubAddress:
    """Return the address from the arguments or the environment; the token also from a file."""
    url = (url or environ.get(URL, "").strip() or PUBLIC).rstrip("/")
    repo = repo or environ.get(REPOSITORY, "").strip()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError(f"{URL} is not a URL: it should begin with https:// or http://.")
    if "@" in parts.netloc:
        raise SourceError(f"{URL} contains a name or password: remove it and set {TOKENS[0]}.")
    if not repo:
        raise SourceError(f"Which repository on GitHub? Set {REPOSITORY}, for example acme/boats.")
    if not _REPO.fullmatch(repo) or repo.rpartition("/")[2] in (".", ".."):
        raise SourceError(f"{repo!r} does not name a repository: write OWNER/NAME.")
    token = find_token("GitHub", environ, TOKENS, KEY_FILE, key_file)
    return GithubAddress(url, repo, token)


AUTH_FAILED: Final = "GITHUB_AUTH_FAILED"
TIMEOUT_S: Final = 15.0
MOST_PAGES: Final = 200
_LARGEST: Final = 32 * 1024 * 1024
_LONGEST_WAIT: Final = 24 * 3600.0
_NEXT: Final = re.compile(r'<([^<>]{1,2000})>\s*;[^,<]{0,200}\brel="?next"?')
_LIMITED: Final = re.compile(r"rate limit|abuse|too many requests", re.IGNORECASE)


class GithubError(SourceError):
    """GitHub refused the request."""

    code: str = "GITHUB_REFUSED"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class GithubAuthError(GithubError):
    """GitHub does not accept the token, or the token lacks a permission."""

    code = AUTH_FAILED

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(f"{AUTH_FAILED}: {message}", status)


class GithubBusyError(GithubError):
    """GitHub cannot answer now; it may later."""

    code = "GITHUB_BUSY"

    def __init__(self, message: str, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(message, status)
        self.wait_s = wait_s
        """Seconds to wait; None if GitHub does not say."""


class GithubResponse(msgspec.Struct, frozen=True):
    """A response. `fresh` is false if nothing has changed since the entity tag."""

    data: Any
    etag: str = ""
    next_url: str = ""
    fresh: bool = True


class GithubRest:
    """Send requests about one repository."""

    def __init__(self, address: GithubAddress, *, timeout_s: float = TIMEOUT_S) -> None:
        self._address = address
        headers = {
            "Authorization": f"Bearer {address.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "interlock",
        }
        self._client = HttpClient(
            address.url,
            headers,
            setting=URL,
            timeout_s=timeout_s,
            largest=_LARGEST,
            error=GithubError,
        )

    @property
    def repo(self) -> str:
        return self._address.repo

    def close(self) -> None:
        self._client.close()

    def get(
        self, path: str, what: str, params: Params | None = None, etag: str = ""
    ) -> GithubResponse:
        return self._send("GET", path, what, params=params, etag=etag)

    def post(self, path: str, what: str, body: Any) -> Any:
        return self._send("POST", path, what, body=body).data

    def patch(self, path: str, what: str, body: Any) -> Any:
        return self._send("PATCH", path, what, body=body).data

    def pages(self, first: GithubResponse, what: str) -> Iterator[GithubResponse]:
        """Yield the first page and all that follow it."""
        yield first
        for _ in range(MOST_PAGES):
            if not first.next_url:
                return
            first = self.get(first.next_url, what)
            yield first
        raise GithubError(f"{what} has more than {MOST_PAGES} pages.")

    def _send(
        self,
        method: str,
        path: str,
        what: str,
        *,
        params: Params | None = None,
        body: Any = None,
        etag: str = "",
    ) -> GithubResponse:
        headers = {"If-None-Match": etag} if etag else {}
        try:
            response, raw = self._client.send(
                method, path, params=params, body=body, headers=headers
            )
            return self._judge(response, raw, what, etag)
        except TransientError as error:
            raise GithubBusyError(f"GitHub {error.reason}.", error.status, error.wait_s) from None

    def _judge(self, response: httpx.Response, raw: bytes, what: str, etag: str) -> GithubResponse:
        if response.status_code == 304 and etag:
            return GithubResponse(None, etag, fresh=False)
        if not response.is_success:
            raise self._describe_refusal(response, raw, what)
        if raw and is_web_page(response):
            # A proxy or a sign-in page may be temporary, so another try is worthwhile.
            raise GithubBusyError(
                f"A web page came back for {what}, not data: is {URL} the address of an API?"
            )
        data = decode_json(raw) if raw else None
        return GithubResponse(data, response.headers.get("etag", ""), self._find_next(response))

    def _find_next(self, response: httpx.Response) -> str:
        """Return the next page's URL; raise GithubError if another host would see the token."""
        found = _NEXT.search(response.headers.get("link", ""))
        if not found:
            return ""
        url = str(response.request.url.join(found[1]))
        if urlsplit(url)[:2] != urlsplit(self._address.url)[:2]:
            raise GithubError(f"GitHub's next page is on another host: check {URL}.")
        return url

    def _describe_refusal(self, response: httpx.Response, raw: bytes, what: str) -> GithubError:
        status, repo = response.status_code, self._address.repo
        message = read_error_message(raw, self._address.token)
        if status in (403, 429) and _is_limited(response, message):
            return GithubBusyError("GitHub's rate limit is reached.", status, _find_wait(response))
        if is_transient(status):
            return GithubBusyError(f"GitHub answered {status}.", status, _find_wait(response))
        reason = message or "no reason given"
        if status == 401:
            return GithubAuthError(f"make a new token and set {TOKENS[0]} to it.", status)
        if status == 403:
            return GithubAuthError(
                f"the token may not use {what} in {repo} ({reason}); grant it that permission.",
                status,
            )
        if response.is_redirect:
            return GithubError(f"{repo} has moved: set {REPOSITORY} to its new name.", status)
        if status in (404, 410):
            return GithubError(
                f"There is no {what} in {repo}, or the token may not see it ({status}): "
                f"check {REPOSITORY} and {URL}.",
                status,
            )
        return GithubError(f"GitHub refuses {what} ({status}): {reason}", status)


def _is_limited(response: httpx.Response, message: str) -> bool:
    asks_to_wait = "retry-after" in response.headers
    return _is_spent(response) or asks_to_wait or bool(_LIMITED.search(message))


def _is_spent(response: httpx.Response) -> bool:
    remaining: str = response.headers.get("x-ratelimit-remaining", "")
    return remaining.strip() == "0"


def _find_wait(response: httpx.Response) -> float | None:
    """Return the seconds GitHub asks to wait, or those until its limit is lifted by its own
    clock."""
    wait = read_retry_after(response.headers)
    reset = response.headers.get("x-ratelimit-reset", "").strip()
    if wait is None and _is_spent(response) and re.fullmatch("[0-9]{1,11}", reset):
        try:
            now = parsedate_to_datetime(response.headers["date"]).timestamp()
        except (ValueError, TypeError, KeyError, OverflowError):
            return None
        wait = max(1.0, float(reset) - now + 1)
    return None if wait is None else min(wait, _LONGEST_WAIT)
