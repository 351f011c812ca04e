"""The comments of a pull request on GitHub, or the notes of a merge request on GitLab.

A forge lists comments, recognizes ours, and writes for us. Each request is made once. Tokens come
from the environment only.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote

from interlock.system.errors import SourceError
from interlock.system.github import GithubRest, github_address
from interlock.system.github_comments import (
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

GITLAB_TOKENS: Final = ("INTERLOCK_GITLAB_TOKEN", "GITLAB_TOKEN")
_WORKFLOW: Final = "github-actions[bot]"
"""The author of comments made with a workflow's own token, which belongs to no user."""
_LARGEST: Final = 32 * 1024 * 1024
_LONGEST_NOTE: Final = 1_000_000
_MOST_NOTES: Final = 20_000


class Forge(Protocol):
    """The comments of one repository's pull requests."""

    def list_comments(self, pr: str) -> list[Comment]:
        """Return all comments, oldest first."""

    def is_own(self, comment: Comment) -> bool:
        """Return True if our account wrote the comment."""

    def create(self, pr: str, body: str) -> None: ...

    def edit(self, pr: str, comment_id: str, body: str) -> None: ...

    def close(self) -> None: ...


def open_forge(provider: str, environ: Mapping[str, str], project: str) -> Forge | None:
    """Return the forge that belongs to a CI system, or None."""
    if provider == "github":
        return GithubForge(GithubRest(github_address(environ, repo=project)))
    return GitlabForge(environ, project) if provider == "gitlab" else None


class GithubForge:
    """The pull requests of a GitHub repository."""

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

    def create(self, pr: str, body: str) -> None:
        self._rest.post(f"{self._path}/{int(pr)}/comments", "comments", {"body": body})

    def edit(self, pr: str, comment_id: str, body: str) -> None:
        self._rest.patch(f"{self._path}/comments/{int(comment_id)}", "comments", {"body": body})


class GitlabForge:
    """The merge requests of a GitLab project. A job's own token may not write notes, so the token
    needs the scope `api`."""

    def __init__(self, environ: Mapping[str, str], project: str) -> None:
        token = find_token("GitLab", environ, GITLAB_TOKENS, ".gitlab-token")
        url = environ.get("CI_API_V4_URL", "https://gitlab.com/api/v4").rstrip("/")
        headers = {"PRIVATE-TOKEN": token}
        self._client = HttpClient(
            url, headers, setting="CI_API_V4_URL", timeout_s=15.0, largest=_LARGEST
        )
        self._url = url
        self._path = f"{url}/projects/{quote(environ.get('CI_PROJECT_ID') or project, safe='')}"
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
        said = [_read_note(row) for row in rows if row.get("system") is not True]
        return sorted(said, key=lambda comment: comment.at)

    def is_own(self, comment: Comment) -> bool:
        if not self._own:
            found = self._ask("GET", f"{self._url}/user", "the token's user")
            self._own = read_text(get_field(found, "username"))
        return bool(self._own) and comment.author.login == self._own

    def create(self, pr: str, body: str) -> None:
        self._ask("POST", self._notes(pr), "notes", {"body": body[:_LONGEST_NOTE]})

    def edit(self, pr: str, comment_id: str, body: str) -> None:
        path = f"{self._notes(pr)}/{int(comment_id)}"
        self._ask("PUT", path, "notes", {"body": body[:_LONGEST_NOTE]})

    def _notes(self, pr: str) -> str:
        return f"{self._path}/merge_requests/{int(pr)}/notes"

    def _ask(self, method: str, path: str, what: str, body: Any = None) -> Any:
        response, raw = self._client.send(method, path, body=body)
        if response.status_code in (401, 403):
            raise SourceError(
                f"GitLab does not let the token use {what}: make one with the scope api and set "
                f"{GITLAB_TOKENS[0]}"
            )
        if not response.is_success:
            raise SourceError(f"GitLab refuses {what} ({response.status_code})")
        return decode_json(raw) if raw else None


def _read_note(row: dict[str, Any]) -> Comment:
    author = Author(read_text(get_field(row.get("author"), "username")), "", False)
    at = read_time(row.get("created_at"))
    return Comment(read_text(row.get("id")), author, read_text(row.get("body")), at, "")
