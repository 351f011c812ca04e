"""Whether the signal that counts is sound: its dispatch, its task, its body.

Opens a message into blocks, gathers all blocks that make the winning claim, and checks them. Each
check returns a refusal or None, in the order in which reasons win. A refusal carries a sentence
that tells the agent what to write next time.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from interlock.signals.body import (
    LONGEST_BODY,
    ReportedCheck,
    SectionText,
    SignalBody,
    is_negative,
    list_entries,
    parse_section,
    read_body,
)
from interlock.signals.catalogue import SignalRow
from interlock.signals.grammar import (
    MALFORMED,
    SIGNALS,
    SignalName,
    is_outside_workspace,
    parse_signal_line,
    tag_nonce,
)
from interlock.signals.reading import Reason, SignalRefused


def format_first_line(row: SignalRow, task_id: str | None) -> str:
    """The signal line as it must be written, with the task's id where one is known."""
    line = row.grammar
    return line.replace("[task_id]", task_id) if task_id else line


def format_choices(legal: Sequence[SignalRow], task_id: str | None) -> str:
    lines = [f"`{format_first_line(row, task_id)}`" for row in legal]
    return "one of " + ", ".join(lines) if lines else "a signal your role may say"


def explain_missing(legal: Sequence[SignalRow], task_id: str | None) -> str:
    return (
        "No signal was found. End your message with a signal line at column 0, outside fences "
        f"and quotes: {format_choices(legal, task_id)}."
    )


def explain_unknown(name: str, legal: Sequence[SignalRow], task_id: str | None) -> str:
    return f"`{name}` is not a signal of this protocol. Write {format_choices(legal, task_id)}."


def explain_lookalike(word: str, legal: Sequence[SignalRow], task_id: str | None) -> str:
    lines = [format_first_line(row, task_id) for row in legal if row.word == word]
    wanted = " or ".join(f"`{line}`" for line in lines) or format_choices(legal, task_id)
    return (
        f"A line names {word} but is not a legal signal. Write it alone on its line, at column 0, "
        f"without markup, outside fences and quotes, exactly: {wanted}."
    )


def explain_wrong_role(row: SignalRow, role: str) -> str:
    speakers = " or ".join(row.roles)
    return f"Only the {speakers} may send {row.name}, not the {role}. Send a signal of your role."


def explain_ambiguous(signals: Sequence[SignalName]) -> str:
    distinct = dict.fromkeys(f"{one.row.name} {one.subject or ''}".strip() for one in signals)
    names = list(distinct)[:4]
    return f"Your message says {' and '.join(names)}. Send it again with one signal only."


def explain_wrong_task(row: SignalRow, named: str, expected: str) -> str:
    return f"You were asked about {expected}, but {row.name} names {named}. Write {expected}."


def explain_stale(nonce: str) -> str:
    return f"The answer does not carry this dispatch's mark. Add the line `Dispatch: {nonce}`."


def explain_outside_path(row: SignalRow) -> str:
    return f"{row.name} takes a path inside the workspace, relative to its root."


def explain_prose(row: SignalRow) -> str:
    labels = ", ".join(f"`{section.label}:`" for section in row.sections)
    return (
        f"Prose follows {row.name} before any section. Only its sections may come after the "
        f"signal line: {labels}. Put explanations before it."
    )


def explain_repetition(row: SignalRow) -> str:
    return f"{row.name} is repeated too often. Send it once, at the end."


def explain_stray_text(row: SignalRow) -> str:
    labels = ", ".join(f"`{section.label}:`" for section in row.sections)
    return (
        f"{row.name} lets work pass, so it must stand alone: send the verdict with only its "
        f"sections {labels}."
    )


def explain_contradiction(row: SignalRow, check: object) -> str:
    name = re.sub(r"\s+", " ", str(getattr(check, "name", check)))[:80]
    status = getattr(check, "status", "")
    return f"{row.name} lists `{name}` as {status}. A pass requires every item to hold."


def explain_absent_section(row: SignalRow, labels: Sequence[str], task_id: str | None) -> str:
    wanted = " or ".join(f"`{label}:`" for label in labels)
    return (
        f"{format_first_line(row, task_id)} came without {wanted}. Send it again with that section "
        "filled in, without placeholders."
    )


class ExpectedReply(msgspec.Struct, frozen=True):
    """What the message answers: who was asked, about what, and under which nonce."""

    role: str
    task_id: str | None
    request_id: str | None = None
    nonce: str | None = None
    strict: bool = False


class SignalBlock(msgspec.Struct, frozen=True):
    """Signal lines with only blank lines between them; its body runs from `start` to `end`."""

    signals: tuple[SignalName, ...]
    start: int
    end: int


class Message(msgspec.Struct, frozen=True):
    """The source begins with a newline, so that every line does."""

    source: str
    expected: ExpectedReply
    blocks: tuple[SignalBlock, ...]

    def find_line(self, start: int) -> int:
        """The number of the line whose newline stands at `start`."""
        return self.source.count("\n", 0, start) + 1

    def refuse(self, reason: Reason, sentence: str, start: int | None = None) -> SignalRefused:
        return SignalRefused(reason, sentence, None if start is None else self.find_line(start))


def open_message(text: str, asked: ExpectedReply) -> Message:
    source = "\n" + text.removeprefix("\ufeff").replace("\r\n", "\n")
    if asked.nonce:
        source = tag_nonce(source, asked.nonce)
    return Message(source, asked, _find_blocks(source))


def _find_blocks(source: str) -> tuple[SignalBlock, ...]:
    groups: list[list[SignalName]] = []
    for line in SIGNALS.find(source):
        signal = parse_signal_line(line)
        if groups and not source[groups[-1][-1].end : signal.start].strip(" \t\n"):
            groups[-1].append(signal)
        else:
            groups.append([signal])
    ends = [*(group[0].start for group in groups[1:]), len(source)]
    return tuple(
        SignalBlock(tuple(group), group[-1].end, end)
        for group, end in zip(groups, ends, strict=False)
    )


_EMPTY: Final = frozenset({"", "none", "n/a", "na", "nothing", "tbd", "todo", "-", "..", "…"})
_WHOLE_PLACEHOLDER: Final = re.compile(r"\[[^\[\]\n]*\]\Z")
_BOX: Final = re.compile(r"\[[ xX]\][ \t]*")


def is_present(part: SectionText | None, row: SignalRow) -> bool:
    if part is None:
        return False
    if part.items or part.table:
        return any(is_filled(entry, row) for entry in list_entries(part))
    if part.section.kind == "checks" and row.alone:
        # A pass stands on items; a sentence counts as one only if it states a result.
        return any(check.status and is_filled(check.name, row) for check in parse_section(part))
    return any(is_filled(text, row) for text in (*part.text, *part.fences))


def is_filled(text: str, row: SignalRow) -> bool:
    plain = _BOX.sub("", text.strip(), count=1).strip("*_` \t")
    if plain.lower().rstrip(".") in _EMPTY or _WHOLE_PLACEHOLDER.match(plain):
        return False
    return not any(placeholder in plain for placeholder in _list_placeholders(row))


@cache
def _list_placeholders(row: SignalRow) -> tuple[str, ...]:
    return tuple(sorted(set(re.findall(r"\[[^\[\]\n]{2,}\]", row.template))))


# A signal said more often than this is read from its last blocks; nobody says it so often.
MOST_BLOCKS: Final = 256


class SignalClaim(msgspec.Struct, frozen=True):
    """The winning signal with every block that says it."""

    signal: SignalName
    blocks: tuple[SignalBlock, ...]
    bodies: tuple[SignalBody, ...]
    is_repeated_too_often: bool

    @property
    def sound_bodies(self) -> list[SignalBody]:
        return [body for body in self.bodies if body.prose_after_line is None]

    @property
    def all_sections(self) -> SignalBody:
        """The sections of all sound blocks, counted together."""
        whole = SignalBody()
        for body in self.sound_bodies:
            whole.add(body)
        return whole


def parse_claim(message: Message, signal: SignalName) -> SignalClaim:
    saying = [b for b in message.blocks if any(one.row is signal.row for one in b.signals)]
    blocks = tuple(saying[-MOST_BLOCKS:])
    bodies = tuple(_read_bodies(message, blocks, signal.row))
    return SignalClaim(signal, blocks, bodies, len(saying) > MOST_BLOCKS)


def _read_bodies(
    message: Message, blocks: Sequence[SignalBlock], row: SignalRow
) -> Iterator[SignalBody]:
    line, last = 1, 0
    for block in blocks:
        line, last = line + message.source.count("\n", last, block.start), block.start
        text = message.source[block.start : block.end]
        body = read_body(text, line, row)
        # Signals that share a block share its sections: what is one's label is no prose.
        others = {one.row for one in block.signals} - {row}
        if body.prose_after_line is not None and any(
            read_body(text, line, other).prose_after_line is None for other in others
        ):
            body.prose_after_line = None
        yield body


def check_claim(message: Message, claim: SignalClaim) -> SignalRefused | None:
    return (
        _check_nonce(message, claim)
        or _check_subject(message, claim)
        or _check_task_section(message, claim)
        or _check_path(message, claim)
        or _check_prose(message, claim)
        or _check_alone(message, claim)
        or _check_required(message, claim)
    )


def check_any_nonce(message: Message) -> SignalRefused | None:
    """Under strict signals a message that nowhere names its dispatch is stale before all else."""
    nonce = message.expected.nonce
    if not (message.expected.strict and nonce):
        return None
    blocks = message.blocks[-MOST_BLOCKS:]
    bodies = _read_bodies(message, blocks, blocks[-1].signals[-1].row)
    for block, body in zip(blocks, bodies, strict=True):
        if nonce in (*body.nonces, *(one.nonce for one in block.signals)):
            return None
    start = message.blocks[-1].signals[-1].start
    return message.refuse(Reason.STALE, explain_stale(nonce), start)


def _check_nonce(message: Message, claim: SignalClaim) -> SignalRefused | None:
    nonce = message.expected.nonce
    if nonce is None:
        return None
    given = [mark for mark in (claim.signal.nonce, *claim.bodies[-1].nonces) if mark]
    if all(mark == nonce for mark in given) and (given or not message.expected.strict):
        return None
    return message.refuse(Reason.STALE, explain_stale(nonce), claim.signal.start)


def _check_subject(message: Message, claim: SignalClaim) -> SignalRefused | None:
    asked, row = message.expected, claim.signal.row
    expected = {"task": asked.task_id, "request": asked.request_id}.get(row.subject or "")
    if expected is None or claim.signal.subject == expected:
        return None
    return _refuse_task(message, claim, str(claim.signal.subject), expected)


def _check_task_section(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Where the line has no subject, the body's `Task:` stands for it."""
    row, expected = claim.signal.row, message.expected.task_id
    if row.subject is not None or expected is None:
        return None
    for body in claim.bodies:
        named = str(parse_section(body.parts["Task"])) if "Task" in body.parts else ""
        if is_filled(named, row) and not _is_named(named, expected):
            return _refuse_task(message, claim, named, expected)
    return None


def _is_named(named: str, expected: str) -> bool:
    """Whether a section names the task: its id alone, or followed by its title."""
    return bool(
        re.match(rf"{re.escape(expected)}(?:\.?\Z|[ \t]+[(\u2013\u2014-]|[:,][ \t])", named)
    )


def _refuse_task(message: Message, claim: SignalClaim, named: str, expected: str) -> SignalRefused:
    sentence = explain_wrong_task(claim.signal.row, named[:128], expected)
    return message.refuse(Reason.WRONG_TASK, sentence, claim.signal.start)


def _check_path(message: Message, claim: SignalClaim) -> SignalRefused | None:
    row, subject = claim.signal.row, claim.signal.subject
    if row.subject == "path" and subject is not None and is_outside_workspace(subject):
        return _refuse_malformed(message, explain_outside_path(row), claim)
    return None


def _check_prose(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Every block of a pass must be well formed, one block of any other signal."""
    if claim.is_repeated_too_often and claim.signal.row.passing:
        return _refuse_malformed(message, explain_repetition(claim.signal.row), claim)
    broken = len(claim.bodies) - len(claim.sound_bodies)
    if not broken or (claim.sound_bodies and not claim.signal.row.passing):
        return None
    line = next(b.prose_after_line for b in claim.bodies if b.prose_after_line is not None)
    return SignalRefused(Reason.MALFORMED, explain_prose(claim.signal.row), line)


def _check_alone(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Some signals let work pass: nothing but their own template may stand beside them."""
    row = claim.signal.row
    if not row.alone:
        return None
    if stray := next(MALFORMED.find(message.source), None):
        return message.refuse(Reason.MALFORMED, explain_stray_text(row), stray.start())
    for block, body in zip(claim.blocks, claim.bodies, strict=True):
        if body.remarks:
            return SignalRefused(Reason.MALFORMED, explain_stray_text(row), body.remarks[0])
        hidden = "\x1b" in message.source[block.start : block.end]
        if hidden or block.end - block.start > LONGEST_BODY:
            return _refuse_malformed(message, explain_stray_text(row), claim)
        for part in body.parts.values():
            if bad := _find_negative(part):
                return SignalRefused(Reason.MALFORMED, explain_contradiction(row, bad), part.line)
    return None


def _find_negative(part: SectionText) -> ReportedCheck | None:
    checks: list[ReportedCheck] = parse_section(part) if part.section.kind == "checks" else []
    return next((one for one in checks if is_negative(one)), None)


def _check_required(message: Message, claim: SignalClaim) -> SignalRefused | None:
    row, parts = claim.signal.row, claim.all_sections.parts
    for labels in row.requires:
        if not any(is_present(parts.get(label), row) for label in labels):
            return _refuse_malformed(
                message, explain_absent_section(row, labels, message.expected.task_id), claim
            )
    return None


def _refuse_malformed(message: Message, sentence: str, claim: SignalClaim) -> SignalRefused:
    return message.refuse(Reason.MALFORMED, sentence, claim.signal.start)
