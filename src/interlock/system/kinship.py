"""Who belongs to an agent: by its tag, by its session, by descent.

Pure, over a census. Names say nothing about kinship.
"""

from collections import defaultdict
from collections.abc import Container, Iterable

from interlock.system.census import Census, Process, SeenProcess


def family(
    people: Census, tag: str, leader: Process, known: Container[Process] = ()
) -> dict[Process, SeenProcess]:
    """All that carry the tag, share the leader's session, were known to be of the family or
    descend from one of those, alive.

    The session counts only while its leader is still there, dead or alive: its number is free for
    others afterwards.
    """
    first = people.get(leader.pid)
    session = leader.pid if first is not None and first.process == leader else -2
    roots = [
        seen
        for seen in people.values()
        if tag in seen.tags or seen.session == session or seen.process in known
    ]
    return {seen.process: seen for seen in descendants(people, roots) if seen.alive}


def descendants(people: Census, roots: Iterable[SeenProcess]) -> list[SeenProcess]:
    """The roots and all below them, each once."""
    children: dict[int, list[SeenProcess]] = defaultdict(list)
    for seen in people.values():
        children[seen.parent].append(seen)
    found: dict[int, SeenProcess] = {}
    waiting = list(roots)
    while waiting:
        seen = waiting.pop()
        if seen.process.pid not in found:
            found[seen.process.pid] = seen
            waiting += children[seen.process.pid]
    return list(found.values())


def line_above(people: Census, pid: int) -> set[Process]:
    """The process itself, its parent, and so on up: those that are never to be ended."""
    found: set[Process] = set()
    while (seen := people.get(pid)) is not None and seen.process not in found:
        found.add(seen.process)
        pid = seen.parent
    return found
