"""What a whole issue comes to: its comments, its `approved` label, its being closed.

Knows who counts: not bots, not our own account, not those without the right, not what came before
the request. The last word of each person counts, and of several people the most cautious one.
Refuses to know where the thread came from.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from interlock.epic.approval.comment import read_comment
from interlock.epic.approval.comment_kind import Kind
from interlock.epic.approval.comment_verdict import CAUTION, CommentDecision, CommentReading
from interlock.signals.own_words import units

APPROVED_LABEL: Final = "approved"
TRUSTED: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Associations that stand for the right to answer, where nothing better is known."""
UNKNOWN_EDITOR: Final = "?"
_MARKER: Final = re.compile(r"<!--\s*interlock\b", re.IGNORECASE)
_ASKED: Final = re.compile(r"<!--\s*interlock:asked-back (\S{1,80})\s*-->")
_DOUBTING: Final = (Kind.WAIT, Kind.SARCASM, Kind.BACK, Kind.NEGATION, Kind.QUESTION)


class Author(msgspec.Struct, frozen=True):
    """Who wrote or did something."""

    login: str
    association: str = ""
    bot: bool = False

    @property
    def is_bot(self) -> bool:
        return self.bot or self.login.lower().endswith("[bot]")


class Comment(msgspec.Struct, frozen=True):
    """One comment as it stands now."""

    comment_id: str
    author: Author
    body: str
    at: float
    """When it was last edited, or written."""
    edited_by: str = ""
    """Who edited it; `?` if that cannot be known, nothing if nobody did."""


class LabelEvent(msgspec.Struct, frozen=True):
    """A label was set or taken away."""

    label: str
    actor: Author
    at: float
    on: bool = True


class Thread(msgspec.Struct, frozen=True):
    """An issue as far as it can answer."""

    comments: tuple[Comment, ...] = ()
    labels: tuple[LabelEvent, ...] = ()
    closed: bool = False


class Request(msgspec.Struct, frozen=True):
    """What was asked, when, and under whose account."""

    request_id: str
    at: float
    own: str = ""


class JudgedComment(msgspec.Struct, frozen=True):
    """A comment and what it is taken for."""

    comment: Comment
    verdict: CommentReading


class ThreadState(msgspec.Struct, frozen=True):
    """How the thread stands: a decision and who gave it, or who is to be asked back."""

    judged: tuple[JudgedComment, ...]
    decision: CommentReading | None = None
    by: str = ""
    ask_back: tuple[JudgedComment, ...] = ()
    closed_unclear: bool = False


May = Callable[[Author], bool]


def may_answer(allowed: Iterable[str] = ()) -> May:
    """Those on the list; without one, those whose association stands for the right."""
    names = {name.lower().lstrip("@") for name in allowed}
    if names:
        return lambda author: author.login.lower() in names
    return lambda author: author.association.upper() in TRUSTED


def judge(comment: Comment, request: Request, may: May) -> CommentReading:
    """What one comment is taken for, by who wrote it and when, and by its words."""
    reason = ignored(comment, request, may)
    if reason:
        return CommentReading(CommentDecision.IGNORED, reason)
    verdict = read_comment(comment.body, request.request_id)
    if comment.edited_by and comment.edited_by.lower() != comment.author.login.lower():
        if comment.edited_by != UNKNOWN_EDITOR:
            return CommentReading(
                CommentDecision.UNCLEAR, f"{comment.edited_by} edited it, not its author"
            )
        if verdict.outcome is CommentDecision.APPROVE:
            return CommentReading(
                CommentDecision.UNCLEAR, "it was edited, and who did that cannot be known"
            )
    return verdict


def ignored(comment: Comment, request: Request, may: May) -> str:
    """Why a comment is no answer whatever it says; empty if it may be one."""
    author = comment.author
    if carries_marker(comment.body):
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


def carries_marker(body: str) -> bool:
    """Whether we wrote this: our hidden marker stands outside a quote."""
    if not _MARKER.search(body):
        return False
    return any(_MARKER.search(unit.text) for unit in units("\n" + body) if unit.kind != "quote")


def asked_back_mark(comment_id: str) -> str:
    """The marker of our own question about an unclear comment."""
    return f"<!-- interlock:asked-back {comment_id} -->"


def read_thread(thread: Thread, request: Request, may: May) -> ThreadState:
    """The decision, if there is one, and every comment's verdict."""
    ordered = sorted(thread.comments, key=lambda each: each.at)
    judged = tuple(JudgedComment(each, judge(each, request, may)) for each in ordered)
    last = {
        each.comment.author.login.lower(): each
        for each in judged
        if each.verdict.outcome is not CommentDecision.IGNORED
    }
    stances = [*last.values()]
    label = _label(thread.labels, request, may)
    decision, by = _decided(stances, label)
    asked = _asked(thread.comments, request)
    unclear = [each for each in stances if each.verdict.outcome is CommentDecision.UNCLEAR]
    return ThreadState(
        judged,
        decision,
        by,
        tuple(each for each in unclear if decision is None and _mark(each.comment) not in asked),
        thread.closed and decision is None and "closed" not in asked,
    )


def _mark(comment: Comment) -> str:
    """A comment that was edited after we asked may be asked about again."""
    return f"{comment.comment_id}@{comment.at:.0f}"


def mark_of(judged: JudgedComment) -> str:
    """What to put into `asked_back_mark` for this comment."""
    return _mark(judged.comment)


def _asked(comments: Sequence[Comment], request: Request) -> set[str]:
    """What we have asked about already; only our own account's marks count, if it is known."""
    own = request.own.lower()
    ours = [each for each in comments if not own or each.author.login.lower() == own]
    return {mark for each in ours for mark in _ASKED.findall(each.body)}


def _label(events: Sequence[LabelEvent], request: Request, may: May) -> LabelEvent | None:
    """The approving label as it is on now, set after the request by someone who may."""
    now = None
    for event in sorted(events, key=lambda each: each.at):
        if event.label.lower() == APPROVED_LABEL:
            now = event if event.on else None
    if now is None or now.at < request.at or now.actor.is_bot or not may(now.actor):
        return None
    return None if request.own and now.actor.login.lower() == request.own.lower() else now


def _decided(
    stances: list[JudgedComment], label: LabelEvent | None
) -> tuple[CommentReading | None, str]:
    voices = [(each.verdict, each.comment.author.login) for each in stances if _speaks(each, label)]
    if label is not None:
        why = f"{label.actor.login} set the label {APPROVED_LABEL}"
        voices.append((CommentReading(CommentDecision.APPROVE, why), label.actor.login))
    voices.sort(key=lambda each: CAUTION.index(each[0].outcome))
    if not voices or voices[0][0].outcome is CommentDecision.UNCLEAR:
        return None, ""
    return voices[0]


def _speaks(judged: JudgedComment, label: LabelEvent | None) -> bool:
    """An unclear word holds an approval back if it doubts, or if it is of who set the label."""
    if judged.verdict.outcome is not CommentDecision.UNCLEAR:
        return True
    own = label is not None and label.actor.login.lower() == judged.comment.author.login.lower()
    return own or any(span.kind in _DOUBTING for span in judged.verdict.evidence)
