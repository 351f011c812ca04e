"""What reviewers say to us in a pull request: read from its comments, remembered, acknowledged.

`/interlock not-this`, `flaky`, `cause 12` and `undo`, read as strictly as an approval: at column 0
of a line of its own, outside quotes and code, by somebody with write access, in a comment that
nobody edited. An event only says where to look; what was said is read from the server. The report's
own comment carries what it reported (fingerprints and hashes, no text of a test) and what was said
about it, so that a number means the same later, and each comment counts once.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from interlock.rca.ci.forge import COMMAND, Forge
from interlock.rca.history.statements import (
    Action,
    Statement,
    Statements,
    check_hashes,
    number_failure,
    unite_statements,
)
from interlock.signals.comments import (
    LONGEST,
    find_commands,
    find_doubt,
    find_live_text,
    find_reply_marks,
    format_reply_marker,
    has_own_marker,
)
from interlock.system.errors import SourceError
from interlock.system.github_comments import Comment
from interlock.system.text import escape_markdown

MOST_HASHES: Final = 5
"""Fingerprints and tests of one cause that its report names: the comment has a limit."""
MOST_CAUSES: Final = 50
_MOST_STATEMENTS: Final = 50
_BLOCK: Final = re.compile(r"<!-- interlock:report (\{[^<>]{0,60000}\}) -->")
_SAID: Final = re.compile(r"<!-- interlock:said -->.*?<!-- interlock:end -->", re.DOTALL)
_ARGUMENTS: Final[Mapping[Action, re.Pattern[str]]] = {
    "not-this": re.compile(r"(?:[ \t]+(?:for[ \t]+)?#?(?P<target>[0-9]{1,9}))?"),
    "flaky": re.compile(r"(?:[ \t]+(?:for[ \t]+)?#?(?P<target>[0-9]{1,9}))?"),
    "cause": re.compile(
        r"[ \t]+#?(?P<number>[0-9]{1,9})(?:[ \t]+for[ \t]+#?(?P<target>[0-9]{1,9}))?"
    ),
    "undo": re.compile(r"(?:[ \t]+(?:for[ \t]+)?#?(?P<target>[0-9]{1,9}))?"),
}
HELP: Final = f"""\
| command | means |
|---|---|
| `{COMMAND} not-this` | the suspect is wrong: it is not shown again for this failure |
| `{COMMAND} flaky` | you say that the test is flaky; it is shown, and nothing is quarantined |
| `{COMMAND} cause 12` | this failure is the known cause 12 |
| `{COMMAND} undo` | takes back what was said about this failure |

Each stands alone on its line. If the report names several causes, add the number of the one you
mean: `{COMMAND} not-this 48213`, `{COMMAND} cause 12 for 48213`."""


class ReportedCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cause, or a failure without one, as the report names it."""

    fingerprints: tuple[str, ...]
    tests: tuple[str, ...] = ()
    commit: str = ""
    """Its first suspect."""

    @property
    def number(self) -> int:
        return number_failure(min(self.fingerprints))

    def has_number(self, number: int) -> bool:
        return any(number_failure(each) == number for each in self.fingerprints)


class ReportBlock(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the comment of a report carries for us."""

    causes: tuple[ReportedCause, ...] = ()
    said: tuple[Statement, ...] = ()


class KnownCause(msgspec.Struct, frozen=True):
    """A cause that a failure can be joined to."""

    title: str
    fingerprints: tuple[str, ...] = ()


FindCause = Callable[[int], KnownCause | None]


class Command(msgspec.Struct, frozen=True):
    """One command of a comment, understood."""

    action: Action
    target: int = 0
    number: int = 0


class ReviewerComments(msgspec.Struct, frozen=True):
    """What a pull request says to us."""

    statements: tuple[Statement, ...] = ()
    """All that count, those read before too."""
    new: tuple[Statement, ...] = ()
    replies: int = 0
    reports: int = 0
    problems: tuple[str, ...] = ()


def read_commands(body: str) -> list[Command] | str:
    """The commands of a comment, or why they are not clear. Empty if nobody speaks to us."""
    if COMMAND not in body.lower():
        return []
    if len(body) > LONGEST:
        return f"it has more than {LONGEST:,} characters"
    live = find_live_text(body)
    ours = [each for each in find_commands(live.text, body) if each.word == COMMAND[1:]]
    found: list[Command] = []
    rest = live.text
    for each in ours:
        if each.is_marked or (each.start and body[each.start - 1] != "\n"):
            return "a command stands at the very start of its line"
        end = live.text.find("\n", each.end)
        end = len(live.text) if end < 0 else end
        words = live.text[each.end : end].rstrip()
        understood = _read_command(words)
        if isinstance(understood, str):
            return understood
        found.append(understood)
        rest = rest[: each.start] + " " * (end - each.start) + rest[end:]
    if not found:
        return []
    if live.is_doubtful:
        return "a line of it is part of a quote, or indented like code"
    targets = [each.target for each in found]
    if len(targets) > len(set(targets)):
        return "it says several things about the same failure"
    if any(each.action in ("flaky", "cause") for each in found) and (hit := find_doubt(rest)):
        return f'"{hit[0].strip()}" beside the command may be meant against it: write it alone'
    return found


def _read_command(words: str) -> Command | str:
    name = next(iter(words.split(maxsplit=1)), "")
    for action, arguments in _ARGUMENTS.items():
        if name == action and words[:1].isspace():
            hit = arguments.fullmatch(words.strip()[len(name) :])
            if hit is None:
                return f"`{COMMAND} {action}` is followed by something else than numbers"
            parts = hit.groupdict()
            return Command(action, int(parts["target"] or 0), int(parts.get("number") or 0))
    return f"`{escape_markdown(name, 40)}` is no command" if name else "it names no command"


def format_block(block: ReportBlock) -> str:
    """The hidden line of a report. Nothing in it can end the comment that hides it: angle brackets
    are written as escapes."""
    kept = msgspec.structs.replace(
        block, causes=block.causes[:MOST_CAUSES], said=block.said[-_MOST_STATEMENTS:]
    )
    text = msgspec.json.encode(kept).decode()
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
    return f"<!-- interlock:report {text} -->"


def read_block(body: str) -> ReportBlock | None:
    """What a report of ours carries; None if it is none, or was changed by somebody."""
    hit = _BLOCK.search(body)
    if hit is None:
        return None
    try:
        found = msgspec.json.decode(hit[1], type=ReportBlock)
        for cause in found.causes:
            check_hashes((*cause.fingerprints, *cause.tests), "the report")
        for each in found.said:
            check_hashes((*each.fingerprints, *each.tests, *each.joined), "the report")
    except (msgspec.MsgspecError, SourceError):
        return None
    is_sound = all(cause.fingerprints for cause in found.causes)
    return found if is_sound and all(each.fingerprints for each in found.said) else None


def format_said(said: Sequence[Statement]) -> str:
    """What reviewers said, to be read in the report."""
    lines = []
    for each in said[-10:]:
        number = number_failure(min(each.fingerprints))
        lines.append(f"- {number}: {escape_markdown(each.describe(), 300)}")
    body = "\n".join(["", "**Reviewers said**", "", *lines, "", ""]) if lines else ""
    return f"<!-- interlock:said -->{body}<!-- interlock:end -->"


def _replace_said(body: str, block: ReportBlock) -> str:
    """The text of a report with other statements. What is about none of its causes is kept, and
    not shown."""
    every = Statements(block.said)
    shown = unite_statements(*(every.find(each.fingerprints, each.tests) for each in block.causes))
    body = _BLOCK.sub(lambda _: format_block(block), body, count=1)
    return _SAID.sub(lambda _: format_said(shown.every), body, count=1)


class Listener:
    """Reads what people say in pull requests of one repository."""

    def __init__(
        self, forge: Forge, project: str, find_cause: FindCause, known: Statements
    ) -> None:
        self._forge = forge
        self._project = project
        self._find_cause = find_cause
        self._known = known

    def read(self, pr: str, *, is_asked: bool = True) -> ReviewerComments:
        """Take what is new in a pull request and acknowledge it. `is_asked` says that somebody
        spoke to us there for sure: then they get a reply even if there is no report."""
        comments = self._forge.list_comments(pr)
        own = [each for each in comments if self._forge.is_own(each)]
        blocks = {each.comment_id: block for each in own if (block := read_block(each.body))}
        if not blocks and not is_asked:
            return ReviewerComments()
        reports = [(each, blocks[each.comment_id]) for each in own if each.comment_id in blocks]
        replied = {mark for each in own for mark in find_reply_marks(each.body)}
        here = [each for each in self._known.every if each.pr == pr]
        before = unite_statements(here, *(block.said for _, block in reports)).every
        seen = {each.comment for each in before}
        taken: list[Statement] = []
        replies = 0
        problems: list[str] = []
        for comment in comments:
            if comment in own or comment.comment_id in seen or not self._may_count(comment):
                continue
            said = self._read(comment, pr, reports)
            mark = f"{comment.comment_id}@{comment.at:.0f}"
            try:
                if isinstance(said, str):
                    if mark not in replied:
                        self._forge.create(pr, format_reply(comment, said, mark))
                        replies += 1
                    continue
                taken += said
                self._forge.acknowledge(pr, comment.comment_id)
            except SourceError as error:
                problems.append(str(error))
        every = unite_statements(before, taken).every
        return ReviewerComments(every, tuple(taken), replies, len(reports), tuple(problems))

    def show(self, pr: str, said: Collection[Statement]) -> int:
        """Write into the reports of a pull request what was said about them; how many changed."""
        changed = 0
        for each in self._forge.list_comments(pr):
            block = read_block(each.body) if self._forge.is_own(each) else None
            if block is None:
                continue
            united = unite_statements(block.said, said).every
            text = _replace_said(each.body, msgspec.structs.replace(block, said=united))
            if text != each.body:
                self._forge.edit(pr, each.comment_id, text)
                changed += 1
        return changed

    def _may_count(self, comment: Comment) -> bool:
        """Whether a comment speaks to us, and its author has the right; asked in that order, as
        every author is a request."""
        if comment.author.is_bot or has_own_marker(comment.body):
            return False
        return bool(read_commands(comment.body)) and self._forge.may_write(comment.author)

    def _read(
        self, comment: Comment, pr: str, reports: Sequence[tuple[Comment, ReportBlock]]
    ) -> list[Statement] | str:
        commands = read_commands(comment.body)
        if isinstance(commands, str):
            return commands
        if comment.edited_by:
            return "it was edited, and it is not known by whom: write it in a new comment"
        if not reports:
            return "there is no report of mine in this pull request"
        found: list[Statement] = []
        for command in commands:
            made = self._make_statement(command, comment, pr, reports)
            if isinstance(made, str):
                return made
            found.append(made)
        return found

    def _make_statement(
        self,
        command: Command,
        comment: Comment,
        pr: str,
        reports: Sequence[tuple[Comment, ReportBlock]],
    ) -> Statement | str:
        cause = _find_target(command.target, comment, reports)
        if isinstance(cause, str):
            return cause
        known = KnownCause("")
        if command.action == "cause":
            if cause.has_number(command.number):
                return f"{command.number} is the failure itself: name the cause that is known"
            found = self._find_cause(command.number) or _find_reported(command.number, reports)
            if found is None:
                return f"no cause {command.number} is known"
            known = found
        is_joined = any(each.action == "cause" for each in self._known.find(cause.fingerprints))
        if command.action == "not-this" and not cause.commit and not is_joined:
            return f"no suspect is named for {cause.number}, so there is nothing to refuse"
        return Statement(
            action=command.action,
            by=comment.author.login,
            at=comment.at,
            comment=comment.comment_id,
            fingerprints=cause.fingerprints,
            tests=cause.tests,
            project=self._project,
            pr=pr,
            commit=cause.commit if command.action == "not-this" else "",
            number=command.number,
            title=known.title[:200],
            joined=known.fingerprints[:MOST_HASHES],
        )


def _find_target(
    number: int, comment: Comment, reports: Sequence[tuple[Comment, ReportBlock]]
) -> ReportedCause | str:
    """What a command is about. Without a number it is the only cause there is, if the report has
    not changed since."""
    causes = [cause for _, block in reports for cause in block.causes]
    if number:
        found = [cause for cause in causes if cause.has_number(number)]
        if len(found) == 1:
            return found[0]
        return (
            f"the report names {'several causes' if found else 'no cause'} {number}{_list(causes)}"
        )
    if len(causes) != 1:
        return f"the report names {'several causes' if causes else 'no cause'}{_list(causes)}"
    if any(report.at > comment.at for report, _ in reports):
        return f"the report has changed since: if you mean {causes[0].number}, say so"
    return causes[0]


def _list(causes: Sequence[ReportedCause]) -> str:
    numbers = ", ".join(str(each.number) for each in causes[:10])
    return f" (there are {numbers})" if numbers else ""


def _find_reported(
    number: int, reports: Iterable[tuple[Comment, ReportBlock]]
) -> KnownCause | None:
    """Another cause of the same report."""
    for _, block in reports:
        for cause in block.causes:
            if cause.has_number(number):
                return KnownCause("", cause.fingerprints)
    return None


def format_reply(comment: Comment, why: str, mark: str) -> str:
    login = re.sub(r"[^\w.-]", "", comment.author.login)
    return (
        f"@{login}, this comment is not clear enough: {why}.\n\n{HELP}\n\n"
        f"{format_reply_marker(mark)}"
    )
