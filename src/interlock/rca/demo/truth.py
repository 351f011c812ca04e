"""The planted truth: which tests fail for which reason, and which commit brought it.

Knows what was planted; refuses to know how anybody would find it.
"""

from collections.abc import Mapping

import msgspec

from interlock.rca.demo.chronicle import read_page


class Planted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault and the tests it fails, each named `module.Class.test`. A flake has no culprit."""

    family_id: str
    title: str
    category: str
    defect_type: str
    repo: str = ""
    culprit: str = ""
    """Our own name of the commit, in the history of `repo`."""
    commit: str = ""
    seen_before: bool = False
    cascade: bool = False
    tests: tuple[str, ...] = ()


def planted(hashes: Mapping[str, Mapping[str, str]]) -> tuple[Planted, ...]:
    """The truth, with the hashes that the culprits have in these repositories."""
    told = msgspec.convert(read_page("truth.yaml"), tuple[Planted, ...], strict=False)
    return tuple(
        msgspec.structs.replace(each, commit=hashes[each.repo][each.culprit])
        if each.culprit
        else each
        for each in told
    )
