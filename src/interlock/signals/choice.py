"""Which of several signals counts, and whether the role may say it.

Knows priorities, ambiguity and authority. Refuses to know bodies: the one it names is checked
elsewhere, and if that fails nothing takes its place.
"""

from collections.abc import Sequence

from interlock.signals import sentences
from interlock.signals.catalogue import may_say
from interlock.signals.grammar import SignalName
from interlock.signals.message import Message
from interlock.signals.reading import Reason, SignalRefused


def choose(message: Message) -> SignalName | SignalRefused:
    """The signal that counts among all that are live in the message."""
    said = [one for block in message.blocks for one in block.said]
    legal = [one for one in said if may_say(message.asked.role, one.row)]
    if not legal:
        return _wrong_role(message, said[-1])
    level = min(one.row.level for one in legal)
    top = [one for one in legal if one.row.level == level]
    winner = _only(message, top)
    if (winner is None or winner.row.verdict) and (stray := _illegal_after(message, said, top)):
        return _wrong_role(message, stray)
    if winner is None:
        return message.refuse(Reason.AMBIGUOUS, sentences.ambiguous(top), top[-1].start)
    return winner


def _only(message: Message, top: Sequence[SignalName]) -> SignalName | None:
    """The one claim of the highest level, or None if that cannot be told."""
    claims = {(one.row.name, one.subject) for one in top}
    names = {name for name, _ in claims}
    if len(claims) > len(names) or (len(names) > 1 and _is_mixed(message, top)):
        return None
    return None if len(names) > 1 and top[-1].row.passing else top[-1]


def _is_mixed(message: Message, top: Sequence[SignalName]) -> bool:
    """Whether one block says two different things of the same level."""
    level = top[0].row.level
    role = message.asked.role
    return any(
        len({o.row.name for o in block.said if o.row.level == level and may_say(role, o.row)}) > 1
        for block in message.blocks
    )


def _illegal_after(
    message: Message, said: Sequence[SignalName], top: Sequence[SignalName]
) -> SignalName | None:
    """A word of another role after a verdict: it cannot be told whose verdict it is."""
    verdicts = [one.start for one in top if one.row.verdict]
    if not verdicts:
        return None
    later = (one for one in said if one.start > verdicts[0])
    return next((one for one in later if not may_say(message.asked.role, one.row)), None)


def _wrong_role(message: Message, one: SignalName) -> SignalRefused:
    sentence = sentences.wrong_role(one.row, message.asked.role)
    return message.refuse(Reason.WRONG_ROLE, sentence, one.start)
