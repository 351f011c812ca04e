"""Open an issue for each request, poll it cheaply, and read it as a thread.

A hidden marker in its body identifies a request's issue. `IssuePoll` follows one issue: each poll
is one conditional request unless something changed.
"""

from typing import Any, Final

import msgspec

from interlock.system.github import (
    MOST_PAGES,
    GithubError,
    GithubResponse,
    GithubRest,
)
from interlock.system.github_comments import (
    Comment,
    GithubPeople,
    get_field,
    read_author,
    read_comment,
    read_person,
    read_rows,
    read_text,
    read_time,
)
from interlock.system.time import format_timestamp
from interlock_epic.approval.thread import (
    APPROVED_LABEL,
    LabelEvent,
    Thread,
)

LABELS: Final = ("hitl/review", "needs-approval")
LONGEST_BODY: Final = 65_000
_BEFORE_S: Final = 24 * 3600.0
_COLOUR: Final = "5319e7"


class GithubIssue(msgspec.Struct, frozen=True):
    """An issue that carries a request."""

    number: int
    at: float
    """The time when it was opened, by GitHub's clock."""
    author: str
    url: str = ""


class Issues:
    """The issues of one repository."""

    def __init__(self, rest: GithubRest, labels: tuple[str, ...] = LABELS) -> None:
        self._rest = rest
        self._labels = labels
        self._path = f"/repos/{rest.repo}"
        self.people = GithubPeople(rest)

    def close(self) -> None:
        self._rest.close()

    @property
    def repo(self) -> str:
        return self._rest.repo

    def find(self, request_id: str, since: float) -> GithubIssue | None:
        """Return the oldest issue that carries the request, or None."""
        params: dict[str, str | int] = {"state": "all", "sort": "created", "direction": "desc"}
        own = self.people.own_login()
        if own:
            params["creator"] = own
        marker, found = format_request_marker(request_id), None
        first = self._rest.get(f"{self._path}/issues", "issues", {**params, "per_page": 100})
        for page in self._rest.pages(first, "issues"):
            rows = read_rows(page)
            for row in rows:
                is_own = not own or read_author(row).login.lower() == own.lower()
                if is_own and "pull_request" not in row and marker in read_text(row.get("body")):
                    found = _read_issue(row)
            if rows and min(read_time(row.get("created_at")) for row in rows) < since - _BEFORE_S:
                break
        return found

    def open(self, request_id: str, title: str, body: str, since: float) -> GithubIssue:
        """Return the request's issue, opening it if there is none."""
        return self.find(request_id, since) or self._create(request_id, title, body)

    def _create(self, request_id: str, title: str, body: str) -> GithubIssue:
        self._ensure_labels()
        text = f"{body[:LONGEST_BODY]}\n\n{format_request_marker(request_id)}\n"
        fields = {"title": title[:250], "body": text, "labels": list(self._labels)}
        return _read_issue(self._rest.post(f"{self._path}/issues", "new issues", fields))

    def _ensure_labels(self) -> None:
        """Make the labels that help people find the issue; it is opened even if that fails."""
        for name in self._labels:
            try:
                fields = {"name": name, "color": _COLOUR}
                self._rest.post(f"{self._path}/labels", "labels", fields)
            except GithubError as error:
                if error.status not in (403, 404, 422):
                    raise

    def comment(self, number: int, body: str) -> None:
        self._rest.post(f"{self._path}/issues/{number}/comments", "comments", {"body": body})

    def comments(self, number: int, since: str, etag: str) -> GithubResponse:
        """Return the first page of comments written or edited since a time, if anything changed."""
        params: dict[str, str | int] = {"per_page": 100}
        if since:
            params["since"] = since
        path = f"{self._path}/issues/{number}/comments"
        return self._rest.get(path, f"issue {number}", params, etag)

    def page(self, url: str, number: int, etag: str = "") -> GithubResponse:
        return self._rest.get(url, f"issue {number}", etag=etag)

    def state(self, number: int, etag: str) -> GithubResponse:
        return self._rest.get(f"{self._path}/issues/{number}", f"issue {number}", etag=etag)

    def label_events(self, number: int) -> tuple[LabelEvent, ...]:
        """Return who set and removed the approving label, and when, if GitHub says so."""
        path, what = f"{self._path}/issues/{number}/events", f"events of issue {number}"
        try:
            first = self._rest.get(path, what, {"per_page": 100})
            rows = [row for page in self._rest.pages(first, what) for row in read_rows(page)]
        except GithubError as error:
            if error.status != 404:
                raise
            return ()
        return tuple(event for row in rows if (event := _read_label_event(row)) is not None)


def format_request_marker(request_id: str) -> str:
    """Return the hidden marker of a request's issue."""
    return f"<!-- interlock:request {request_id} -->"


def _has_approved_label(row: Any) -> bool:
    labels = get_field(row, "labels")
    labels = labels if isinstance(labels, list) else []
    names = [read_text(get_field(label, "name") or label) for label in labels]
    return APPROVED_LABEL in map(str.lower, names)


def _format_since(at: float) -> str:
    """Format a time for GitHub's `since`; "" if there is none."""
    return format_timestamp(at) if at > 0 else ""


def _read_issue(row: Any) -> GithubIssue:
    number = get_field(row, "number")
    if not isinstance(number, int) or isinstance(number, bool):
        raise GithubError("GitHub described an issue without a number.")
    author = read_author(row).login
    return GithubIssue(
        number, read_time(row.get("created_at")), author, read_text(row.get("html_url"))
    )


def _read_label_event(row: dict[str, Any]) -> LabelEvent | None:
    name, what = read_text(get_field(row.get("label"), "name")), row.get("event")
    if what not in ("labeled", "unlabeled") or name.lower() != APPROVED_LABEL:
        return None
    at = read_time(row.get("created_at"))
    return LabelEvent(name, read_person(row.get("actor")), at, what == "labeled")


STATE_EVERY: Final = 4
"""The interval of polls that fetch the issue's state and labels instead of its comments."""


class IssuePoll:
    """One issue, as far as it was read."""

    def __init__(self, issues: Issues, issue: GithubIssue) -> None:
        self.issue = issue
        self._issues = issues
        self._polls = 0
        self._comments: dict[str, Comment] = {}
        self._labels: tuple[LabelEvent, ...] = ()
        self._closed = False
        self._changed = True
        """True if something was read that the caller has not seen yet."""
        self._since = _format_since(issue.at)
        self._tail = ""
        """The last page, for a server that ignores `since`."""
        self._etags = {"comments": "", "state": ""}

    def look(self, *, all_of_it: bool = False) -> Thread | None:
        """Return the thread if anything changed, else None."""
        first = self._polls == 0
        asks_state = first or all_of_it or self._polls % STATE_EVERY == 0
        asks_comments = first or all_of_it or not asks_state
        if asks_comments:
            self._changed = self._read_comments() or self._changed
        if asks_state:
            self._changed = self._read_state() or self._changed
        self._polls += 1
        changed, self._changed = self._changed, False
        if not changed:
            return None
        return Thread(tuple(self._comments.values()), self._labels, self._closed)

    def _read_comments(self) -> bool:
        number, etag = self.issue.number, self._etags["comments"]
        if self._tail:
            answer = self._issues.page(self._tail, number, etag)
        else:
            answer = self._issues.comments(number, self._since, etag)
        return self._add_pages(answer) if answer.fresh else False

    def _add_pages(self, answer: GithubResponse) -> bool:
        """Read all pages from this one on, and remember where to start next time."""
        before, found, tail = dict(self._comments), list[Comment](), self._tail
        for _ in range(MOST_PAGES):
            found += [read_comment(row) for row in read_rows(answer)]
            if not answer.next_url:
                break
            tail = answer.next_url
            answer = self._issues.page(tail, self.issue.number)
        else:
            raise GithubError(f"issue {self.issue.number} has more than {MOST_PAGES} pages.")
        self._comments |= {comment.comment_id: comment for comment in found}
        newest = _format_since(max((comment.at for comment in found), default=0.0))
        is_filtered = all(_format_since(comment.at) >= self._since for comment in found)
        if not is_filtered:
            self._tail = tail
        if is_filtered and newest > self._since:
            self._since, self._etags["comments"] = newest, ""
        else:
            self._etags["comments"] = answer.etag
        return self._comments != before

    def _read_state(self) -> bool:
        answer = self._issues.state(self.issue.number, self._etags["state"])
        if not answer.fresh:
            return False
        before, labels = (self._labels, self._closed), tuple[LabelEvent, ...]()
        if _has_approved_label(answer.data):
            labels = self._issues.label_events(self.issue.number)
        self._labels, self._closed = labels, read_text(get_field(answer.data, "state")) == "closed"
        self._etags["state"] = answer.etag
        return before != (self._labels, self._closed)
