"""The scene of a failure in a repository: where its stack leads, who wrote there, and what it and
its test speak of.

Knows what a change must do to have been at the scene. Refuses to know what that counts.
"""

import re

from interlock.rca.analyst.changed import Changed
from interlock.rca.analyst.culprit_words import (
    ChangeText,
    body_of,
    missed,
    parts,
    quoted,
    spoken,
    stems,
)
from interlock.rca.analyst.ownership import is_library, is_test
from interlock.rca.analyst.spots import StackLocation, spots
from interlock.rca.analyst.testimony import Mentions
from interlock.rca.analyst.triage import is_check
from interlock.rca.failure import Failure
from interlock.rca.sources.git.repository import Repository

_BLAMED_FRAMES = 4
_MOST_REACHED = 4
"""So many stretches of lines are asked about who wrote them."""
_NEAR = 10
"""So many lines from a place of the stack are beside it."""


class FailureScene:
    """Of one failure; read once, whatever commits are held against it."""

    def __init__(self, failure: Failure, said: Mentions, repository: Repository, rev: str) -> None:
        self._repository = repository
        self._test_name = said.test_name
        self.is_check = is_check(failure)
        """Whether a test's own check failed, and nothing broke by itself."""
        self.spots = spots(failure, repository, rev)[:_BLAMED_FRAMES]
        self.places = {spot.path for spot in self.spots}
        self._tests = [spot for spot in self.spots if spot.is_test]
        outermost = max(self._tests, key=lambda spot: spot.depth).path if self._tests else ""
        self.helpers = {spot.path for spot in self._tests} - {outermost}
        """Files of tests that the failing one only uses."""
        self.words = spoken(said.message) | stems(_functions(said))
        self.quoted = quoted(said.message)
        self.missed = missed(said.message)
        """Names that the message says are not there."""
        self._reach = {spot: self._around(spot, rev) for spot in self.spots}
        self._writers = {
            spot: repository.writers(spot.path, reach[:_MOST_REACHED], rev) if spot.line else {}
            for spot, reach in self._reach.items()
        }
        self._blamed: dict[str, StackLocation] = {}
        """Commits that wrote a line of the stack, each with the innermost such line."""
        for spot, writers in self._writers.items():
            if spot.line in writers:
                self._blamed.setdefault(writers[spot.line], spot)
        self.tested = self._in_test(rev) | stems(re.findall(r"\w+", said.test_name))
        """What the failing test speaks of."""
        self.named = parts(re.findall(r"[^\W\d]\w*", said.test_name.partition("[")[0]))
        """The parts of its name."""

    def _around(self, spot: StackLocation, rev: str) -> list[tuple[int, int]]:
        """The lines that count as beside a place: of a test, those of itself and its values."""
        if not spot.is_test:
            return [(max(1, spot.line - _NEAR), spot.line + _NEAR)]
        body = self._body(spot, rev)
        return [(body.first, body.last), *((row, row) for row in body.rows)]

    def _body(self, spot: StackLocation, rev: str) -> ChangeText:
        entry = self._repository.entry(spot.path, rev)
        return body_of(entry.content if entry else None, spot.line, self._test_name)

    def beside(self, changed: Changed) -> StackLocation | None:
        """The first place of the stack at which something was changed. Who changes the product
        too has seen the tests that go with it pass: their checks are not held against it."""
        for spot, reach in self._reach.items():
            if spot.is_test and self.is_check and changed.product_paths:
                continue
            if changed.hash in self._writers[spot].values() and changed.touches(spot.path):
                return spot
            if changed.within(spot.path, *reach[0]):
                return spot
            if not spot.is_test and changed.inside(spot.path, spot.function):
                return spot
        return None

    def wrote(self, commit: str, changed: Changed) -> StackLocation | None:
        """The innermost line of the stack that it wrote."""
        spot = self._blamed.get(commit)
        if spot is None or not changed.touches(spot.path):
            return None
        return None if spot.is_test and self.is_check and changed.product_paths else spot

    def failed_at(self, spot: StackLocation) -> bool:
        """Whether it broke there, and is not only on the way."""
        return not self.is_check and spot.depth == min(each.depth for each in self.spots)

    def _in_test(self, rev: str) -> frozenset[str]:
        """What the failing test speaks of, in its source."""
        return self._body(self._tests[0], rev).words if self._tests else frozenset()

    def about(self, changed: Changed) -> frozenset[str]:
        """What the failure and the code that was changed are both about."""
        return (self.tested & changed.product_words) | (self.words & changed.line_words)


def _functions(said: Mentions) -> frozenset[str]:
    """Functions of the product that are in the stack."""
    own = [frame for frame in said.frames if not is_library(frame, said.class_name)]
    names = {frame.function.rpartition(".")[2] for frame in own if not is_test(frame)}
    return frozenset(name for name in names if len(name) > 2)
