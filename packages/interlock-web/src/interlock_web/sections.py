"""Sections: pages, and parts of the HTTP API, that a package adds to the server.

A package names a `Section` in the entry-point group `interlock.pages`. One that cannot be loaded,
or that the server cannot take, is left out: Home, the server's terminal and `doctor` say why.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import metadata
from typing import Any, Final, TypeVar

import msgspec
from jinja2 import BaseLoader
from litestar.types import ControllerRouterHandler

from interlock.api.project import Project

GROUP: Final = "interlock.pages"
_OWN: Final = "window"
"""The name of the server's own section."""
T = TypeVar("T")


class NavLink(msgspec.Struct, frozen=True):
    """An entry of the navigation; `g` and then `key` leads there."""

    path: str
    title: str
    key: str = ""


Background = Callable[[Project], AbstractAsyncContextManager[Any]]


class Section(msgspec.Struct, frozen=True):
    """Pages that belong together, such as those of a feature."""

    title: str
    links: tuple[NavLink, ...]
    handlers: tuple[ControllerRouterHandler, ...]
    templates: BaseLoader | None = None
    """The loader of its templates, which are named `NAME/…` after the entry point."""
    api: tuple[ControllerRouterHandler, ...] = ()
    """Its handlers of the HTTP API, below /api/v1."""
    background: Background | None = None
    """Opened with the server and closed with it; its handlers find the result in the application's
    state under the name of the entry point."""
    rank: int = 100
    """The place of its links in the navigation: lower ranks come first."""


def find_sections() -> tuple[dict[str, Section], dict[str, str]]:
    """Return the sections of installed packages, ours first, and why others cannot be used."""
    found: dict[str, Section] = {}
    left_out: dict[str, str] = {}
    for entry in sorted(metadata.entry_points(group=GROUP), key=_rank_entry):
        try:
            if entry.name == _OWN or entry.name in found:
                raise ValueError(f"the name {entry.name!r} is taken; it must have another")
            found[entry.name] = _check_section(entry.load())
        except Exception as error:  # whatever a foreign package raises while it is imported
            left_out[entry.name] = (
                f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
            )
    return found, left_out


def _rank_entry(entry: metadata.EntryPoint) -> tuple[bool, str]:
    return not entry.module.startswith("interlock_"), entry.name


def _check_section(made: object) -> Section:
    """Return the section; TypeError if its links, which every page shows, are malformed."""
    if not isinstance(made, Section):
        raise TypeError("it is not a Section of interlock_web.extend")
    for link in made.links:
        if not isinstance(link, NavLink) or not link.path.startswith("/"):
            raise TypeError(f"{link!r} is not a NavLink whose path begins with /")
    return made


def leave_out_rejected(
    sections: Mapping[str, Section],
    left_out: dict[str, str],
    build: Callable[[Mapping[str, Section]], T],
) -> T:
    """Return what `build` makes of the sections, without those that make it fail; these are added
    to `left_out`."""
    try:
        return build(sections)
    except Exception:  # a path that is taken, a handler without types: whatever a server raises
        kept: dict[str, Section] = {}
        for name, section in sections.items():
            try:
                build({**kept, name: section})
            except Exception as error:
                left_out[name] = f"the server cannot take it: {type(error).__name__}: {error}"
            else:
                kept[name] = section
        return build(kept)


def tell_left_out(left_out: Mapping[str, str]) -> None:
    """Say in the server's terminal which sections are left out."""
    for name, why in left_out.items():
        sys.stderr.write(f"interlock: the pages of {name!r} are left out: {why}\n")
