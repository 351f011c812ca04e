"""Where a repository can be looked at in a browser: links to commits and files.

Knows the addresses of GitHub, GitLab, Bitbucket and Gitea, and how clone URLs tell the host; drops
credentials. Makes http links only. Refuses to know whether anything is there.
"""

import re
from urllib.parse import quote, urlsplit

import msgspec

_MOST = 2_000
_SCP = re.compile(r"(?:[^@/\s:]+@([\w.-]+)|([\w-]+\.[\w.-]+)):(\S+)")  # git@host:owner/name
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250})")
_NUMBER = re.compile(r"[0-9]{1,5}")
_KINDS = (
    ("gitlab", "gitlab"),
    ("bitbucket.org", "bitbucket"),
    ("bitbucket", "bitbucket-server"),
    ("stash", "bitbucket-server"),
    ("gitea", "gitea"),
    ("forgejo", "gitea"),
    ("codeberg", "gitea"),
)
_COMMIT = {
    "github": "{home}/commit/{rev}",
    "gitlab": "{home}/-/commit/{rev}",
    "bitbucket": "{home}/commits/{rev}",
    "bitbucket-server": "{home}/commits/{rev}",
    "gitea": "{home}/commit/{rev}",
}
_FILE = {
    "github": "{home}/blob/{rev}/{path}",
    "gitlab": "{home}/-/blob/{rev}/{path}",
    "bitbucket": "{home}/src/{rev}/{path}",
    "bitbucket-server": "{home}/browse/{path}?at={rev}",
    "gitea": "{home}/src/commit/{rev}/{path}",
}
_LINES = {
    "github": ("#L{first}", "#L{first}-L{last}"),
    "gitlab": ("#L{first}", "#L{first}-{last}"),
    "bitbucket": ("#lines-{first}", "#lines-{first}:{last}"),
    "bitbucket-server": ("#{first}", "#{first}-{last}"),
    "gitea": ("#L{first}", "#L{first}-L{last}"),
}


class Browse(msgspec.Struct, frozen=True):
    """A repository's page, and whose manner of links it has."""

    home: str
    kind: str = "github"

    @property
    def place(self) -> str:
        """Host and path, for comparing: `host/owner/name`."""
        return self.home.partition("://")[2].lower()

    def commit_url(self, commit: str) -> str:
        return _COMMIT[self.kind].format(home=self.home, rev=quote(commit, safe="/"))

    def file_url(self, path: str, rev: str, first: int = 0, last: int = 0) -> str:
        parts = {"home": self.home, "rev": quote(rev, safe="/"), "path": _quoted(path)}
        url = _FILE[self.kind].format(**parts)
        if first <= 0:
            return url
        one, many = _LINES[self.kind]
        return url + (many if last > first else one).format(first=first, last=last)


def browse(url: str) -> Browse | None:
    """The page of a repository from its clone URL or its page's URL; None if it has none."""
    url = url.strip()
    if not url or len(url) > _MOST or not url.isprintable():
        return None
    found = _split(url)
    if found is None:
        return None
    scheme, host, path = found
    path = path.strip("/").removesuffix(".git").strip("/")
    if not _HOST.fullmatch(host.partition(":")[0]) or not path or ".." in path.split("/"):
        return None
    kind = next((kind for word, kind in _KINDS if word in host.lower()), "github")
    if kind == "bitbucket-server":
        path = _server_path(path)
    return Browse(f"{scheme}://{host.lower()}/{_quoted(path)}", kind)


def _split(url: str) -> tuple[str, str, str] | None:
    """Scheme of the page, host (with the port of a web page) and path."""
    scp = _SCP.fullmatch(url)
    if scp and "://" not in url:
        return "https", scp[1] or scp[2], scp[3]
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme in ("http", "https"):
        return scheme, f"{host}:{port}" if port else host, parts.path
    if scheme in ("ssh", "git", "git+ssh", "ssh+git"):
        return "https", host, parts.path
    return None


def _server_path(path: str) -> str:
    """Bitbucket Server's page of a repository from its clone path."""
    words = path.removeprefix("scm/").split("/")
    if words[0] in ("projects", "users") or len(words) != 2:
        return path
    if _NUMBER.fullmatch(words[0]):
        return path
    project, name = words
    if project.startswith("~"):
        return f"users/{project[1:]}/repos/{name}"
    return f"projects/{project}/repos/{name}"


def _quoted(path: str) -> str:
    return quote(path, safe="/~@+-._", errors="replace")
