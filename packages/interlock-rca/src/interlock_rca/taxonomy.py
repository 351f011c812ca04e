"""The taxonomy: where a fault lives, in words, and the defect codes that stand for it.

Maps the words and codes of other tools and earlier versions to ours, without guessing: an undefined
word has no code, and one that only describes the surface has no category.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from interlock.system.errors import SourceError

UNKNOWN: Final = "unknown"
_CODE: Final = re.compile(r"[a-z][a-z0-9_]{1,39}")
_LONGEST_MEANING: Final = 120


class Defect(msgspec.Struct, frozen=True):
    """The meaning of a code, and its category."""

    category: str
    meaning: str


def _describe_surface(word: str, *hints: str) -> str:
    return f"{word!r} says how it looks, not where the fault lives; often {' or '.join(hints)}"


_CATEGORIES: Final = {
    "product": "the product under test behaves wrongly",
    "automation": "the test, or the code that drives it, is wrong",
    "infra": "machines, network, cluster, CI or their configuration are wrong",
    "flake": "it fails now and then without a fault, or as designed",
    "firmware": "the device or its firmware is wrong",
    UNKNOWN: "the data do not tell",
}
_STOCK: Final = {
    "pb001": Defect("product", "Product Bug"),
    "ab001": Defect("automation", "Automation Bug"),
    "si001": Defect("infra", "System Issue"),
    "nd001": Defect("flake", "No Defect"),
    "fw001": Defect("firmware", "Firmware Issue"),
    "ti001": Defect(UNKNOWN, "To Investigate"),
}
_PREFERRED: Final = {defect.category: code for code, defect in _STOCK.items()}
_RARE: Final = {"ib003": Defect("infra", "Infrastructure Bug")}
_ALIASES: Final = {"au001": "ab001", "en001": "si001"}
_CATEGORY_ALIASES: Final = {"environment": "infra", "system": "infra", "infrastructure": "infra"}
_SURFACES: Final = {
    "timeout": _describe_surface("timeout", "si001", "ab001"),
    "assertion": _describe_surface("assertion", "pb001", "ab001"),
    "crash": _describe_surface("crash", "pb001", "si001"),
    "config": _describe_surface("config", "ab001", "si001"),
}


class Taxonomy(msgspec.Struct, frozen=True, kw_only=True):
    """Categories and codes. `read_only` codes are understood but not offered in prompts."""

    categories: Mapping[str, str]
    codes: Mapping[str, Defect]
    read_only: Mapping[str, Defect]
    aliases: Mapping[str, str]
    category_aliases: Mapping[str, str]
    surfaces: Mapping[str, str]
    """Words for how a failure looks, each with a note: they do not say where the fault lives."""

    def find_code(self, word: str) -> str | None:
        """Return the code that a word or alias means, or None."""
        plain = _normalize(word)
        found = self.aliases.get(plain, plain)
        return found if found in self.codes or found in self.read_only else None

    def find_category(self, word: str) -> str | None:
        """Return the category that a word is or was; `unknown` for a surface word, else None."""
        plain = _normalize(word)
        found = self.category_aliases.get(plain, plain)
        if found in self.categories:
            return found
        return UNKNOWN if found in self.surfaces else None

    def find_category_of_code(self, code: str) -> str | None:
        """Return the category of a code or its alias."""
        found = self.find_code(code)
        return (self.codes.get(found) or self.read_only[found]).category if found else None

    def describe_code(self, code: str) -> str:
        """Describe a code or its alias; "" if unknown."""
        found = self.find_code(code)
        return (self.codes.get(found) or self.read_only[found]).meaning if found else ""

    def find_code_of_category(self, category: str) -> str | None:
        """Return the code for a fault of that category when nothing more is known."""
        found = self.find_category(category)
        return _PREFERRED.get(found) if found else None

    def explain_word(self, word: str) -> str:
        """Return a hint for a word that is no category of ours, or ""."""
        plain = _normalize(word)
        if plain in self.surfaces:
            return self.surfaces[plain]
        if plain in self.category_aliases:
            return f"{plain!r} is called {self.category_aliases[plain]!r} here"
        return "" if plain in self.categories else "this is not a category"

    def with_codes(self, own: Mapping[str, str | Defect]) -> "Taxonomy":
        """Return this taxonomy with a project's own codes, each with a category or a full meaning.

        A code that was an alias becomes a code of its own.
        """
        added = {
            _normalize(code): self._check_own_code(code, defect)
            for code, defect in sorted(own.items())
        }
        return msgspec.structs.replace(
            self,
            codes={**self.codes, **added},
            read_only={code: each for code, each in self.read_only.items() if code not in added},
            aliases={word: code for word, code in self.aliases.items() if word not in added},
        )

    def _check_own_code(self, code: str, defect: str | Defect) -> Defect:
        if isinstance(defect, str):
            defect = Defect(defect, "a code of this project")
        category = self.find_category(defect.category)
        if not _CODE.fullmatch(_normalize(code)):
            raise SourceError(
                f"{code[:80]!r} is not a defect code; use 2 to 40 letters, digits and _, "
                "a letter first"
            )
        if category is None or _normalize(defect.category) in self.surfaces:
            known = ", ".join(self.categories)
            raise SourceError(
                f"defect code {code!r} has the category {defect.category[:80]!r}; "
                f"use one of {known}"
            )
        meaning = " ".join(defect.meaning.split())[:_LONGEST_MEANING]
        return Defect(category, meaning)

    def format_all(self) -> str:
        """Return categories and codes as lines of a prompt."""
        return f"{self.format_categories()}\n\n{self.format_codes()}"

    def format_categories(self) -> str:
        lines = (
            f"- `{name}`: {meaning} (usually `{_PREFERRED[name]}`)"
            for name, meaning in self.categories.items()
        )
        return "\n".join(("Categories, by where the fault lives:", *lines))

    def format_codes(self) -> str:
        lines = (
            f"- `{code}`: {each.meaning} ({each.category})" for code, each in self.codes.items()
        )
        return "\n".join(("Defect codes, and no others:", *lines))


def _normalize(word: str) -> str:
    return word.strip().lower()


TAXONOMY: Final = Taxonomy(
    categories=_CATEGORIES,
    codes=_STOCK,
    read_only=_RARE,
    aliases=_ALIASES,
    category_aliases=_CATEGORY_ALIASES,
    surfaces=_SURFACES,
)
