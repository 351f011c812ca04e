"""Where a pull request is talked about: its comments on GitHub, or the notes of a merge request.

A forge lists comments, says whose they are and who may write to the repository, and writes for us.
Each request is made once. Tokens come from the environment only.
"""

import re
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from interlock.system.errors import SourceError
from interlock.system.github import GithubRest, github_address
from interlock.system.github_comments import (
    UNKNOWN_EDITOR,
    Author,
    Comment,
    GithubPeople,
    get_field,
    read_comment,
    read_rows,
    read_text,
    read_time,
)
from interlock.system.http import HttpClient, decode_json, find_token
from interlock.system.time import format_timestamp

GITLAB_TOKENS: Final = ("INTERLOCK_GITLAB_TOKEN", "GITLAB_TOKEN")
COMMAND: Final = "/interlock"
_WORKFLOW: Final = "github-actions[bot]"
"""Who comments with a workflow's own token, which belongs to nobody."""
_LARGEST: Final = 32 * 1024 * 1024
_LONGEST_NOTE: Final = 1_000_000
_PAGES: Final = 5
_MOST_NOTES: Final = 20_000
_DEVELOPER: Final = 30
"""The access level on GitLab from which on somebody may push."""
_ROBOT: Final = re.compile(r"(?:project|group)_[0-9]+_bot(?:_\w+)?")


class Forge(Protocol):
    """The comments of one repository's pull requests."""

    def list_comments(self, pr: str) -> list[Comment]:
        """All of them, the oldest first."""

    def is_own(self, comment: Comment) -> bool:
        """Whether the account that we use wrote it."""

    def may_write(self, author: Author) -> bool:
        """Whether its author has write access to the repository."""

    def create(self, pr: str, body: str) -> None: ...

    def edit(self, pr: str, comment_id: str, body: str) -> None: ...

    def acknowledge(self, pr: str, comment_id: str) -> None:
        """Show that it was understood, by a reaction."""

    def list_addressed(self, since: float) -> list[str]:
        """The pull requests in which somebody may have spoken to us since then."""

    def close(self) -> None: ...


def open_forge(provider: str, environ: Mapping[str, str], project: str) -> Forge | None:
    """The forge of a CI system; None if it has none that we know."""
    if provider == "github":
        return GithubForge(GithubRest(github_address(environ, repo=project)))
    return GitlabForge(environ, project) if provider == "gitlab" else None


class GithubForge:
    """GitHub."""

    def __init__(self, rest: GithubRest) -> None:
        self._rest = rest
        self._people = GithubPeople(rest)
        self._path = f"/repos/{rest.repo}/issues"

    def close(self) -> None:
        self._rest.close()

    def list_comments(self, pr: str) -> list[Comment]:
        first = self._rest.get(f"{self._path}/{int(pr)}/comments", "comments", {"per_page": 100})
        pages = self._rest.pages(first, "comments")
        return [read_comment(row) for page in pages for row in read_rows(page)]

    def is_own(self, comment: Comment) -> bool:
        return comment.author.login.lower() == (self._people.own_login() or _WORKFLOW).lower()

    def may_write(self, author: Author) -> bool:
        return self._people.may_write(author.login, time.time())

    def create(self, pr: str, body: str) -> None:
        self._rest.post(f"{self._path}/{int(pr)}/comments", "comments", {"body": body})

    def edit(self, pr: str, comment_id: str, body: str) -> None:
        self._rest.patch(f"{self._path}/comments/{int(comment_id)}", "comments", {"body": body})

    def acknowledge(self, pr: str, comment_id: str) -> None:
        path = f"{self._path}/comments/{int(comment_id)}/reactions"
        self._rest.post(path, "reactions", {"content": "+1"})

    def list_addressed(self, since: float) -> list[str]:
        params: dict[str, str | int] = {"sort": "updated", "direction": "desc", "per_page": 100}
        params["since"] = format_timestamp(since)
        page = self._rest.get(f"{self._path}/comments", "comments", params)
        found: dict[str, None] = {}
        for _ in range(_PAGES):
            for row in read_rows(page):
                place = re.search(r"/pull/([0-9]{1,12})\b", read_text(row.get("html_url")))
                if place and COMMAND in read_text(row.get("body")).lower():
                    found[place[1]] = None
            if not page.next_url:
                break
            page = self._rest.get(page.next_url, "comments")
        return list(found)


class GitlabForge:
    """GitLab. A job's own token may not write notes, so one with the scope `api` is needed."""

    def __init__(self, environ: Mapping[str, str], project: str) -> None:
        token = find_token("GitLab", environ, GITLAB_TOKENS, ".gitlab-token")
        url = environ.get("CI_API_V4_URL", "https://gitlab.com/api/v4").rstrip("/")
        headers = {"PRIVATE-TOKEN": token}
        self._client = HttpClient(
            url, headers, setting="CI_API_V4_URL", timeout_s=15.0, largest=_LARGEST
        )
        self._url = url
        self._path = f"{url}/projects/{quote(environ.get('CI_PROJECT_ID') or project, safe='')}"
        self._people: dict[str, int] = {}
        self._rights: dict[str, bool] = {}
        self._own = ""

    def close(self) -> None:
        self._client.close()

    def list_comments(self, pr: str) -> list[Comment]:
        rows: list[dict[str, Any]] = []
        while len(rows) % 100 == 0 and len(rows) < _MOST_NOTES:
            page = f"per_page=100&page={len(rows) // 100 + 1}"
            found = self._ask("GET", f"{self._notes(pr)}?{page}", "notes")
            if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
                raise SourceError("GitLab's answer about notes is not understood")
            rows += found
            if not found:
                break
        said = [self._read_note(row) for row in rows if row.get("system") is not True]
        return sorted(said, key=lambda comment: comment.at)

    def _read_note(self, row: dict[str, Any]) -> Comment:
        person = row.get("author")
        login, number = read_text(get_field(person, "username")), get_field(person, "id")
        if isinstance(number, int) and login:
            self._people[login] = number
        is_bot = get_field(person, "bot") is True or bool(_ROBOT.fullmatch(login))
        created, updated = read_time(row.get("created_at")), read_time(row.get("updated_at"))
        editor = UNKNOWN_EDITOR if updated > created else ""
        comment_id, body = read_text(row.get("id")), read_text(row.get("body"))
        author = Author(login, "", is_bot)
        return Comment(comment_id, author, body, max(created, updated), editor)

    def is_own(self, comment: Comment) -> bool:
        if not self._own:
            found = self._ask("GET", f"{self._url}/user", "the token's user")
            self._own = read_text(get_field(found, "username"))
        return bool(self._own) and comment.author.login == self._own

    def may_write(self, author: Author) -> bool:
        if author.login not in self._rights:
            number = self._people.get(author.login)
            found = self._ask("GET", f"{self._path}/members/all/{number}", "members", missing=True)
            level = get_field(found, "access_level")
            allowed = isinstance(level, int) and level >= _DEVELOPER
            self._rights[author.login] = number is not None and allowed
        return self._rights[author.login]

    def create(self, pr: str, body: str) -> None:
        self._ask("POST", self._notes(pr), "notes", {"body": body[:_LONGEST_NOTE]})

    def edit(self, pr: str, comment_id: str, body: str) -> None:
        path = f"{self._notes(pr)}/{int(comment_id)}"
        self._ask("PUT", path, "notes", {"body": body[:_LONGEST_NOTE]})

    def acknowledge(self, pr: str, comment_id: str) -> None:
        path = f"{self._notes(pr)}/{int(comment_id)}/award_emoji"
        # A second one of ours is refused as not found.
        self._ask("POST", path, "reactions", {"name": "thumbsup"}, missing=True)

    def list_addressed(self, since: float) -> list[str]:
        words = f"scope=all&state=opened&per_page=50&updated_after={format_timestamp(since)}"
        found = self._ask("GET", f"{self._path}/merge_requests?{words}", "merge requests")
        rows = found if isinstance(found, list) else []
        numbers = [read_text(get_field(row, "iid")) for row in rows]
        return [each for each in numbers if each.isdecimal()]

    def _notes(self, pr: str) -> str:
        return f"{self._path}/merge_requests/{int(pr)}/notes"

    def _ask(
        self, method: str, path: str, what: str, body: Any = None, *, missing: bool = False
    ) -> Any:
        """`missing` allows that there is no such thing."""
        response, raw = self._client.send(method, path, body=body)
        if response.status_code == 404 and missing:
            return None
        if response.status_code in (401, 403):
            raise SourceError(
                f"GitLab does not let the token use {what}: make one with the scope api and set "
                f"{GITLAB_TOKENS[0]}"
            )
        if not response.is_success:
            raise SourceError(f"GitLab refuses {what} ({response.status_code})")
        return decode_json(raw) if raw else None
