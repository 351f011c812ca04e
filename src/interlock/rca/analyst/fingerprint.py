"""The fingerprint of a failure: 16 hex digits, the same whenever and wherever it fails alike.

Made from the test's name, the type, the masked message and the own frames of the stack without
line numbers. Knows nothing of likeness: two fingerprints are equal or they are not.
"""

import hashlib
import posixpath
import re

from interlock.rca.analyst.frames import read_frames
from interlock.rca.analyst.masking import masked
from interlock.rca.analyst.ownership import own_frames
from interlock.rca.failure import Failure

_MOST_FRAMES = 12
_MESSAGE_LIMIT = 20_000
"""Of a longer message the beginning decides."""

_BLANKS = re.compile(r"\s+")
_DRAWN = re.compile(r"\$\$?[\w$]*\d[\w$]*|\d+")
"""What compilers draw anew: lambda and proxy numbers."""


def fingerprint(failure: Failure) -> str:
    """Equal for two runs of one failure, other ids, times, pointers, paths and lines or not."""
    parts = [
        _flat(failure.class_name),
        _flat(failure.test_name),
        failure.type.strip(),
        _flat(failure.message[:_MESSAGE_LIMIT]),
        *_frame_words(failure.stack),
    ]
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.hexdigest()


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", masked(text)).strip()


def _frame_words(stack: str) -> list[str]:
    words = []
    for frame in own_frames(read_frames(stack))[:_MOST_FRAMES]:
        file = posixpath.basename(frame.file)
        scope = _DRAWN.sub("", frame.scope)
        words.append(f"{scope}.{_DRAWN.sub('', frame.function)}@{_DRAWN.sub('', file)}")
    return words
