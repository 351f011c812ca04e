"""HTTP to ReportPortal: address, project and token, retries, and a sentence for every refusal.

Understands the forms in which a user names a launch. A request is tried again when the answer is
late, broken or put off; a `Retry-After` is heeded. The token is never shown, neither in a message
nor in a repr, and is sent to the configured server only.
"""

import re
import ssl
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx
import msgspec

from interlock.system.errors import SourceError
from interlock.system.http import build_client, find_token, format_short

URL_VARIABLE: Final = "ASTERISK_RP_URL"
PROJECT_VARIABLE: Final = "ASTERISK_RP_PROJECT"
TOKEN_VARIABLE: Final = "ASTERISK_RP_TOKEN"  # noqa: S105  the variable's name
TOKEN_VARIABLES: Final = (TOKEN_VARIABLE, "ASTERISK_RP_API_KEY")
"""Names it goes by."""
KEY_FILE: Final = ".rp-api-key"
_LAUNCH: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_PLACE: Final = re.compile(r"/?([^/?]+)/launches/[^/?]+/(\d{1,18})(?:[/?]|$)")
_PAGES: Final = ("/ui", "/api/v1", "/api")


class PortalAddress(msgspec.Struct, frozen=True):
    """A project in a ReportPortal, and the token for it."""

    url: str
    project: str
    token: str

    def __repr__(self) -> str:
        return f"Address({self.url!r}, {self.project!r}, token hidden)"


class LaunchReference(msgspec.Struct, frozen=True):
    """What a user wrote for a launch: its id or uuid, and perhaps where it is."""

    launch: str
    project: str = ""
    url: str = ""


def parse_launch_word(word: str) -> LaunchReference | None:
    """`rp:ID`, `rp:UUID`, `rp:PROJECT/ID`, or the address of a launch's page; None for others."""
    if word.startswith("rp:"):
        project, _, launch = word.removeprefix("rp:").rpartition("/")
        if not _LAUNCH.fullmatch(launch) or "/" in project:
            raise SourceError(
                f"{word} does not name a launch: write rp:ID, rp:UUID or rp:PROJECT/ID, "
                "or give the address of the launch's page."
            )
        return LaunchReference(launch, project)
    if not word.startswith(("http://", "https://")):
        return None
    parts = urlsplit(word)
    found = _PLACE.match(unquote(parts.fragment))
    if not found:
        raise SourceError(
            f"{word} is not the address of a ReportPortal launch: "
            "it should end in #PROJECT/launches/all/ID. Or write rp:ID."
        )
    return LaunchReference(
        found[2], found[1], _find_root(f"{parts.scheme}://{parts.netloc}{parts.path}")
    )


def find_address(
    environ: Mapping[str, str],
    *,
    url: str = "",
    project: str = "",
    key_file: Path | None = None,
) -> PortalAddress:
    """The address to use: what is given, else the environment; the token from there or a file."""
    known = environ.get(URL_VARIABLE, "").strip()
    url = _find_root(url or known)
    project = project or environ.get(PROJECT_VARIABLE, "").strip()
    if not url:
        raise SourceError(
            f"Where is ReportPortal? Set {URL_VARIABLE}, for example https://rp.example.org."
        )
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise SourceError(
            f"{URL_VARIABLE} is not a web address: it should begin with https:// or http://."
        )
    if "@" in urlsplit(url).netloc:
        raise SourceError(
            f"{URL_VARIABLE} contains a user name or password: remove them and set "
            f"{TOKEN_VARIABLE}."
        )
    if known and urlsplit(_find_root(known))[:2] != urlsplit(url)[:2]:
        raise SourceError(
            f"The launch is at {url}, but {URL_VARIABLE} is {_find_root(known)}: "
            f"the token is only sent there. Change {URL_VARIABLE} to read from the other."
        )
    if not project:
        raise SourceError(f"Which project of ReportPortal? Set {PROJECT_VARIABLE}.")
    token = find_token("ReportPortal", environ, TOKEN_VARIABLES, KEY_FILE, key_file)
    return PortalAddress(url, project, token)


def _find_root(url: str) -> str:
    """The server's own address, also from that of one of its pages."""
    url = re.split("[?#]", url.strip(), maxsplit=1)[0].rstrip("/")
    for page in _PAGES:
        url = url.removesuffix(page).rstrip("/")
    return url


TIMEOUT_S: Final = 30.0
DELAYS_S: Final = (1.0, 2.0, 4.0, 8.0)
"""How long to wait before each further try."""
LONGEST_WAIT_S: Final = 120.0
_LARGEST: Final = 64 * 1024 * 1024
_PASSING: Final = (408, 429, 500, 502, 503, 504)
Params = Mapping[str, str | int]


class PortalError(SourceError):
    """ReportPortal refused."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _RetryError(Exception):
    """This answer may be better next time."""

    def __init__(self, reason: str, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.wait_s = wait_s


class PortalClient:
    """The way to one ReportPortal."""

    def __init__(
        self,
        address: PortalAddress,
        *,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._clock = clock
        headers = {"Authorization": f"Bearer {address.token}", "Accept": "application/json"}
        self._client = build_client(address.url, headers, timeout_s, URL_VARIABLE)

    def close(self) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        what: str,
        *,
        params: Params | None = None,
        body: Any = None,
    ) -> Any:
        """The answer, after as many tries as the schedule has."""
        for delay in (*DELAYS_S, None):
            try:
                return self._request_once(method, path, what, params, body)
            except _RetryError as problem:
                wait = delay if problem.wait_s is None else problem.wait_s
                if delay is None or wait is None or wait > LONGEST_WAIT_S:
                    raise self._describe_failure(problem, what, method) from None
            self._sleep(wait)
        raise AssertionError("the schedule ends with a raise")

    def _request_once(
        self, method: str, path: str, what: str, params: Params | None, body: Any
    ) -> Any:
        content = None if body is None else msgspec.json.encode(body)
        kind = {} if content is None else {"Content-Type": "application/json"}
        try:
            with self._client.stream(
                method, path, params=params, content=content, headers=kind
            ) as answer:
                raw = self._read_body(answer)
        except httpx.TimeoutException:
            raise _RetryError(f"it did not answer within {self._timeout_s:g} s") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            if _is_distrust(error):
                raise self._describe_distrust(error) from None
            raise _RetryError(f"the connection failed ({format_short(error)})") from None
        except (httpx.InvalidURL, httpx.HTTPError) as error:
            raise PortalError(
                f"{self._address.url} cannot be asked: {format_short(error)}. Check {URL_VARIABLE}."
            ) from None
        if answer.is_success:
            return _decode_body(answer, raw, what)
        if answer.status_code in _PASSING:
            raise _RetryError(
                f"it answered {answer.status_code}", answer.status_code, _read_retry_after(answer)
            )
        raise self._describe_refusal(answer, raw, what, method)

    def _read_body(self, answer: httpx.Response) -> bytes:
        """The whole body; a server that only drips is as late as one that is silent."""
        deadline, raw = self._clock() + 4 * self._timeout_s, bytearray()
        for part in answer.iter_bytes():
            raw += part
            if len(raw) > _LARGEST:
                raise PortalError(f"A response from ReportPortal has more than {_LARGEST:,} bytes.")
            if self._clock() > deadline:
                raise _RetryError(f"its answer was not complete after {4 * self._timeout_s:g} s")
        return bytes(raw)

    def _describe_refusal(
        self, answer: httpx.Response, raw: bytes, what: str, method: str
    ) -> PortalError:
        status = answer.status_code
        message, project = self._read_message(raw), self._address.project
        if answer.is_redirect:
            where = format_short(answer.headers.get("location", ""))
            sentence = f"ReportPortal redirects to {where}: set {URL_VARIABLE} to its real address."
            return PortalError(sentence, status)
        sentences = {
            401: f"ReportPortal does not accept the token (401): make an API key in your profile "
            f"there and set {TOKEN_VARIABLE} to it.",
            403: f"The token has no access to {what} in project {project} (403): ask for access "
            f"to the project, or check {PROJECT_VARIABLE}.",
            404: f"ReportPortal has no {what} in project {project} (404): check the id, "
            f"{PROJECT_VARIABLE} and {URL_VARIABLE}.",
        }
        if method != "GET":
            del sentences[404]
            sentences[403] = (
                f"The token is not allowed to change items in project {project} (403): "
                "ask for a project role that is."
            )
        default = f"ReportPortal refuses {what} ({status}): {message or 'it does not say why'}"
        return PortalError(sentences.get(status, default), status)

    def _describe_distrust(self, error: Exception) -> PortalError:
        """No try will help: the certificate is not one we trust, or this is no TLS."""
        return PortalError(
            f"{self._address.url} cannot be trusted or does not speak TLS "
            f"({format_short(error)}): check {URL_VARIABLE}; if its certificate is your own, "
            "set SSL_CERT_FILE to the file of its authority."
        )

    def _describe_failure(self, problem: _RetryError, what: str, method: str) -> PortalError:
        waits = problem.wait_s is not None and problem.wait_s > LONGEST_WAIT_S
        advice = (
            f"it asks to wait {problem.wait_s:.0f} s: try again then"
            if waits
            else f"{len(DELAYS_S) + 1} tries were made; check {URL_VARIABLE} or try again later"
        )
        reason = f"{problem.reason}; {advice}."
        does = "return" if method == "GET" else "accept"
        return PortalError(
            f"ReportPortal at {self._address.url} does not {does} {what}: {reason}", problem.status
        )

    def _read_message(self, raw: bytes) -> str:
        """What the server says about an error, without the token should it be in there."""
        try:
            found = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return ""
        message = found.get("message") if isinstance(found, dict) else None
        return (
            format_short(message.replace(self._address.token, "***"))
            if isinstance(message, str)
            else ""
        )


def _is_distrust(error: BaseException) -> bool:
    """Whether TLS itself was refused, and not only broken off."""
    cause: BaseException | None = error if isinstance(error, httpx.ConnectError) else None
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None and not isinstance(cause, ssl.SSLEOFError)


def _decode_body(answer: httpx.Response, raw: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        if "html" in answer.headers.get("content-type", ""):
            raise PortalError(
                f"A web page came back for {what}, not data: is {URL_VARIABLE} the "
                "address of ReportPortal?"
            ) from None
        raise _RetryError("its answer was cut off") from None


def _read_retry_after(answer: httpx.Response) -> float | None:
    """Seconds to wait, as the server says: a number, or a date compared with its own clock."""
    value = answer.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        return max(0.0, (until - parsedate_to_datetime(answer.headers["date"])).total_seconds())
    except (ValueError, TypeError, KeyError):
        return None
