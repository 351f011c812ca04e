"""Spots: the places of a failure's stack that are there in a repository.

Knows which frames are the project's own, and how a frame's file is found. Refuses to know commits.
"""

from collections.abc import Iterable

import msgspec

from interlock.rca.analyst.frames import Frame, read_frames
from interlock.rca.analyst.ownership import is_library, is_test
from interlock.rca.failure import Failure
from interlock.rca.sources.git.repository import Repository


class StackLocation(msgspec.Struct, frozen=True):
    """A place of a failure's stack that is there in a repository."""

    path: str
    line: int
    function: str
    is_test: bool
    depth: int = 0
    """How many frames of the stack are further inside."""
    shared: int = 1
    """How many names of the path agree: the more, the surer it is this file."""


def spots(failure: Failure, repository: Repository, rev: str = "") -> list[StackLocation]:
    """The places of the stack in that repository, the product's before the tests', innermost
    first."""
    if not repository.readable:
        return []
    found: dict[tuple[str, int], StackLocation] = {}
    for depth, frame in enumerate(_own(failure)):
        word = frame.file if "/" in frame.file else frame.scope or frame.file
        for match in repository.files_named(word, rev)[:1]:
            spot = StackLocation(
                *(match.path, frame.line, frame.function, is_test(frame), depth, match.shared)
            )
            found.setdefault((spot.path, spot.line), spot)
    return sorted(found.values(), key=lambda spot: spot.is_test)


def _own(failure: Failure) -> Iterable[Frame]:
    frames = read_frames(failure.stack) or read_frames(failure.message) or read_frames(failure.log)
    return (frame for frame in frames if frame.file and not is_library(frame, failure.class_name))
