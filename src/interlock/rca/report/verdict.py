"""The verdict: a suite in one paragraph of plain words, for somebody who reads nothing else.

The numbers add up to the number of failures. Refuses to sound surer than the findings are.
"""

from collections.abc import Iterable

from interlock.rca.report.kinds import KINDS, STATES, trust_of
from interlock.rca.report.outline import Cause, Outline
from interlock.system.text import counted, day, line

_ANALYSTS = {
    "basic": "the built-in analyst",
    "manual": "hand",
    "file": "agents that answer in files",
    "batch-file": "agents that answer in batches of files",
    "mcp": "agents that pull their work",
}


def verdict(told: Outline) -> str:
    """`40 failures, 6 causes: 1 product regression (14 failures), …`"""
    return " ".join(verdict_lines(told))


def verdict_lines(told: Outline) -> tuple[str, str]:
    """The same in two: what broke, and where that stands."""
    if not told.total:
        return "No failures.", "There is nothing to explain."
    head = counted(told.total, "failure")
    if told.families:
        parts = ", ".join(_parts(told.families))
        head += f", {counted(len(told.families), 'cause')}: {parts}"
    loose = sum(cause.size for cause in told.causes if cause.loose)
    if loose:
        head += f"; {loose:,} not grouped yet" if told.families else ", not grouped yet"
    return f"{head}.", " ".join([*_history(told), *_standing(told)])


def _parts(causes: Iterable[Cause]) -> list[str]:
    sums: dict[tuple[str, bool], list[int]] = {}
    for cause in causes:
        sums.setdefault((cause.kind, not cause.regression), []).append(cause.size)
    order = sorted(sums, key=lambda each: (tuple(KINDS).index(each[0]), each[1]))
    return [_part(kind, plain, sums[kind, plain]) for kind, plain in order]


def _part(kind: str, plain: bool, sizes: list[int]) -> str:
    words = KINDS[kind]
    one, many = (words.one, words.many) if plain else (words.regression, words.regressions)
    return f"{counted(len(sizes), one, many)} ({counted(sum(sizes), 'failure')})"


def _history(told: Outline) -> list[str]:
    known = sum(cause.known for cause in told.families)
    if not told.families:
        return []
    if not known:
        return ["It is new." if len(told.families) == 1 else "None was seen before."]
    if known == len(told.families):
        return ["It was seen before." if known == 1 else "All were seen before."]
    return [f"{known:,} {'was' if known == 1 else 'were'} seen before."]


def _standing(told: Outline) -> list[str]:
    states = told.states
    said = []
    if (number := states.get("waiting", 0)) and number == told.total:
        said.append("Nothing is reviewed yet: all wait for a person.")
    elif number:
        causes = sum("waiting" in cause.states for cause in told.families)
        some = f"{counted(causes, 'cause')} ({counted(number, 'failure')})"
        verb = "waits" if causes == 1 else "wait"
        said.append(f"{some} {verb} for review." if causes else f"{number:,} wait for review.")
    if number := states.get("working", 0):
        said.append(f"{counted(number, 'failure')} still in analysis.")
    if number := states.get("stopped", 0):
        said.append(f"{counted(number, 'failure')} could not be analysed to the end.")
    if states.keys() <= {"reviewed", "closed"}:
        said.append("Everything is reviewed.")
    return said


def kind_label(cause: Cause) -> str:
    """Its kind; one that nobody is sure of, with what it was taken for at first."""
    if cause.loose:
        return "Not grouped"
    label = KINDS[cause.kind].label
    first = KINDS[cause.at_first].label.lower() if cause.at_first else ""
    return f"{label}, at first sight {first}" if first else label


def advice(told: Outline) -> str:
    """What would make the findings better, if it is plain; else empty."""
    if told.total and not told.findings.repos and not any(c.suspects for c in told.causes):
        return (
            "No commit is suspected, because no repository was named. "
            'Name it and analyse again: --repo "NAME=PATH:PURPOSE".'
        )
    return ""


def made_by(told: Outline) -> str:
    """Who did the analysis, in words; empty if that is not known."""
    words = [word for word in told.findings.agent.split(", ") if word != "human=manual"]
    said = dict.fromkeys(_ANALYSTS.get(word, word) for word in words if word)
    return line(", ".join(said), 80)


def standing(cause: Cause) -> str:
    """Where the cases of a cause stand: `9 wait for review, 5 closed`."""
    if len(cause.states) == 1:
        return STATES[next(iter(cause.states))]
    return ", ".join(_so_many(number, state) for state, number in cause.states.items())


def _so_many(number: int, state: str) -> str:
    word = STATES[state].lower()
    return f"{number:,} {word if number == 1 else word.replace('waits', 'wait')}"


def trust(cause: Cause) -> str:
    """Who stands behind all of its cases: human, auto (a rule somebody chose), or unreviewed."""
    met = {trust_of(case) for case in cause.cases}
    return next(word for word in ("unreviewed", "auto", "human") if word in met)


def history(cause: Cause) -> str:
    """Whether it is new, in words."""
    from_then = f", first on {day(cause.since)}" if cause.since else ""
    if cause.regression:
        return f"Came back: seen before{from_then}"
    return f"Seen before{from_then}" if cause.known else "New: not seen before"
