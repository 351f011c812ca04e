"""Where GitHub is and what opens it: the API's address, the repository, the token.

Knows the environment's names and the key file. The token is never shown: not in a message, not in
a repr. Refuses to know HTTP.
"""

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from interlock.core.errors import SourceError

URL: Final = "GITHUB_API_URL"
REPOSITORY: Final = "GITHUB_REPOSITORY"
TOKENS: Final = ("GITHUB_TOKEN", "GH_TOKEN")
"""Names the token goes by; the first that is set counts."""
KEY_FILE: Final = ".github-token"
PUBLIC: Final = "https://api.github.com"
_LONGEST_KEY: Final = 4_096
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
    return GithubAddress(url, repo, _token(environ, key_file))


def _token(environ: Mapping[str, str], key_file: Path | None) -> str:
    token = next((said for name in TOKENS if (said := environ.get(name, "").strip())), "")
    if not token:
        token = _from_file(key_file or Path(KEY_FILE), needed=key_file is not None)
    if not token:
        raise SourceError(
            f"GitHub needs a token: set {TOKENS[0]}, "
            f"or put it into {KEY_FILE} (chmod 600 {KEY_FILE})."
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(f"The GitHub token in {TOKENS[0]} or {KEY_FILE} has odd signs in it.")
    return token


def _from_file(path: Path, *, needed: bool) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            raw = file.read(_LONGEST_KEY)
    except FileNotFoundError:
        if needed:
            raise SourceError(f"The key file {path} is not there.") from None
        return ""
    except OSError as error:
        raise SourceError(f"The key file {path} cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise SourceError(f"The key file {path} can be read by others: run chmod 600 {path}.")
    lines = raw.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else ""
