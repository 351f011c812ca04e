"""Match the paths and names of a stack with the files of a repository.

A frame's path is relative to an unknown root, may come from another machine, and may be a class or
a module with dots. Pure.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Generic, TypeVar

import msgspec

_CODE_ENDINGS = """
py pyx rb java kt kts scala groovy cs fs vb go rs c h cc cpp cxx hh hpp hxx m mm swift js mjs cjs
jsx ts mts cts tsx vue svelte php pl pm lua ex exs erl hs ml clj dart sh bash ps1 r jl sql proto
yaml yml json toml xml html css scss ini cfg conf properties tf tfvars gradle robot feature md txt
rst lock mod sum env csv j2 tmpl bat cmd mk cmake gql graphql ipynb
"""
_CODE = frozenset(_CODE_ENDINGS.split())
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:\.[\w$<>]+)+")
_TAIL = re.compile(r"(?::\d+)+$|#L\d+(?:-L?\d+)?$|\(\d+\)$")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:/{2,}|^[A-Za-z]:[\\/]")
_MOST_WORD = 4_000

Thing = TypeVar("Thing")


class PathMatch(msgspec.Struct, Generic[Thing], frozen=True):
    """A file that a word may mean: the more trailing names match, the surer."""

    word: str
    path: str
    shared: int
    things: tuple[Thing, ...] = ()


class PathIndex(Generic[Thing]):
    """Paths with their values, found by their endings."""

    def __init__(self, entries: Iterable[tuple[str, Thing]]) -> None:
        self._things: dict[str, list[Thing]] = {}
        self._by_stem: dict[str, list[str]] = {}
        for path, thing in entries:
            if path not in self._things:
                self._by_stem.setdefault(_strip_extension(path.rpartition("/")[2]), []).append(path)
            self._things.setdefault(path, []).append(thing)

    def find(self, word: str) -> list[PathMatch[Thing]]:
        """Return the paths that fit the word best; several on a tie."""
        for names, is_dotted in parse_word(word):
            found = self._find_best(names, is_dotted)
            if found:
                shared = found[0][0]
                return [
                    PathMatch(word, path, shared, tuple(self._things[path])) for _, path in found
                ]
        return []

    def _find_best(self, names: tuple[str, ...], is_dotted: bool) -> list[tuple[int, str]]:
        candidates = []
        for path in self._by_stem.get(_strip_extension(names[-1]), ()):
            parts = path.split("/")
            if is_dotted:
                parts[-1] = _strip_extension(parts[-1])
            shared = count_shared(reversed(names), reversed(parts))
            if shared >= 2 or (shared == 1 and 1 in (len(names), len(parts))):
                candidates.append((shared, path))
        best = max((shared for shared, _ in candidates), default=0)
        return sorted(item for item in candidates if item[0] == best)


def parse_word(word: str) -> list[tuple[tuple[str, ...], bool]]:
    """Return what a word of a stack may name, best first: names from the outside in, and whether
    they came from dots, so that the last one has no file extension."""
    word = _TAIL.sub("", word.strip()[:_MOST_WORD])
    path = _SCHEME.sub("", word).replace("\\", "/")
    names = tuple(name for name in path.split("/") if name not in ("", ".", ".."))
    if not names:
        return []
    if "/" in path or not _DOTTED.fullmatch(path) or is_code_name(path):
        return [(names, False)]
    dotted = tuple(part.partition("$")[0] or part for part in path.split("."))
    # The last words may be a method and a class inside the module.
    shorter = [dotted[: len(dotted) - cut] for cut in range(3)]
    return [(part, True) for part in shorter if part and (len(part) > 1 or len(dotted) == 1)]


def is_code_name(path: str) -> bool:
    """Return True if a word ends like a source file."""
    stem, dot, ending = path.rpartition(".")
    return bool(dot and stem and ending.lower() in _CODE)


def _strip_extension(name: str) -> str:
    return name.rpartition(".")[0] if is_code_name(name) else name


def count_shared(one: Iterable[str], other: Iterable[str]) -> int:
    """Return the number of equal names before the first difference."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
