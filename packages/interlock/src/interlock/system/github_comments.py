"""Read comments on GitHub, and find out which of their authors may write to the repository."""

import re
from typing import Any, Final

import msgspec

from interlock.system.github import GithubAuthError, GithubError, GithubResponse, GithubRest
from interlock.system.time import parse_timestamp

UNKNOWN_EDITOR: Final = "?"
PERMISSION_S: Final = 600.0
"""Seconds for which a permission is remembered."""
_WRITERS: Final = frozenset({"admin", "maintain", "write"})
_LOGIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,60}[A-Za-z0-9_-])?")


class Author(msgspec.Struct, frozen=True):
    """An account on GitHub."""

    login: str
    association: str = ""
    bot: bool = False

    @property
    def is_bot(self) -> bool:
        return self.bot or self.login.lower().endswith("[bot]")


class Comment(msgspec.Struct, frozen=True):
    """One comment in its current form."""

    comment_id: str
    author: Author
    body: str
    at: float
    """When it was last edited or, if never, written."""
    edited_by: str = ""
    """Who edited it; `?` if GitHub does not say, empty if it was never edited."""


class GithubPeople:
    """Look up the token's own account, and who may write to the repository."""

    def __init__(self, rest: GithubRest) -> None:
        self._rest = rest
        self._login: str | None = None
        self._permissions: dict[str, tuple[bool, float]] = {}

    def own_login(self) -> str:
        """Return the token's own login; empty for an app's token, whose comments are a bot's."""
        if self._login is None:
            try:
                found = self._rest.get("/user", "the token's own account").data
            except GithubError as error:
                if error.status not in (403, 404):
                    raise
                found = None
            self._login = read_text(get_field(found, "login"))
        return self._login

    def may_write(self, login: str, now: float) -> bool:
        """Return True if that account has write access; the result is remembered for a while."""
        known = self._permissions.get(login.lower())
        if known and known[1] > now:
            return known[0]
        allowed = bool(_LOGIN.fullmatch(login)) and self._permission(login) in _WRITERS
        self._permissions[login.lower()] = (allowed, now + PERMISSION_S)
        return allowed

    def _permission(self, login: str) -> str:
        path = f"/repos/{self._rest.repo}/collaborators/{login}/permission"
        try:
            found = self._rest.get(path, "the permissions of people").data
        except GithubAuthError:
            raise
        except GithubError as error:
            if error.status != 404:
                raise
            return ""
        role = read_text(get_field(found, "role_name"))
        return role if role in _WRITERS else read_text(get_field(found, "permission"))


def read_comment(row: dict[str, Any]) -> Comment:
    """Return a comment. The REST API does not say who edited it."""
    created, updated = read_time(row.get("created_at")), read_time(row.get("updated_at"))
    editor = read_text(get_field(row.get("editor"), "login")) or UNKNOWN_EDITOR
    return Comment(
        read_text(row.get("id")),
        read_author(row),
        read_text(row.get("body")),
        max(created, updated),
        editor if updated > created else "",
    )


def read_author(row: Any) -> Author:
    person = read_person(get_field(row, "user"))
    app = get_field(row, "performed_via_github_app") is not None
    return Author(person.login, read_text(get_field(row, "author_association")), person.bot or app)


def read_person(row: Any) -> Author:
    """Return an account; a deleted one has no name and no rights."""
    return Author(
        read_text(get_field(row, "login")), "", read_text(get_field(row, "type")) == "Bot"
    )


def read_rows(answer: GithubResponse) -> list[dict[str, Any]]:
    if not isinstance(answer.data, list):
        raise GithubError("GitHub did not send a list where one was expected.")
    return [row for row in answer.data if isinstance(row, dict)]


def get_field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, dict) else None


def read_text(value: Any) -> str:
    return "" if value is None or isinstance(value, bool | dict | list) else str(value)


def read_time(value: Any) -> float:
    return parse_timestamp(read_text(value)) or 0.0
