"""Read what a whole issue decides: its comments, its `approved` label, and whether it was closed.

Bots, our own account, people without the right to answer and comments from before the request do
not count. The last comment of each person counts, and of several people the most cautious one; an
unclear comment only holds back approvals that are older, and those of the same person.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from interlock.signals.comments import (
    CAUTION,
    CommentDecision,
    CommentReading,
    find_reply_marks,
    has_own_marker,
    read_comment,
)
from interlock.system.github_comments import UNKNOWN_EDITOR, Author, Comment

APPROVED_LABEL: Final = "approved"
TRUSTED: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Associations that give the right to answer, where nothing better is known."""
CLOSED: Final = "closed"
"""Marks our reply to an issue that was closed without an answer."""

MayAnswer = Callable[[Author], bool]


class LabelEvent(msgspec.Struct, frozen=True):
    """A label was set or removed."""

    label: str
    actor: Author
    at: float
    on: bool = True


class Thread(msgspec.Struct, frozen=True):
    """The parts of an issue that can be an answer."""

    comments: tuple[Comment, ...] = ()
    labels: tuple[LabelEvent, ...] = ()
    closed: bool = False


class Request(msgspec.Struct, frozen=True):
    """A request for an answer, its time, and the account that Interlock uses."""

    request_id: str
    at: float
    own: str = ""


class JudgedComment(msgspec.Struct, frozen=True):
    """A comment and its reading."""

    comment: Comment
    reading: CommentReading

    @property
    def mark(self) -> str:
        """Identifies the comment in our reply. After an edit it differs: we may reply again."""
        return f"{self.comment.comment_id}@{self.comment.at:.0f}"


class ThreadState(msgspec.Struct, frozen=True):
    """The answer and its author, or the comments to reply to."""

    judged: tuple[JudgedComment, ...]
    answer: CommentReading | None = None
    answered_by: str = ""
    unclear: tuple[JudgedComment, ...] = ()
    """Unclear comments that have no reply of ours yet; none once there is an answer."""
    is_closed_unanswered: bool = False


def may_answer(allowed: Iterable[str] = ()) -> MayAnswer:
    """Return a check for those on the list, or else for those whose association is trusted."""
    names = {name.lower().lstrip("@") for name in allowed}
    if names:
        return lambda author: author.login.lower() in names
    return lambda author: author.association.upper() in TRUSTED


def read_thread(thread: Thread, request: Request, may: MayAnswer) -> ThreadState:
    """Return the answer, if there is one, and the reading of every comment."""
    ordered = sorted(thread.comments, key=lambda comment: comment.at)
    judged = tuple(
        JudgedComment(comment, judge_comment(comment, request, may)) for comment in ordered
    )
    counted = [entry for entry in judged if entry.reading.decision is not CommentDecision.IGNORED]
    last = {entry.comment.author.login.lower(): entry for entry in counted}
    answer, by = _find_answer([*last.values()], _find_label(thread.labels, request, may))
    if answer is not None:
        return ThreadState(judged, answer, by)
    replied = _find_replied(thread.comments, request)
    unclear = tuple(
        entry
        for entry in counted
        if entry.reading.decision is CommentDecision.UNCLEAR and entry.mark not in replied
    )
    return ThreadState(judged, None, "", unclear, thread.closed and CLOSED not in replied)


def judge_comment(comment: Comment, request: Request, may: MayAnswer) -> CommentReading:
    """Return the reading of one comment, by its author, its time and its words."""
    reason = find_ignore_reason(comment, request, may)
    if reason:
        return CommentReading(CommentDecision.IGNORED, reason)
    reading = read_comment(comment.body, request.request_id)
    editor, author = comment.edited_by.lower(), comment.author.login.lower()
    if editor in ("", author):
        return reading
    if editor != UNKNOWN_EDITOR:
        why = f"{comment.edited_by} edited it, not its author"
        return CommentReading(CommentDecision.UNCLEAR, why)
    if reading.decision is CommentDecision.APPROVE:
        why = "it was edited, and GitHub does not say by whom"
        return CommentReading(CommentDecision.UNCLEAR, why)
    return reading


def find_ignore_reason(comment: Comment, request: Request, may: MayAnswer) -> str:
    """Return why a comment cannot be an answer whatever it says; empty if it can."""
    author = comment.author
    if has_own_marker(comment.body):
        return "it carries our own marker"
    if author.is_bot:
        return f"{author.login} is a bot"
    if comment.at < request.at:
        return "it is older than the request"
    if request.own and author.login.lower() == request.own.lower():
        return f"{author.login} is the account that Interlock uses; answer in the inbox instead"
    if not may(author):
        return f"{author.login} may not answer"
    return ""


def _find_replied(comments: Sequence[Comment], request: Request) -> set[str]:
    """Return the marks of what we replied to, by our own account if that is known."""
    own = request.own.lower()
    ours = [comment for comment in comments if not own or comment.author.login.lower() == own]
    return {mark for comment in ours for mark in find_reply_marks(comment.body)}


def _find_label(
    events: Sequence[LabelEvent], request: Request, may: MayAnswer
) -> LabelEvent | None:
    """Return the approving label if it is on, set after the request by someone who may."""
    named = [event for event in events if event.label.lower() == APPROVED_LABEL]
    named.sort(key=lambda event: event.at)
    if not named or not named[-1].on or named[-1].at < request.at:
        return None
    actor = named[-1].actor
    is_own = request.own and actor.login.lower() == request.own.lower()
    return None if actor.is_bot or is_own or not may(actor) else named[-1]


def _find_answer(
    last: list[JudgedComment], label: LabelEvent | None
) -> tuple[CommentReading | None, str]:
    """Return the most cautious answer and its author; None while there is none that counts."""
    unclear = [each for each in last if each.reading.decision is CommentDecision.UNCLEAR]
    since = max((each.comment.at for each in unclear), default=float("-inf"))
    answers = [
        (each.reading, each.comment.author.login)
        for each in last
        if each.reading.decision is not CommentDecision.UNCLEAR
        and (each.reading.decision is not CommentDecision.APPROVE or each.comment.at > since)
    ]
    if label is not None and label.at > since:
        login = label.actor.login
        if login.lower() not in (each.comment.author.login.lower() for each in unclear):
            why = f"{login} set the label {APPROVED_LABEL}"
            answers.append((CommentReading(CommentDecision.APPROVE, why), login))
    answers.sort(key=lambda pair: CAUTION.index(pair[0].decision))
    return answers[0] if answers else (None, "")
