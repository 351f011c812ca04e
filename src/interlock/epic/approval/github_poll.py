"""Watching one issue: each look is one conditional request unless something changed.

Knows which of the two pages to ask next and what has been seen so far. Refuses to know what it
means; the thread goes to `wire/comment_thread`.
"""

from typing import Final

from interlock.epic.approval.comment_thread import Comment, LabelEvent, Thread
from interlock.epic.approval.github_issues import (
    GithubIssue,
    Issues,
    comment_of,
    has_approved_label,
    is_closed,
    rows_of,
    thread_of,
    written_at,
)
from interlock.epic.approval.github_rest import MOST_PAGES, GithubError, GithubResponse

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
