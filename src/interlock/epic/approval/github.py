"""One question by HTTP to GitHub, and what a refusal means: come later, no right, or no.

Knows the token, entity tags, pages and the several ways in which GitHub says that it was asked too
often. Asks once and never waits: who asks decides when to come again. Refuses to know what for.

Where GitHub is and what opens it: the API's address, the repository, the token.

Knows the environment's names and the key file. The token is never shown: not in a message, not in
a repr. Refuses to know HTTP.
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
from interlock.system.http import build_client, find_token, format_short

URL: Final = "GITHUB_API_URL"
REPOSITORY: Final = "GITHUB_REPOSITORY"
TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
"""Names the token goes by; the first that is set counts."""
KEY_FILE: Final = ".github-token"
PUBLIC: Final = "https://api.github.com"
_REPO: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


class GithubAddress(msgspec.Struct, frozen=True):
    """A repository on a GitHub, and the token for it."""

    url: str
    repo: str
    token: str

    def __repr__(self) -> str:
        return f"GithubAddress({self.url!r}, {self.repo!r}, token hidden)"


def github_address(
    environ: Mapping[str, str], *, url: str = "", repo: str = "", key_file: Path | None = None
) -> GithubAddress:
    """The address to use: what is given, else the environment; the token from there or a file."""
    url = (url or environ.get(URL, "").strip() or PUBLIC).rstrip("/")
    repo = repo or environ.get(REPOSITORY, "").strip()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SourceError(f"{URL} is no address: it should begin with https:// or http://.")
    if "@" in parts.netloc:
        raise SourceError(f"{URL} has a name or password in it: take them out, set {TOKENS[0]}.")
    if not repo:
        raise SourceError(f"Which repository on GitHub? Set {REPOSITORY}, for example acme/boats.")
    if not _REPO.fullmatch(repo) or repo.rpartition("/")[2] in (".", ".."):
        raise SourceError(f"{repo!r} names no repository: write OWNER/NAME.")
    token = find_token("GitHub", environ, TOKENS, KEY_FILE, key_file)
    return GithubAddress(url, repo, token)


AUTH_FAILED: Final = "GITHUB_AUTH_FAILED"
TIMEOUT_S: Final = 15.0
MOST_PAGES: Final = 200
_LARGEST: Final = 32 * 1024 * 1024
_LONGEST_WAIT: Final = 24 * 3600.0
_NEXT: Final = re.compile(r'<([^<>]{1,2000})>\s*;[^,<]{0,200}\brel="?next"?')
_LIMITED: Final = re.compile(r"rate limit|abuse|too many requests", re.IGNORECASE)
Params = Mapping[str, str | int]


class GithubError(SourceError):
    """GitHub refused."""

    code: str = "GITHUB_REFUSED"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class GithubAuthError(GithubError):
    """GitHub does not accept the token, or the token has not the right."""

    code = AUTH_FAILED

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(f"{AUTH_FAILED}: {message}", status)


class GithubBusyError(GithubError):
    """GitHub cannot answer now; it may later."""

    code = "GITHUB_BUSY"

    def __init__(self, message: str, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(message, status)
        self.wait_s = wait_s
        """How long to wait, as GitHub says; nothing if it does not say."""


class GithubResponse(msgspec.Struct, frozen=True):
    """What came back. `fresh` is false if nothing has changed since the entity tag."""

    data: Any
    etag: str = ""
    next_url: str = ""
    fresh: bool = True


class GithubRest:
    """The way to one repository."""

    def __init__(self, address: GithubAddress, *, timeout_s: float = TIMEOUT_S) -> None:
        self._address = address
        self._timeout_s = timeout_s
        headers = {
            "Authorization": f"Bearer {address.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "interlock",
        }
        self._client = build_client(address.url, headers, timeout_s, URL)

    @property
    def repo(self) -> str:
        return self._address.repo

    def close(self) -> None:
        self._client.close()

    def get(
        self, path: str, what: str, params: Params | None = None, etag: str = ""
    ) -> GithubResponse:
        return self._ask("GET", path, what, params=params, etag=etag)

    def post(self, path: str, what: str, body: Any) -> Any:
        return self._ask("POST", path, what, body=body).data

    def pages(self, first: GithubResponse, what: str) -> Iterator[GithubResponse]:
        """The first page and all that follow it."""
        yield first
        for _ in range(MOST_PAGES):
            if not first.next_url:
                return
            first = self.get(first.next_url, what)
            yield first
        raise GithubError(f"{what} has more than {MOST_PAGES} pages.")

    def _ask(
        self,
        method: str,
        path: str,
        what: str,
        *,
        params: Params | None = None,
        body: Any = None,
        etag: str = "",
    ) -> GithubResponse:
        url = path if path.startswith("http") else f"{self._address.url}{path}"
        headers = {"If-None-Match": etag} if etag else {}
        content = None if body is None else msgspec.json.encode(body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            with self._client.stream(
                method, url, params=params, content=content, headers=headers
            ) as answer:
                raw = _body(answer)
        except httpx.TimeoutException:
            raise GithubBusyError(f"GitHub did not answer within {self._timeout_s:g} s.") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise GithubBusyError(
                f"The connection to GitHub failed: {format_short(error)}."
            ) from None
        except (httpx.InvalidURL, httpx.HTTPError, UnicodeError) as error:
            raise GithubError(
                f"GitHub cannot be asked: {format_short(error)}. Check {URL}."
            ) from None
        return self._answer(answer, raw, what, etag)

    def _answer(self, answer: httpx.Response, raw: bytes, what: str, etag: str) -> GithubResponse:
        if answer.status_code == 304 and etag:
            return GithubResponse(None, etag, fresh=False)
        if not answer.is_success:
            raise self._refusal(answer, raw, what)
        data = _decoded(answer, raw, what)
        return GithubResponse(data, answer.headers.get("etag", ""), self._next(answer))

    def _next(self, answer: httpx.Response) -> str:
        """The next page, which must be where the token may be sent."""
        found = _NEXT.search(answer.headers.get("link", ""))
        if not found:
            return ""
        url = str(answer.request.url.join(found[1]))
        if urlsplit(url)[:2] != urlsplit(self._address.url)[:2]:
            raise GithubError(f"GitHub's next page is elsewhere: check {URL}.")
        return url

    def _refusal(self, answer: httpx.Response, raw: bytes, what: str) -> GithubError:
        status, said, repo = answer.status_code, self._said(raw), self._address.repo
        if status in (403, 429) and _is_limited(answer, said):
            return GithubBusyError("GitHub was asked too often.", status, _wait(answer))
        if status in (408, 429) or status >= 500:
            return GithubBusyError(f"GitHub answered {status}.", status, _wait(answer))
        if status == 401:
            return GithubAuthError(f"make a new token and set {TOKENS[0]} to it.", status)
        if status == 403:
            told = f"the token may not use {what} in {repo} ({said or 'no reason given'})"
            return GithubAuthError(f"{told}; give it the right to read and write issues.", status)
        if answer.is_redirect:
            return GithubError(f"{repo} has moved: set {REPOSITORY} to its new name.", status)
        if status in (404, 410):
            told = f"There is no {what} in {repo}, or the token may not see it ({status})"
            return GithubError(f"{told}: check {REPOSITORY} and {URL}.", status)
        return GithubError(f"GitHub refuses {what} ({status}): {said or 'no reason given'}", status)

    def _said(self, raw: bytes) -> str:
        try:
            found = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return ""
        message = found.get("message") if isinstance(found, dict) else None
        return format_short(message.replace(self._address.token, "***")) if message else ""


def _body(answer: httpx.Response) -> bytes:
    raw = bytearray()
    for part in answer.iter_bytes():
        raw += part
        if len(raw) > _LARGEST:
            raise GithubError(f"An answer of GitHub has more than {_LARGEST:,} bytes.")
    return bytes(raw)


def _decoded(answer: httpx.Response, raw: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        if "html" in answer.headers.get("content-type", ""):
            raise GithubError(
                f"A web page came back for {what}, not data: is {URL} the address of an API?"
            ) from None
        raise GithubBusyError(f"GitHub's answer for {what} was broken off.") from None


def _is_limited(answer: httpx.Response, said: str) -> bool:
    spent = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
    return spent or "retry-after" in answer.headers or bool(_LIMITED.search(said))


def _wait(answer: httpx.Response) -> float | None:
    """Seconds to wait, as GitHub says: a number, a date, or when the limit is lifted, each
    compared with GitHub's own clock."""
    said = answer.headers.get("retry-after", "").strip()
    reset = answer.headers.get("x-ratelimit-reset", "").strip()
    spent = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
    try:
        if said.isascii() and said.isdigit() and len(said) < 10:
            return min(float(said), _LONGEST_WAIT)
        now = parsedate_to_datetime(answer.headers["date"]).timestamp()
        if said:
            return min(max(0.0, parsedate_to_datetime(said).timestamp() - now), _LONGEST_WAIT)
        if spent and reset.isascii() and reset.isdigit() and len(reset) < 12:
            return min(max(1.0, float(reset) - now + 1), _LONGEST_WAIT)
    except (ValueError, TypeError, KeyError, OverflowError):
        pass
    return None
