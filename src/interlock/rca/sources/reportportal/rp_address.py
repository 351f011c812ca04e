"""Where ReportPortal is and what opens it: address, project, token.

Knows the environment's names, the key file and the forms in which a user names a launch. The token
is never shown: not in a message, not in a repr. Refuses to know HTTP.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from interlock.system.errors import SourceError
from interlock.system.token import find_token

URL: Final = "ASTERISK_RP_URL"
PROJECT: Final = "ASTERISK_RP_PROJECT"
TOKEN: Final = "ASTERISK_RP_TOKEN"  # noqa: S105  the variable's name
TOKENS: Final = (TOKEN, "ASTERISK_RP_API_KEY")
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


class LaunchWord(msgspec.Struct, frozen=True):
    """What a user wrote for a launch: its id or uuid, and perhaps where it is."""

    launch: str
    project: str = ""
    url: str = ""


def launch_word(word: str) -> LaunchWord | None:
    """`rp:ID`, `rp:UUID`, `rp:PROJECT/ID`, or the address of a launch's page; None for others."""
    if word.startswith("rp:"):
        project, _, launch = word.removeprefix("rp:").rpartition("/")
        if not _LAUNCH.fullmatch(launch) or "/" in project:
            raise SourceError(
                f"{word} names no launch: write rp:ID, rp:UUID or rp:PROJECT/ID, "
                "or give the address of the launch's page."
            )
        return LaunchWord(launch, project)
    if not word.startswith(("http://", "https://")):
        return None
    parts = urlsplit(word)
    found = _PLACE.match(unquote(parts.fragment))
    if not found:
        raise SourceError(
            f"{word} is no address of a ReportPortal launch: "
            "it should end in #PROJECT/launches/all/ID. Or write rp:ID."
        )
    return LaunchWord(found[2], found[1], _root(f"{parts.scheme}://{parts.netloc}{parts.path}"))


def address(
    environ: Mapping[str, str],
    *,
    url: str = "",
    project: str = "",
    key_file: Path | None = None,
) -> PortalAddress:
    """The address to use: what is given, else the environment; the token from there or a file."""
    known = environ.get(URL, "").strip()
    url = _root(url or known)
    project = project or environ.get(PROJECT, "").strip()
    if not url:
        raise SourceError(f"Where is ReportPortal? Set {URL}, for example https://rp.example.org.")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise SourceError(f"{URL} is no address: it should begin with https:// or http://.")
    if "@" in urlsplit(url).netloc:
        raise SourceError(f"{URL} has a name or password in it: take them out and set {TOKEN}.")
    if known and urlsplit(_root(known))[:2] != urlsplit(url)[:2]:
        raise SourceError(
            f"The launch is at {url}, but {URL} is {_root(known)}: "
            f"the token is only sent there. Change {URL} to read from the other."
        )
    if not project:
        raise SourceError(f"Which project of ReportPortal? Set {PROJECT}.")
    token = find_token("ReportPortal", environ, TOKENS, KEY_FILE, key_file)
    return PortalAddress(url, project, token)


def _root(url: str) -> str:
    """The server's own address, also from that of one of its pages."""
    url = re.split("[?#]", url.strip(), maxsplit=1)[0].rstrip("/")
    for page in _PAGES:
        url = url.removesuffix(page).rstrip("/")
    return url
