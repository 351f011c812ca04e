"""What a build fetched, and for whom: its modules' own dependencies, its model, or a step's tools.

Reads the log of a Maven-like build: what was downloaded between a module's banner and its first
step belongs to that module; what came after a step's header is that step's own business.
"""

import re
from collections import defaultdict
from collections.abc import Mapping

import msgspec

_FETCHED = re.compile(r"Downloaded.*?/([\w.-]+)/([\w.-]+)/[\w.-]+\.(pom|jar|aar|war)\b")
_STEP = re.compile(r"^(?:\[INFO\] )?--- \S+.* ---$")
_MODULE = re.compile(r"^(?:\[INFO\] )?(?:-+< .* >-+|-+\[ \S+ \]-+|Building \S)")
_NEW_MODULE = re.compile(r"^(?:\[INFO\] )?(?:-+< .* >-+|Building \S)")
_LONGEST = 600
_CONTESTED = 3
_MANAGING = re.compile(r"(?:^|-)(?:bom|dependencies|platform)(?:-|$)")


class Fetched(msgspec.Struct, frozen=True):
    """Names of artefacts, without groups and versions."""

    depended: frozenset[str] = frozenset()
    """A module depends on them."""
    last: frozenset[str] = frozenset()
    """The module that came last, the one that broke, depends on them."""
    managing: frozenset[str] = frozenset()
    """They choose the versions of others: fetched to build the model, and named for it."""
    order: Mapping[str, int] = {}
    """Who was asked about when: what a build names itself comes before what that needs."""
    contested: frozenset[str] = frozenset()
    """Of these at least three versions were asked for: somebody chose another than others want."""


def fetched(log: str) -> Fetched:
    """What the log tells of it; nothing for logs of other tools."""
    if "Downloaded" not in log:
        return Fetched()
    depended: dict[str, int] = {}
    managing: set[str] = set()
    versions: dict[str, set[str]] = defaultdict(set)
    waiting: list[str] = []
    in_step, module = False, 0
    for line in log.split("\n"):
        if "ownload" in line:
            name, version, kind = _named(line)
            if kind == "pom":
                versions[name].add(version)
            if kind == "pom" and not module and _MANAGING.search(name):
                managing.add(name)
            elif kind not in ("", "pom") and not in_step:
                waiting.append(name)
        elif _STEP.match(line):
            depended.update(dict.fromkeys(waiting, module))
            waiting, in_step = [], True
        elif _MODULE.match(line):
            module += bool(_NEW_MODULE.match(line))
            in_step = False
    newest = frozenset(name for name, at in depended.items() if at == module)
    return Fetched(
        depended=frozenset(depended),
        last=newest,
        managing=frozenset(managing),
        order={name: at for at, name in enumerate(versions)},
        contested=frozenset(name for name in versions if len(versions[name]) >= _CONTESTED),
    )


def _named(line: str) -> tuple[str, str, str]:
    found = _FETCHED.search(line[:_LONGEST])
    return (found[1], found[2], found[3]) if found else ("", "", "")
