"""What people should know about a case: what is asked of them, what was found, what it rests on.

Made by a circuit's application, shown by pages beside what the journal tells. Texts may come from
outside and stay texts; addresses are shown as links if they are http, or lead to one of our pages.
"""

from collections.abc import Mapping

import msgspec


class Item(msgspec.Struct, frozen=True):
    """A line that may lead somewhere."""

    text: str
    url: str = ""
    """http or https, or the path of a page of the window, such as /causes/3."""
    detail: str = ""
    """What is said below it, smaller."""
    badge: str = ""
    """A word about how it stands, such as `found`."""


class Passage(msgspec.Struct, frozen=True):
    """A part under a heading: a text, lines, and what something said, verbatim."""

    heading: str
    text: str = ""
    items: tuple[Item, ...] = ()
    quote: str = ""


class CaseOverview(msgspec.Struct, frozen=True):
    """What there is to know, the most important first."""

    title: str
    """What the case is about, in a line."""
    asks: str = ""
    """What a person is asked while it waits for one."""
    facts: tuple[tuple[str, Item], ...] = ()
    passages: tuple[Passage, ...] = ()
    choices: Mapping[str, str] = {}
    """What each answer brings about, in a sentence."""
    fields: str = ""
    """An example of the further fields that an answer may have, `name = value` a line."""
