"""Issues on GitHub that carry a request: opened once, asked cheaply, read as a thread.

Knows the REST calls and the hidden marker by which a request's issue is found again. Refuses to
know what a comment means, and what is asked.

Watching one issue: each look is one conditional request unless something changed.

Knows which of the two pages to ask next and what has been seen so far. Refuses to know what it
means; the thread goes to `thread`.
"""

import re
from typing import Any, Final

import msgspec

from interlock.epic.approval.github import (
    MOST_PAGES,
    GithubAuthError,
    GithubError,
    GithubResponse,
    GithubRest,
)
from interlock.epic.approval.thread import (
    APPROVED_LABEL,
    UNKNOWN_EDITOR,
    Author,
    Comment,
    LabelEvent,
    Thread,
)
from interlock.system.time import format_timestamp, parse_timestamp

LABELS: Final = ("hitl/review", "needs-approval")
LONGEST_BODY: Final = 65_000
PERMISSION_S: Final = 600.0
"""How long a permission that was looked up is believed."""
_WRITERS: Final = frozenset({"admin", "maintain", "write"})
_BEFORE_S: Final = 24 * 3600.0
_LOGIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,60}[A-Za-z0-9_-])?")
_COLOUR: Final = "5319e7"


class GithubIssue(msgspec.Struct, frozen=True):
    """An issue that carries a request."""

    number: int
    at: float
    """When it was opened, by GitHub's clock."""
    author: str
    url: str = ""


class Issues:
    """The issues of one repository, and who may write there."""

    def __init__(self, rest: GithubRest, labels: tuple[str, ...] = LABELS) -> None:
        self._rest = rest
        self._labels = labels
        self._here = f"/repos/{rest.repo}"
        self._login: str | None = None
        self._may: dict[str, tuple[bool, float]] = {}

    def close(self) -> None:
        self._rest.close()

    @property
    def repo(self) -> str:
        return self._rest.repo

    def own_login(self) -> str:
        """Whose token it is; unknown for the token of an app, whose comments are a bot's."""
        if self._login is None:
            try:
                found = self._rest.get("/user", "the token's own account").data
            except GithubError as error:
                if error.status not in (403, 404):
                    raise
                found = None
            self._login = _text(_field(found, "login"))
        return self._login

    def find(self, request_id: str, since: float) -> GithubIssue | None:
        """The issue that carries the request, if it was opened before; the oldest if several."""
        params: dict[str, str | int] = {"state": "all", "sort": "created", "direction": "desc"}
        own = self.own_login()
        if own:
            params["creator"] = own
        mark, found = request_mark(request_id), None
        first = self._rest.get(f"{self._here}/issues", "issues", {**params, "per_page": 100})
        for page in self._rest.pages(first, "issues"):
            rows = _rows(page)
            for row in rows:
                mine = not own or _author(row).login.lower() == own.lower()
                if mine and "pull_request" not in row and mark in _text(row.get("body")):
                    found = _issue(row)
            if rows and min(_time(row.get("created_at")) for row in rows) < since - _BEFORE_S:
                break
        return found

    def open(self, request_id: str, title: str, body: str, since: float) -> GithubIssue:
        """The request's issue: the one that is there, or else a new one."""
        return self.find(request_id, since) or self._create(request_id, title, body)

    def _create(self, request_id: str, title: str, body: str) -> GithubIssue:
        self._ensure_labels()
        text = f"{body[:LONGEST_BODY]}\n\n{request_mark(request_id)}\n"
        fields = {"title": title[:250], "body": text, "labels": list(self._labels)}
        return _issue(self._rest.post(f"{self._here}/issues", "new issues", fields))

    def _ensure_labels(self) -> None:
        """Labels help people to find the issue; it is opened also where they cannot be made."""
        for name in self._labels:
            try:
                fields = {"name": name, "color": _COLOUR}
                self._rest.post(f"{self._here}/labels", "labels", fields)
            except GithubError as error:
                if error.status not in (403, 404, 422):
                    raise

    def say(self, number: int, body: str) -> None:
        self._rest.post(f"{self._here}/issues/{number}/comments", "comments", {"body": body})

    def comments(self, number: int, since: str, etag: str) -> GithubResponse:
        """The first page of what was written or edited since then, if anything changed."""
        params: dict[str, str | int] = {"per_page": 100}
        if since:
            params["since"] = since
        path = f"{self._here}/issues/{number}/comments"
        return self._rest.get(path, f"issue {number}", params, etag)

    def page(self, url: str, number: int, etag: str = "") -> GithubResponse:
        return self._rest.get(url, f"issue {number}", etag=etag)

    def state(self, number: int, etag: str) -> GithubResponse:
        return self._rest.get(f"{self._here}/issues/{number}", f"issue {number}", etag=etag)

    def label_events(self, number: int) -> tuple[LabelEvent, ...]:
        """Who set and took away the approving label, and when; nothing where that is not told."""
        path, what = f"{self._here}/issues/{number}/events", f"events of issue {number}"
        try:
            first = self._rest.get(path, what, {"per_page": 100})
            rows = [row for page in self._rest.pages(first, what) for row in _rows(page)]
        except GithubError as error:
            if error.status != 404:
                raise
            return ()
        return tuple(event for row in rows if (event := _label_event(row)) is not None)

    def may_write(self, login: str, now: float) -> bool:
        """Whether somebody has write access; looked up now and then."""
        known = self._may.get(login.lower())
        if known and known[1] > now:
            return known[0]
        allowed = bool(_LOGIN.fullmatch(login)) and self._permission(login) in _WRITERS
        self._may[login.lower()] = (allowed, now + PERMISSION_S)
        return allowed

    def _permission(self, login: str) -> str:
        path = f"{self._here}/collaborators/{login}/permission"
        try:
            found = self._rest.get(path, "the permissions of people").data
        except GithubAuthError:
            raise
        except GithubError as error:
            if error.status != 404:
                raise
            return ""
        role = _text(_field(found, "role_name"))
        return role if role in _WRITERS else _text(_field(found, "permission"))


def request_mark(request_id: str) -> str:
    """The hidden marker of a request's issue."""
    return f"<!-- interlock:request {request_id} -->"


def comment_of(row: dict[str, Any]) -> Comment:
    """One comment as GitHub tells it. REST does not say who edited it."""
    created, updated = _time(row.get("created_at")), _time(row.get("updated_at"))
    editor = _text(_field(row.get("editor"), "login")) or UNKNOWN_EDITOR
    return Comment(
        _text(row.get("id")),
        _author(row),
        _text(row.get("body")),
        max(created, updated),
        editor if updated > created else "",
    )


def thread_of(comments: dict[str, Comment], labels: tuple[LabelEvent, ...], closed: bool) -> Thread:
    return Thread(tuple(comments.values()), labels, closed)


def has_approved_label(row: Any) -> bool:
    names = [_text(_field(each, "name") or each) for each in _list(_field(row, "labels"))]
    return APPROVED_LABEL in map(str.lower, names)


def is_closed(row: Any) -> bool:
    return _text(_field(row, "state")) == "closed"


def written_at(at: float) -> str:
    """A moment as GitHub's `since` takes it; nothing if there is none."""
    return format_timestamp(at) if at > 0 else ""


def rows_of(answer: GithubResponse) -> list[dict[str, Any]]:
    return _rows(answer)


def _issue(row: Any) -> GithubIssue:
    number = _field(row, "number")
    if not isinstance(number, int) or isinstance(number, bool):
        raise GithubError("GitHub told of an issue without a number.")
    author = _author(row).login
    return GithubIssue(number, _time(row.get("created_at")), author, _text(row.get("html_url")))


def _label_event(row: dict[str, Any]) -> LabelEvent | None:
    name, what = _text(_field(row.get("label"), "name")), row.get("event")
    if what not in ("labeled", "unlabeled") or name.lower() != APPROVED_LABEL:
        return None
    at = _time(row.get("created_at"))
    return LabelEvent(name, _person(row.get("actor")), at, what == "labeled")


def _author(row: Any) -> Author:
    person = _person(_field(row, "user"))
    app = _field(row, "performed_via_github_app") is not None
    return Author(person.login, _text(_field(row, "author_association")), person.bot or app)


def _person(row: Any) -> Author:
    """A deleted account is nobody in particular and may nothing."""
    return Author(_text(_field(row, "login")), "", _text(_field(row, "type")) == "Bot")


def _rows(answer: GithubResponse) -> list[dict[str, Any]]:
    if not isinstance(answer.data, list):
        raise GithubError("GitHub did not tell a list where one is due.")
    return [row for row in answer.data if isinstance(row, dict)]


def _field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, bool | dict | list) else str(value)


def _time(value: Any) -> float:
    return parse_timestamp(_text(value)) or 0.0


STATE_EVERY: Final = 4
"""Every so many looks the issue's state and labels are asked for instead of its comments."""


class IssuePoll:
    """One issue as far as it was seen."""

    def __init__(self, issues: Issues, issue: GithubIssue) -> None:
        self.issue = issue
        self._issues = issues
        self._looks = 0
        self._comments: dict[str, Comment] = {}
        self._labels: tuple[LabelEvent, ...] = ()
        self._closed = False
        self._changed = True
        """Whether something was seen that was not handed over yet."""
        self._since = written_at(issue.at)
        self._tail = ""
        """The last page, where a server does not heed `since`."""
        self._etags = {"comments": "", "state": ""}

    def look(self, *, all_of_it: bool = False) -> Thread | None:
        """The thread if anything changed, else nothing."""
        first = self._looks == 0
        asks_state = first or all_of_it or self._looks % STATE_EVERY == 0
        asks_comments = first or all_of_it or not asks_state
        if asks_comments:
            self._changed = self._look_at_comments() or self._changed
        if asks_state:
            self._changed = self._look_at_state() or self._changed
        self._looks += 1
        changed, self._changed = self._changed, False
        return thread_of(self._comments, self._labels, self._closed) if changed else None

    def _look_at_comments(self) -> bool:
        number, etag = self.issue.number, self._etags["comments"]
        if self._tail:
            answer = self._issues.page(self._tail, number, etag)
        else:
            answer = self._issues.comments(number, self._since, etag)
        if not answer.fresh:
            return False
        return self._take(answer)

    def _take(self, answer: GithubResponse) -> bool:
        """Read all pages from this one on, and remember where to look next time."""
        before, found, tail = dict(self._comments), list[Comment](), self._tail
        for _ in range(MOST_PAGES):
            found += [comment_of(row) for row in rows_of(answer)]
            if not answer.next_url:
                break
            tail = answer.next_url
            answer = self._issues.page(tail, self.issue.number)
        else:
            raise GithubError(f"issue {self.issue.number} has more than {MOST_PAGES} pages.")
        self._comments |= {each.comment_id: each for each in found}
        newest = written_at(max((each.at for each in found), default=0.0))
        heeded = all(written_at(each.at) >= self._since for each in found)
        if not heeded:
            self._tail = tail
        if heeded and newest > self._since:
            self._since, self._etags["comments"] = newest, ""
        else:
            self._etags["comments"] = answer.etag
        return self._comments != before

    def _look_at_state(self) -> bool:
        answer = self._issues.state(self.issue.number, self._etags["state"])
        if not answer.fresh:
            return False
        before, labels = (self._labels, self._closed), tuple[LabelEvent, ...]()
        if has_approved_label(answer.data):
            labels = self._issues.label_events(self.issue.number)
        self._labels, self._closed = labels, is_closed(answer.data)
        self._etags["state"] = answer.etag
        return before != (self._labels, self._closed)
