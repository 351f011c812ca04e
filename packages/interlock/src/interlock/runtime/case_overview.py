"""What a person should know about a case: the question, the findings and their evidence.

A circuit's application makes it, and pages show it beside the journal. Texts may come from outside,
so they stay texts; a URL becomes a link only if it is http or a page of ours.
"""

from collections.abc import Mapping

import msgspec


class Item(msgspec.Struct, frozen=True):
    """A line of text, possibly with a link."""

    text: str
    url: str = ""
    """An http or https URL, or the path of a page of the window, such as /causes/3."""
    detail: str = ""
    """A smaller text below the line."""
    badge: str = ""
    """A word about its state, such as `found`."""


class Passage(msgspec.Struct, frozen=True):
    """A section with a heading: a text, lines, and a verbatim quote."""

    heading: str
    text: str = ""
    items: tuple[Item, ...] = ()
    quote: str = ""


class CaseOverview(msgspec.Struct, frozen=True):
    """The overview of a case, the most important first."""

    title: str
    """The subject of the case, in a line."""
    asks: str = ""
    """The question to a person while the case waits for one."""
    facts: tuple[tuple[str, Item], ...] = ()
    passages: tuple[Passage, ...] = ()
    choices: Mapping[str, str] = {}
    """The consequence of each answer, in a sentence."""
    fields: str = ""
    """An example of further fields that an answer may have, `name = value` per line."""
