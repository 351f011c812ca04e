"""The words of a failure that a change may share: of its message and its test's source.

Words that every failure uses (the vocabulary of assertions) are left out. Words may be of any
alphabet.
"""

import re
from collections.abc import Iterable

from interlock_rca.analyst.names import COMMON_WORDS, split_camel_case, split_unspaced

_NOISE_TEXT = """assert asserts assertion assertions assertionerror equal equals strictly strict
deep deeply expect expects expected received actual got tobe toequal object objects true false none
null undefined nan function func self this return returns value values type types typeerror
valueerror keyerror runtimeerror attributeerror error errors throw throws raise raises raised called
call instance string str int bool list dict array length more than with that from into have been
must when then where what which will would could only same differ differs different contains include
import describe test tests await async const class void public static final
skipping identical leading trailing characters diff show full
"""
_NOISE = frozenset(_NOISE_TEXT.split()) | COMMON_WORDS
_WORD = re.compile(r"[^\W\d]\w*")
_ADDRESS = re.compile(r"\w+://[^\s'\"`<>)]+")


def stem_words(words: Iterable[str]) -> frozenset[str]:
    """The words that mean something, whatever their case and number."""
    plain = (word.casefold().strip("_") for word in words)
    return frozenset(
        stem
        for word in plain
        if word not in _NOISE
        for stem in (split_unspaced(word) if not word.isascii() else (_strip_plural(word),))
        if len(stem) > 3 or (len(stem) > 1 and not stem.isascii())
    )


def _strip_plural(word: str) -> str:
    return word if word.endswith("ss") else word.removesuffix("s")


def split_into_stems(words: Iterable[str]) -> frozenset[str]:
    """What names are made of, as stems."""
    return stem_words(piece for word in words for piece in split_camel_case(word))


def list_words(text: str) -> frozenset[str]:
    """All names and words of a text, as they are written; without those of addresses, which are
    made of other people's."""
    return frozenset(_WORD.findall(_ADDRESS.sub(" ", text)))
