"""What a failure mentions that may point at a culprit: frames, the test, the message."""

import msgspec

from interlock_rca.analyst.line_kinds import find_complaint_blocks
from interlock_rca.analyst.stack import Frame, find_frames, read_frames
from interlock_rca.records import Failure


class Mentions(msgspec.Struct, frozen=True):
    """The frames and names of one failure."""

    frames: tuple[Frame, ...]
    """Of the stack, root cause first."""
    other_frames: tuple[Frame, ...]
    """Of the log."""
    class_name: str
    test_name: str
    message: str


def collect_mentions(failure: Failure) -> Mentions:
    """Read message, stack and log of a failure once."""
    lines = find_complaint_blocks(failure.log) if failure.log else []
    return Mentions(
        frames=find_frames(failure),
        other_frames=read_frames("\n".join(lines)),
        class_name=failure.class_name,
        test_name=failure.test_name,
        message=failure.message[:20_000],
    )
