"""Read text signals: one message in, one reading out.

Asks in this order: is there a signal, which of several counts, may the role say it, and are its
dispatch, its task and its body sound? If the one that counts fails its checks, nothing takes its
place. Each check returns a refusal or None, in the order in which reasons win, and a refusal tells
the agent what to write next time. The caller passes the agent's own final words.
"""

import re
from collections import deque
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
from interlock.signals.catalogue import SignalRow, list_role_signals, may_send, normalize_role
from interlock.signals.grammar import (
    MALFORMED,
    SAGE_LINES,
    SIGNALS,
    UNKNOWN,
    SignalName,
    find_last_lookalike,
    has_signal_name,
    is_outside_workspace,
    parse_signal_line,
    tag_nonce,
)
from interlock.signals.reading import Accepted, Reading, Reason, SignalRefused


class ExpectedReply(msgspec.Struct, frozen=True):
    """The dispatch a message should answer: role, task, request and nonce."""

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
    """A message's source, which begins with a newline so that every line does, and its blocks."""

    source: str
    expected: ExpectedReply
    blocks: tuple[SignalBlock, ...]

    def find_line(self, start: int) -> int:
        """Return the number of the line whose newline stands at `start`."""
        return self.source.count("\n", 0, start) + 1

    def refuse(self, reason: Reason, sentence: str, start: int | None = None) -> SignalRefused:
        return SignalRefused(reason, sentence, None if start is None else self.find_line(start))


def read_message(
    text: str,
    *,
    role: str,
    task_id: str | None,
    nonce: str | None = None,
    strict: bool = False,
    request_id: str | None = None,
) -> Reading:
    """Read an agent's final message as the answer to one dispatch."""
    asked = ExpectedReply(normalize_role(role), task_id, request_id, nonce, strict)
    source = "\n" + text.removeprefix("\ufeff").replace("\r\n", "\n")
    if nonce:
        source = tag_nonce(source, nonce)
    message = Message(source, asked, _find_blocks(source))
    if not message.blocks:
        return _refuse_unsaid(message)
    if stale := _check_any_nonce(message):
        return stale
    chosen = _choose_signal(message)
    if isinstance(chosen, SignalRefused):
        return chosen
    claim = _parse_claim(message, chosen)
    for check in _CHECKS:
        if refused := check(message, claim):
            return refused
    return _accept(message, claim)


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


def _choose_signal(message: Message) -> SignalName | SignalRefused:
    """Return the signal that counts among all live ones, or the refusal if none does."""
    signals = [one for block in message.blocks for one in block.signals]
    legal = [one for one in signals if may_send(message.expected.role, one.row)]
    if not legal:
        return _refuse_role(message, signals[-1])
    level = min(one.row.level for one in legal)
    top = [one for one in legal if one.row.level == level]
    winner = _find_winner(message, top)
    if (winner is None or winner.row.verdict) and (
        stray := _find_illegal_after(message, signals, top)
    ):
        return _refuse_role(message, stray)
    if winner is None:
        distinct = dict.fromkeys(f"{one.row.name} {one.subject or ''}".strip() for one in top)
        names = " and ".join(list(distinct)[:4])
        sentence = f"Your message says {names}. Send it again with one signal only."
        return message.refuse(Reason.AMBIGUOUS, sentence, top[-1].start)
    return winner


def _find_winner(message: Message, top: Sequence[SignalName]) -> SignalName | None:
    """Return the one claim of the highest level, or None if it is ambiguous."""
    claims = {(one.row.name, one.subject) for one in top}
    names = {name for name, _ in claims}
    if len(claims) > len(names) or (len(names) > 1 and _is_mixed(message, top)):
        return None
    return None if len(names) > 1 and top[-1].row.passing else top[-1]


def _is_mixed(message: Message, top: Sequence[SignalName]) -> bool:
    """Return True if one block holds two different signals of the same level."""
    counted = {one.start for one in top}
    return any(
        len({one.row.name for one in block.signals if one.start in counted}) > 1
        for block in message.blocks
    )


def _find_illegal_after(
    message: Message, signals: Sequence[SignalName], top: Sequence[SignalName]
) -> SignalName | None:
    """Return another role's signal after a verdict, which makes the verdict's author unclear."""
    verdicts = [one.start for one in top if one.row.verdict]
    if not verdicts:
        return None
    later = (one for one in signals if one.start > verdicts[0])
    return next((one for one in later if not may_send(message.expected.role, one.row)), None)


def _refuse_role(message: Message, one: SignalName) -> SignalRefused:
    speakers, role = " or ".join(one.row.roles), message.expected.role
    return message.refuse(
        Reason.WRONG_ROLE,
        f"Only the {speakers} may send {one.row.name}, not the {role}. Send a signal of your role.",
        one.start,
    )


def _refuse_unsaid(message: Message) -> SignalRefused:
    """Explain a message without a live signal: one was meant, is unknown, or is missing."""
    source, task_id = message.source, message.expected.task_id
    legal = list_role_signals(message.expected.role)
    lines = [f"`{_format_first_line(row, task_id)}`" for row in legal]
    choices = "one of " + ", ".join(lines) if lines else "a signal your role may say"
    if meant := find_last_lookalike(source):
        word, start = meant
        lines = [f"`{_format_first_line(row, task_id)}`" for row in legal if row.word == word]
        return message.refuse(
            Reason.MALFORMED,
            f"A line names {word} but is not a legal signal. Write it alone on its line, at column "
            "0, without markup, outside fences and quotes, exactly: "
            f"{' or '.join(lines) or choices}.",
            start,
        )
    strangers = deque(SAGE_LINES.find(source), maxlen=1)
    if not strangers and UNKNOWN.anywhere.search(source) and not has_signal_name(source):
        strangers = deque(UNKNOWN.find(source), maxlen=1)
    if not strangers:
        return message.refuse(
            Reason.MISSING,
            "No signal was found. End your message with a signal line at column 0, outside fences "
            f"and quotes: {choices}.",
        )
    name = strangers[-1][0].strip().partition(":")[0]
    sentence = f"`{name}` is not a signal of this protocol. Write {choices}."
    return message.refuse(Reason.UNKNOWN, sentence, strangers[-1].start())


def _format_first_line(row: SignalRow, task_id: str | None) -> str:
    """Return the signal line as it must be written, with the task's id if it is known."""
    return row.grammar.replace("[task_id]", task_id) if task_id else row.grammar


# Only the last blocks of a signal that is repeated beyond this are read.
_MOST_BLOCKS: Final = 256


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
        """The sections of all sound blocks together."""
        whole = SignalBody()
        for body in self.sound_bodies:
            whole.add(body)
        return whole


def _parse_claim(message: Message, signal: SignalName) -> SignalClaim:
    saying = [b for b in message.blocks if any(one.row is signal.row for one in b.signals)]
    blocks = tuple(saying[-_MOST_BLOCKS:])
    bodies = tuple(_read_bodies(message, blocks, signal.row))
    return SignalClaim(signal, blocks, bodies, len(saying) > _MOST_BLOCKS)


def _read_bodies(
    message: Message, blocks: Sequence[SignalBlock], row: SignalRow
) -> Iterator[SignalBody]:
    line, last = 1, 0
    for block in blocks:
        line, last = line + message.source.count("\n", last, block.start), block.start
        text = message.source[block.start : block.end]
        body = read_body(text, line, row)
        # Signals that share a block share its sections: a label of one is not prose for another.
        others = {one.row for one in block.signals} - {row}
        if body.prose_after_line is not None and any(
            read_body(text, line, other).prose_after_line is None for other in others
        ):
            body.prose_after_line = None
        yield body


def _accept(message: Message, claim: SignalClaim) -> Accepted:
    row, body = claim.signal.row, claim.all_sections
    present = [part for part in body.parts.values() if _is_present(part, row)]
    bare = bool(row.sections) and not present
    return Accepted(
        signal=row.name,
        subject=claim.signal.subject,
        fields={part.section.key: parse_section(part) for part in present},
        notes=(f"{row.name} came without any of its sections",) if bare else (),
        where=message.find_line(claim.signal.start),
    )


_EMPTY: Final = frozenset({"", "none", "n/a", "na", "nothing", "tbd", "todo", "-", "..", "…"})
_WHOLE_PLACEHOLDER: Final = re.compile(r"\[[^\[\]\n]*\]\Z")
_BOX: Final = re.compile(r"\[[ xX]\][ \t]*")


def _is_present(part: SectionText | None, row: SignalRow) -> bool:
    if part is None:
        return False
    if part.items or part.table:
        return any(_is_filled(entry, row) for entry in list_entries(part))
    if part.section.kind == "checks" and row.alone:
        # A pass needs items; a sentence counts as one only if it states a result.
        return any(check.status and _is_filled(check.name, row) for check in parse_section(part))
    return any(_is_filled(text, row) for text in (*part.text, *part.fences))


def _is_filled(text: str, row: SignalRow) -> bool:
    plain = _BOX.sub("", text.strip(), count=1).strip("*_` \t")
    if plain.lower().rstrip(".") in _EMPTY or _WHOLE_PLACEHOLDER.match(plain):
        return False
    return not any(placeholder in plain for placeholder in _list_placeholders(row))


@cache
def _list_placeholders(row: SignalRow) -> tuple[str, ...]:
    return tuple(sorted(set(re.findall(r"\[[^\[\]\n]{2,}\]", row.template))))


def _check_any_nonce(message: Message) -> SignalRefused | None:
    """Refuse a message without its dispatch's nonce before all else, under strict signals."""
    nonce = message.expected.nonce
    if not (message.expected.strict and nonce):
        return None
    blocks = message.blocks[-_MOST_BLOCKS:]
    bodies = _read_bodies(message, blocks, blocks[-1].signals[-1].row)
    for block, body in zip(blocks, bodies, strict=True):
        if nonce in (*body.nonces, *(one.nonce for one in block.signals)):
            return None
    return _refuse_stale(message, nonce, message.blocks[-1].signals[-1])


def _check_nonce(message: Message, claim: SignalClaim) -> SignalRefused | None:
    nonce = message.expected.nonce
    if nonce is None:
        return None
    given = [mark for mark in (claim.signal.nonce, *claim.bodies[-1].nonces) if mark]
    if all(mark == nonce for mark in given) and (given or not message.expected.strict):
        return None
    return _refuse_stale(message, nonce, claim.signal)


def _refuse_stale(message: Message, nonce: str, signal: SignalName) -> SignalRefused:
    sentence = f"The answer does not carry this dispatch's mark. Add the line `Dispatch: {nonce}`."
    return message.refuse(Reason.STALE, sentence, signal.start)


def _check_task(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Compare the task: the line's subject or, where the line has none, the body's `Task:`."""
    asked, signal, row = message.expected, claim.signal, claim.signal.row
    expected = {"task": asked.task_id, "request": asked.request_id, None: asked.task_id}.get(
        row.subject
    )
    if expected is None:
        return None
    if row.subject is not None:
        wrong = [str(signal.subject)] if signal.subject != expected else []
    else:
        tasks = [body.parts["Task"] for body in claim.bodies if "Task" in body.parts]
        # The id alone, or followed by its title.
        known = re.compile(rf"{re.escape(expected)}(?:\.?\Z|[ \t]+[(\u2013\u2014-]|[:,][ \t])")
        named = [str(parse_section(part)) for part in tasks]
        wrong = [each for each in named if _is_filled(each, row) and not known.match(each)]
    if not wrong:
        return None
    sentence = f"You were asked about {expected}, but {row.name} names {wrong[0][:128]}."
    return message.refuse(Reason.WRONG_TASK, f"{sentence} Write {expected}.", signal.start)


def _check_path(message: Message, claim: SignalClaim) -> SignalRefused | None:
    row, subject = claim.signal.row, claim.signal.subject
    if row.subject != "path" or subject is None or not is_outside_workspace(subject):
        return None
    sentence = f"{row.name} takes a path inside the workspace, relative to its root."
    return message.refuse(Reason.MALFORMED, sentence, claim.signal.start)


def _check_prose(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Require that every block of a pass is well formed, and one block of any other signal."""
    row = claim.signal.row
    if claim.is_repeated_too_often and row.passing:
        sentence = f"{row.name} is repeated too often. Send it once, at the end."
        return message.refuse(Reason.MALFORMED, sentence, claim.signal.start)
    broken = len(claim.bodies) - len(claim.sound_bodies)
    if not broken or (claim.sound_bodies and not row.passing):
        return None
    return SignalRefused(
        Reason.MALFORMED,
        f"Prose follows {row.name} before any section. Only its sections may come after the "
        f"signal line: {_list_labels(row)}. Put explanations before it.",
        next(b.prose_after_line for b in claim.bodies if b.prose_after_line is not None),
    )


def _list_labels(row: SignalRow) -> str:
    return ", ".join(f"`{section.label}:`" for section in row.sections)


def _check_alone(message: Message, claim: SignalClaim) -> SignalRefused | None:
    """Require that a signal which lets work pass stands alone with its own template."""
    row = claim.signal.row
    if not row.alone:
        return None
    sentence = (
        f"{row.name} lets work pass, so it must stand alone: send the verdict with only its "
        f"sections {_list_labels(row)}."
    )
    if stray := next(MALFORMED.find(message.source), None):
        return message.refuse(Reason.MALFORMED, sentence, stray.start())
    for block, body in zip(claim.blocks, claim.bodies, strict=True):
        if body.remarks:
            return SignalRefused(Reason.MALFORMED, sentence, body.remarks[0])
        hidden = "\x1b" in message.source[block.start : block.end]
        if hidden or block.end - block.start > LONGEST_BODY:
            return message.refuse(Reason.MALFORMED, sentence, claim.signal.start)
        for part in body.parts.values():
            if bad := _find_negative(part):
                name = re.sub(r"\s+", " ", bad.name)[:80]
                return SignalRefused(
                    Reason.MALFORMED,
                    f"{row.name} lists `{name}` as {bad.status}. A pass requires every item to "
                    "hold.",
                    part.line,
                )
    return None


def _find_negative(part: SectionText) -> ReportedCheck | None:
    checks: list[ReportedCheck] = parse_section(part) if part.section.kind == "checks" else []
    return next((one for one in checks if is_negative(one)), None)


def _check_required(message: Message, claim: SignalClaim) -> SignalRefused | None:
    row, parts = claim.signal.row, claim.all_sections.parts
    for labels in row.requires:
        if not any(_is_present(parts.get(label), row) for label in labels):
            line = _format_first_line(row, message.expected.task_id)
            wanted = " or ".join(f"`{label}:`" for label in labels)
            return message.refuse(
                Reason.MALFORMED,
                f"{line} came without {wanted}. Send it again with that section filled in, "
                "without placeholders.",
                claim.signal.start,
            )
    return None


_CHECKS: Final = (
    _check_nonce,
    _check_task,
    _check_path,
    _check_prose,
    _check_alone,
    _check_required,
)
