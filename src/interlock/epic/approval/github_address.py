"""Where GitHub is and what opens it: the API's address, the repository, the token.

Knows the environment's names and the key file. The token is never shown: not in a message, not in
a repr. Refuses to know HTTP.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from interlock.system.errors import SourceError
from interlock.system.token import find_token

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
