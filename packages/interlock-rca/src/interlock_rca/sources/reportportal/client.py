"""HTTP to ReportPortal: address, project and token, retries, and a sentence for every refusal.

Understands the forms in which a user names a launch. A request is repeated when the answer is late,
broken or postponed; `Retry-After` is respected. The token is never shown, neither in a message nor
in a repr, and is sent to the configured server only.
"""

import itertools
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from interlock.system.errors import SourceError
from interlock.system.http import (
    HttpClient,
    Params,
    decode_json,
    find_token,
    format_short,
    is_web_page,
    read_error_message,
)
from interlock.system.retry import RetrySchedule, TransientError, is_transient, read_retry_after

if TYPE_CHECKING:
    import httpx

URL_VARIABLE: Final = "ASTERISK_RP_URL"
PROJECT_VARIABLE: Final = "ASTERISK_RP_PROJECT"
TOKEN_VARIABLE: Final = "ASTERISK_RP_TOKEN"  # noqa: S105  the variable's name
TOKEN_VARIABLES: Final = (TOKEN_VARIABLE, "ASTERISK_RP_API_KEY")
"""Environment variables that may hold the token."""
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
    """A user's words for a launch: its id or uuid, and optionally its server."""

    launch: str
    project: str = ""
    url: str = ""


def parse_launch_word(word: str) -> LaunchReference | None:
    """Return the launch in `rp:ID`, `rp:UUID`, `rp:PROJECT/ID`, or the address of a launch's page;
    else None."""
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
    """Return the address to use: the arguments, else the environment; the token comes from there or
    from a file."""
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
    """Return the server's own address, given that of one of its pages."""
    url = re.split("[?#]", url.strip(), maxsplit=1)[0].rstrip("/")
    for page in _PAGES:
        url = url.removesuffix(page).rstrip("/")
    return url


TIMEOUT_S: Final = 30.0
DELAYS_S: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before each further try."""
_SCHEDULE: Final = RetrySchedule(DELAYS_S)
_LARGEST: Final = 64 * 1024 * 1024


class PortalError(SourceError):
    """ReportPortal refused."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class PortalClient:
    """The connection to one ReportPortal."""

    def __init__(
        self,
        address: PortalAddress,
        *,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._client = HttpClient(
            address.url,
            {"Authorization": f"Bearer {address.token}", "Accept": "application/json"},
            setting=URL_VARIABLE,
            timeout_s=timeout_s,
            largest=_LARGEST,
            error=PortalError,
            clock=clock,
        )

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
        """Return the answer, after as many tries as the schedule allows."""
        for failures in itertools.count(1):
            try:
                response, raw = self._client.send(method, path, params=params, body=body)
                return self._judge(response, raw, what, method)
            except TransientError as error:
                wait = _SCHEDULE.find_wait(failures, error.wait_s)
                if wait is None:
                    raise self._describe_failure(error, what, method) from None
            self._sleep(wait)
        raise AssertionError("the schedule ends")

    def _judge(self, response: "httpx.Response", raw: bytes, what: str, method: str) -> Any:
        status = response.status_code
        if is_transient(status):
            raise TransientError(f"answered {status}", status, read_retry_after(response.headers))
        if not response.is_success:
            raise self._describe_refusal(response, raw, what, method)
        try:
            return decode_json(raw)
        except TransientError:
            if is_web_page(response):
                raise PortalError(
                    f"A web page came back for {what}, not data: is {URL_VARIABLE} the "
                    "address of ReportPortal?"
                ) from None
            raise

    def _describe_refusal(
        self, response: "httpx.Response", raw: bytes, what: str, method: str
    ) -> PortalError:
        status, project = response.status_code, self._address.project
        message = read_error_message(raw, self._address.token)
        if response.is_redirect:
            where = format_short(response.headers.get("location", ""))
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

    def _describe_failure(self, error: TransientError, what: str, method: str) -> PortalError:
        advice = (
            f"it asks to wait {error.wait_s:.0f} s: try again then"
            if error.wait_s is not None and error.wait_s > _SCHEDULE.longest
            else f"{len(DELAYS_S) + 1} tries were made; check {URL_VARIABLE} or try again later"
        )
        does = "return" if method == "GET" else "accept"
        return PortalError(
            f"ReportPortal at {self._address.url} does not {does} {what}: "
            f"it {error.reason}; {advice}.",
            error.status,
        )
