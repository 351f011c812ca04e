"""Who belongs to an agent: by its tag, by its session, by descent.

Pure, over a census. Names say nothing about kinship.
"""

from collections import defaultdict
from collections.abc import Iterable

from interlock.supervise.census import Census, Process, Seen


def family(people: Census, tag: str, leader: Process | None = None) -> dict[Process, Seen]:
    """All that carry the tag, share the leader's session or descend from one of those, alive.

    The session counts only while its leader is still there, dead or alive: its number is free for
    others afterwards.
    """
    leads = leader is not None and leader.pid in people and people[leader.pid].process == leader
    roots = [
        seen
        for seen in people.values()
        if tag in seen.tags or (leads and leader is not None and seen.session == leader.pid)
    ]
    return {seen.process: seen for seen in descendants(people, roots) if seen.alive}


def descendants(people: Census, roots: Iterable[Seen]) -> list[Seen]:
    """The roots and all below them, each once."""
    children: dict[int, list[Seen]] = defaultdict(list)
    for seen in people.values():
        children[seen.parent].append(seen)
    found: dict[int, Seen] = {}
    waiting = list(roots)
    while waiting:
        seen = waiting.pop()
        if seen.process.pid not in found:
            found[seen.process.pid] = seen
            waiting += children[seen.process.pid]
    return list(found.values())


def line_above(people: Census, pid: int) -> set[int]:
    """The process itself, its parent, and so on up."""
    found: set[int] = set()
    while pid not in found and pid > 0:
        found.add(pid)
        seen = people.get(pid)
        pid = seen.parent if seen else 0
    return found
