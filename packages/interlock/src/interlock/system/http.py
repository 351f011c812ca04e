"""Send requests to one server, and find the token it needs.

Proxies and certificates come from the environment, and may be wrong there. A request is sent once:
a failure that may pass raises TransientError (see `retry`), any other raises SourceError. A token
comes from the environment or from a key file that only its owner can read, and never appears in a
message.
"""

import ssl
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.system.errors import InterlockError, SourceError
from interlock.system.retry import TransientError

if TYPE_CHECKING:
    import httpx  # it loads slowly, and most commands need no server

Params = Mapping[str, str | int]
BYTES: Final = "application/octet-stream"


class HttpClient:
    """A connection to one server, whose address comes from `setting`.

    Failures that will not pass are raised as `error`.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        setting: str,
        timeout_s: float,
        largest: int,
        error: Callable[[str], InterlockError] = SourceError,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._error = error
        self._setting = setting
        self._timeout_s = timeout_s
        self._largest = largest
        self._clock = clock
        import httpx

        try:
            self._client = httpx.Client(base_url=url, timeout=timeout_s, headers=headers)
        except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
            raise SourceError(
                f"{url} cannot be reached this way ({format_short(error)}): check {setting}, "
                "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR."
            ) from None

    def close(self) -> None:
        self._client.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> "tuple[httpx.Response, bytes]":
        """Send one request, and return the response with any status, and its content.

        `body` is sent as JSON, or unchanged if it is bytes.
        """
        import httpx

        headers = dict(headers or {})
        is_raw = isinstance(body, bytes)
        content = body if body is None or is_raw else msgspec.json.encode(body)
        if content is not None:
            headers["Content-Type"] = BYTES if is_raw else "application/json"
        try:
            with self._client.stream(
                method, path, params=params, content=content, headers=headers
            ) as response:
                return response, self._read_body(response)
        except httpx.TimeoutException:
            raise TransientError(f"did not answer within {self._timeout_s:g} s") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            if _is_distrust(error):
                raise self._error(
                    f"{self._url} cannot be trusted or does not speak TLS ({format_short(error)}): "
                    f"check {self._setting}; if its certificate is your own, set SSL_CERT_FILE to "
                    "the file of its authority."
                ) from None
            unreachable = isinstance(error, httpx.ConnectError)
            reason = "cannot be reached" if unreachable else "broke the connection"
            raise TransientError(f"{reason} ({format_short(error)})") from None
        except (httpx.InvalidURL, httpx.HTTPError, UnicodeError) as error:
            raise self._error(
                f"{self._url} cannot be requested: {format_short(error)}. Check {self._setting}."
            ) from None

    def _read_body(self, response: "httpx.Response") -> bytes:
        """Return the whole body; a server that only drips counts as late, like a silent one."""
        deadline, raw = self._clock() + 4 * self._timeout_s, bytearray()
        for part in response.iter_bytes():
            raw += part
            if len(raw) > self._largest:
                raise self._error(
                    f"A response from {self._url} has more than {self._largest:,} bytes."
                )
            if self._clock() > deadline:
                raise TransientError(f"did not finish its answer within {4 * self._timeout_s:g} s")
        return bytes(raw)


def _is_distrust(error: BaseException) -> bool:
    """Return True if TLS itself was refused, and not just broken off."""
    import httpx

    cause: BaseException | None = error if isinstance(error, httpx.ConnectError) else None
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None and not isinstance(cause, ssl.SSLEOFError)


def decode_json(raw: bytes) -> Any:
    """Return the decoded body; raise TransientError if it was cut off on its way."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise TransientError("sent an answer that was cut off") from None


def is_web_page(response: "httpx.Response") -> bool:
    return "html" in response.headers.get("content-type", "")


def read_error_message(raw: bytes, token: str) -> str:
    """Return the `message` of a refusal, with the token masked; empty if there is none."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    message = found.get("message") if isinstance(found, dict) else None
    return format_short(message.replace(token, "***")) if isinstance(message, str) else ""


def format_short(text: object) -> str:
    """Return the text on one line of at most 300 characters."""
    return " ".join(str(text).split())[:300]


_LONGEST: Final = 4_096


def find_token(
    system: str,
    environ: Mapping[str, str],
    names: Sequence[str],
    usual: str,
    key_file: Path | None = None,
) -> str:
    """Return the system's token, from the key file, the environment, or the usual file.

    A named key file comes first, then the first of `names` that is set, then the file `usual`.
    """
    if key_file is not None:
        return _check_token(_read_key_file(key_file), f"The {system} token in {key_file}")
    token = next((value for name in names if (value := environ.get(name, "").strip())), "")
    if token:
        return _check_token(token, f"The {system} token in {' or '.join(names)}")
    if not Path(usual).exists():
        raise SourceError(
            f"{system} needs a token: set {names[0]}, or put it into {usual} (chmod 600 {usual})."
        )
    return _check_token(_read_key_file(Path(usual)), f"The {system} token in {usual}")


def _check_token(token: str, what: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(
            f"{what} contains unusual characters: copy it again, alone on the first line."
        )
    return token


def _read_key_file(path: Path) -> str:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SourceError(f"The key file {path} is not a regular file: put the token into one.")
        with path.open("rb") as file:
            raw = file.read(_LONGEST)
    except FileNotFoundError:
        raise SourceError(f"The key file {path} is not there: check its path.") from None
    except OSError as error:
        raise SourceError(f"The key file {path} cannot be read: {error.strerror}.") from None
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise SourceError(f"The key file {path} can be read by others: run chmod 600 {path}.")
    token = raw.decode("utf-8", "replace").strip().partition("\n")[0].strip()
    if not token:
        raise SourceError(f"The key file {path} is empty: put the token into it.")
    return token
