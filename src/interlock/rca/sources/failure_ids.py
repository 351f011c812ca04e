"""Names for failures: unique in their launch, readable, and the same for the same report.

Knows which signs an id may have, so that it can be a file's name. Refuses to know sources.
"""

import hashlib
import re
from typing import Final

import msgspec

from interlock.rca.failure import Failure

_LONGEST: Final = 80
"""Long enough to be read, short enough for a file's name; `#12` may follow."""
_FIT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,119}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FailureIds:
    """Gives each failure an id that no other failure of the launch has."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._jobs: dict[str, str] = {}

    def name(self, failure: Failure) -> Failure:
        """The same failure with its id: `class.test`, with its job in front where that is needed
        to tell it from another, and `#2` where nothing else does."""
        base = _slug(_full_name(failure))
        if self._jobs.setdefault(base, failure.job) != failure.job:
            base = _slug(f"{failure.job}.{_full_name(failure)}")
        number = self._given.get(base, 0) + 1
        while number > 1 and f"{base}#{number}" in self._given:
            number += 1
        self._given[base] = number
        found = base if number == 1 else f"{base}#{number}"
        self._given.setdefault(found, 1)
        return msgspec.structs.replace(failure, id=found)

    def keep(self, failure: Failure) -> Failure:
        """The same failure under the id it brings, if that is fit and free."""
        if not _FIT.fullmatch(failure.id) or failure.id in self._given:
            return self.name(failure)
        self._given[failure.id] = 1
        return failure


def _full_name(failure: Failure) -> str:
    test, owner = failure.test_name, failure.class_name
    if not owner or test == owner or test.startswith(f"{owner}."):
        return test or failure.job or "test"
    return f"{owner}.{test}" if test else owner


def _slug(name: str) -> str:
    """Fit for an id; where signs were lost that tell names apart, a mark of the whole name."""
    slug = _UNFIT.sub("-", name).strip("-.")
    lost = len(slug) > _LONGEST or any(ord(sign) > 127 for sign in name) or not slug
    if not lost:
        return slug if slug[0].isalnum() else f"t{slug}"
    mark = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    head = slug[: _LONGEST - 9].strip("-._") or "test"
    return f"{head if head[0].isalnum() else f't{head}'}-{mark}"
