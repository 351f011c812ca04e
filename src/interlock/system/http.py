"""A client for one server, on the ways that the environment names.

Knows that proxies and certificates come from the environment, and may be wrong there. Refuses to
know what is asked.

A token for an outside system: from the environment, or from a key file of its owner alone.

Knows what a token may look like and what to do where there is none. A token is never part of a
message. Refuses to know what it opens.
"""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx

from interlock.system.errors import SourceError


def build_client(
    url: str, headers: Mapping[str, str], timeout_s: float, setting: str
) -> httpx.Client:
    """A client of that server, whose address comes from that `setting`."""
    try:
        return httpx.Client(base_url=url, timeout=timeout_s, headers=headers)
    except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
        raise SourceError(
            f"The way to {url} is not understood ({format_short(error)}): check {setting}, "
            "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR."
        ) from None


def format_short(said: object) -> str:
    """In one line, and not a long one."""
    return " ".join(str(said).split())[:300]


_LONGEST: Final = 4_096


def find_token(
    system: str,
    environ: Mapping[str, str],
    names: Sequence[str],
    usual: str,
    key_file: Path | None = None,
) -> str:
    """The token for that system: of the key file if one is named, else of the first of the
    environment's `names` that is set, else of the file `usual` where there is one."""
    if key_file is not None:
        return _check_token(_read_key_file(key_file), f"The {system} token in {key_file}")
    token = next((said for name in names if (said := environ.get(name, "").strip())), "")
    if token:
        return _check_token(token, f"The {system} token in {' or '.join(names)}")
    if not Path(usual).exists():
        raise SourceError(
            f"{system} needs a token: set {names[0]}, or put it into {usual} (chmod 600 {usual})."
        )
    return _check_token(_read_key_file(Path(usual)), f"The {system} token in {usual}")


def _check_token(token: str, what: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(f"{what} has odd signs in it: copy it again, alone on the first line.")
    return token


def _read_key_file(path: Path) -> str:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SourceError(f"The key file {path} is no regular file: put the token into one.")
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
