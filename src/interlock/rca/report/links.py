"""Links out of a report: only http and https, never with a name or password in them.

Knows how to tell a link from a trap, and how forges write a commit's address.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit, urlunsplit

from interlock.rca.findings import Suspect
from interlock.rca.launch import Launch, Repo

_LONGEST = 2000
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_SSH = re.compile(r"(?:ssh://)?(?:[\w.-]+@)([\w.-]+)(?::\d+/|[:/])([\w./~-]+)")
_HOST = re.compile(r"[A-Za-z0-9\[\]:._-]+")


def safe_link(url: str) -> str:
    """The link, without credentials; empty if it is not plainly a web address."""
    url = url.strip()
    if not url or len(url) > _LONGEST or not url.isprintable() or re.search(r"[\s\\\"'<>`]", url):
        return ""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    if parts.scheme.lower() not in ("http", "https") or not _HOST.fullmatch(host):
        return ""
    return urlunsplit((parts.scheme.lower(), host, parts.path, parts.query, parts.fragment))


def commit_link(home: str, commit: str) -> str:
    """Where a commit can be read, from the address of its repository."""
    ssh = _SSH.fullmatch(home.strip())
    base = safe_link(f"https://{ssh[1]}/{ssh[2]}" if ssh else home).rstrip("/")
    if not base or not _COMMIT.fullmatch(commit) or "?" in base or "#" in base:
        return ""
    place = "/-/commit/" if "gitlab" in urlsplit(base).netloc else "/commit/"
    return base.removesuffix(".git") + place + commit.lower()


def suspect_link(suspect: Suspect, repos: Iterable[Repo]) -> str:
    if link := safe_link(suspect.url):
        return link
    homes = (repo.url for repo in repos if repo.name == suspect.repo and repo.url)
    return commit_link(next(homes, ""), suspect.commit)


def launch_link(launch: Launch) -> str:
    """Where the tested commit can be read."""
    return commit_link(launch.remote, launch.commit)
