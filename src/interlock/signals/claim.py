"""Whether the signal that counts is sound: its dispatch, its task, its body.

Knows what each signal must carry and what may stand beside it. Refuses to know how it was chosen.
Each check returns a refusal or None; they stand in the order in which reasons win.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from interlock.signals import sentences
from interlock.signals.body import LONGEST_BODY, SectionText, SignalBody, read_body
from interlock.signals.columns import SignalRow
from interlock.signals.filled import is_filled, is_present
from interlock.signals.grammar import MALFORMED, SignalName, outside_workspace
from interlock.signals.items import ReportedCheck, is_negative, value_of
from interlock.signals.message import Message, SignalBlock
from interlock.signals.reading import Reason, SignalRefused

# A signal said more often than this is read from its last blocks; nobody says it so often.
MOST_BLOCKS: Final = 256


class SignalClaim(msgspec.Struct, frozen=True):
    """The winning signal with every block that says it."""

    said: SignalName
    blocks: tuple[SignalBlock, ...]
    bodies: tuple[SignalBody, ...]
    too_often: bool

    @property
    def sound(self) -> list[SignalBody]:
        return [body for body in self.bodies if body.prose_after_line is None]

    @property
    def whole(self) -> SignalBody:
        """The sections of all sound blocks, counted together."""
        whole = SignalBody()
        for body in self.sound:
            whole.add(body)
        return whole


def claim_of(message: Message, said: SignalName) -> SignalClaim:
    saying = [b for b in message.blocks if any(one.row is said.row for one in b.said)]
    blocks = tuple(saying[-MOST_BLOCKS:])
    bodies = tuple(_bodies(message, blocks, said.row))
    return SignalClaim(said, blocks, bodies, len(saying) > MOST_BLOCKS)


def _bodies(
    message: Message, blocks: Sequence[SignalBlock], row: SignalRow
) -> Iterator[SignalBody]:
    line, last = 1, 0
    for block in blocks:
        line, last = line + message.source.count("\n", last, block.start), block.start
        yield read_body(message.source[block.start : block.end], line, row)


def check(message: Message, claim: SignalClaim) -> SignalRefused | None:
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
    nonce = message.asked.nonce
    if not (message.asked.strict and nonce):
        return None
    blocks = message.blocks[-MOST_BLOCKS:]
    bodies = _bodies(message, blocks, blocks[-1].said[-1].row)
    for block, body in zip(blocks, bodies, strict=True):
        if nonce in (*body.nonces, *(one.nonce for one in block.said)):
            return None
    start = message.blocks[-1].said[-1].start
    return message.refuse(Reason.STALE, sentences.stale(nonce), start)


def _check_nonce(message: Message, claim: SignalClaim) -> SignalRefused | None:
    nonce = message.asked.nonce
    if nonce is None:
        return None
    given = [mark for mark in (claim.said.nonce, *claim.bodies[-1].nonces) if mark]
    if all(mark == nonce for mark in given) and (given or not message.asked.strict):
        return None
    return message.refuse(Reason.STALE, sentences.stale(nonce), claim.said.start)


def _check_subject(message: Message, claim: SignalClaim) -> SignalRefused | None:
    asked, row = message.asked, claim.said.row
    expected = {"task": asked.task_id, "request": asked.request_id}.get(row.subject or "")
    if expected is None or claim.said.subject == expected:
        return None
    return _wrong_task(message, claim, str(claim.said.subject), expected)


def _check_task_section(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Where the line has no subject, the body's `Task:` stands for it."""
    row, expected = claim.said.row, message.asked.task_id
    if row.subject is not None or expected is None:
        return None
    for body in claim.bodies:
        named = str(value_of(body.parts["Task"])) if "Task" in body.parts else ""
        if is_filled(named, row) and not _names(named, expected):
            return _wrong_task(message, claim, named, expected)
    return None


def _names(named: str, expected: str) -> bool:
    """Whether a section names the task: its id alone, or followed by its title."""
    return bool(
        re.match(rf"{re.escape(expected)}(?:\.?\Z|[ \t]+[(\u2013\u2014-]|[:,][ \t])", named)
    )


def _wrong_task(message: Message, claim: SignalClaim, named: str, expected: str) -> SignalRefused:
    sentence = sentences.wrong_task(claim.said.row, named[:128], expected)
    return message.refuse(Reason.WRONG_TASK, sentence, claim.said.start)


def _check_path(message: Message, claim: SignalClaim) -> SignalRefused | None:
    row, subject = claim.said.row, claim.said.subject
    if row.subject == "path" and subject is not None and outside_workspace(subject):
        return _malformed(message, sentences.outside(row), claim)
    return None


def _check_prose(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Every block of a pass must be well formed, one block of any other signal."""
    if claim.too_often and claim.said.row.passing:
        return _malformed(message, sentences.too_often(claim.said.row), claim)
    broken = len(claim.bodies) - len(claim.sound)
    if not broken or (claim.sound and not claim.said.row.passing):
        return None
    line = next(b.prose_after_line for b in claim.bodies if b.prose_after_line is not None)
    return SignalRefused(Reason.MALFORMED, sentences.prose_after_line(claim.said.row), line)


def _check_alone(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """A verdict lets work pass: nothing but its own template may stand beside it."""
    row = claim.said.row
    if not row.verdict:
        return None
    if stray := next(MALFORMED.find(message.source), None):
        return message.refuse(Reason.MALFORMED, sentences.verdict_alone(row), stray.start())
    for block, body in zip(claim.blocks, claim.bodies, strict=True):
        if body.remarks:
            return SignalRefused(Reason.MALFORMED, sentences.verdict_alone(row), body.remarks[0])
        hidden = "\x1b" in message.source[block.start : block.end]
        if hidden or block.end - block.start > LONGEST_BODY:
            return _malformed(message, sentences.verdict_alone(row), claim)
        for part in body.parts.values():
            if bad := _negative(part):
                return SignalRefused(Reason.MALFORMED, sentences.contradiction(row, bad), part.line)
    return None


def _negative(part: SectionText) -> ReportedCheck | None:
    checks: list[ReportedCheck] = value_of(part) if part.section.kind == "checks" else []
    return next((one for one in checks if is_negative(one)), None)


def _check_required(message: Message, claim: SignalClaim) -> SignalRefused | None:
    row, parts = claim.said.row, claim.whole.parts
    for labels in row.requires:
        if not any(is_present(parts.get(label), row) for label in labels):
            return _malformed(message, sentences.absent(row, labels, message.asked.task_id), claim)
    return None


def _malformed(message: Message, sentence: str, claim: SignalClaim) -> SignalRefused:
    return message.refuse(Reason.MALFORMED, sentence, claim.said.start)
