"""Taking an older file apart: field by field, and what nobody took is left over.

Knows names with dots and the few types these files have. Refuses to know any of their shapes.
"""

import copy
import re
from typing import Any

from interlock.epic.status import Kind, Status, read_status
from interlock.system.errors import SourceError

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}\Z")


class InvalidError(ValueError):
    """The file is whole, but says something it cannot mean."""


class LegacyFields:
    """A JSON object from which fields are taken. What is taken is gone."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = copy.deepcopy(value)
        self._lists: dict[str, list[LegacyFields]] = {}

    def rest(self) -> dict[str, Any]:
        """What was not taken; of a list's objects under their numbers. Nothing empty is left."""
        lists = {
            path: {str(at): each.rest() for at, each in enumerate(items) if each.rest()}
            for path, items in self._lists.items()
        }
        left = {**self._value, **lists}
        return {name: value for name, value in left.items() if value not in ({}, [], None)}

    def drop(self, *names: str) -> None:
        for name in names:
            self._value.pop(name, None)

    def take(self, path: str) -> Any:
        """The value at `a.b`, or None."""
        *folders, name = path.split(".")
        place = self._value
        for folder in folders:
            inner = place.get(folder)
            if inner is None:
                return None
            if not isinstance(inner, dict):
                raise InvalidError(f"{folder} must be an object")
            place = inner
        return place.pop(name, None)

    def text(self, path: str, needed: bool = False) -> str:
        value = self.take(path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value.strip()):
            raise InvalidError(f"{path} is missing" if not value else f"{path} must be a text")
        return value

    def words(self, path: str) -> str:
        """The text there; something else is left where it is."""
        return self.text(path) if isinstance(self._value.get(path), str) else ""

    def about(self, path: str) -> int:
        """A count that some write with a fraction."""
        value = self.take(path)
        name = path.rpartition(".")[2]
        return LegacyFields({name: int(value) if isinstance(value, float) else value}).count(name)

    def count(self, path: str, needed: bool = False) -> int:
        value = self.take(path)
        if value is None and not needed:
            return 0
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 18:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidError(
                f"{path} is missing" if value is None else f"{path} must be a whole number from 0"
            )
        return value

    def status(self, path: str, kind: Kind, default: Status = Status.IN_PROGRESS) -> Status:
        word = self.text(path)
        try:
            return read_status(word, kind) if word else default
        except SourceError as error:
            raise InvalidError(f"{path}: {error}") from None

    def commit(self, path: str) -> str:
        """A commit's hash; "" for what is none, such as the word HEAD of an empty repository."""
        word = self.text(path).strip()
        return word.lower() if _COMMIT.match(word) else ""

    def items(self, path: str) -> list["LegacyFields"]:
        """The objects of a list; a plain text or number counts as one with an `id`."""
        value = self.take(path)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidError(f"{path} must be a list")
        items = [LegacyFields(each if isinstance(each, dict) else {"id": each}) for each in value]
        self._lists[path] = items
        return items
