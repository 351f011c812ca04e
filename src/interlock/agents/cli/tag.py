"""The tag in an agent's environment, which everything it starts inherits.

Knows how a tag is written, read and handed down. A tag names the workspace, the run and the
dispatch, and has a nonce: two dispatches never share one. The owner is the process that supervises.
"""

import re
from collections.abc import Mapping

import msgspec

from interlock.system.errors import SourceError
from interlock.system.process_table import TagNames

TAG_VARIABLE = "INTERLOCK_TAG"
PARENT_TAGS_VARIABLE = "INTERLOCK_TAGS_ABOVE"
"""Tags of the agents inside which this Interlock itself runs, with spaces between."""
OWNER_VARIABLE = "INTERLOCK_OWNER"
TAGS = TagNames(TAG_VARIABLE, PARENT_TAGS_VARIABLE, OWNER_VARIABLE)
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_TAG = re.compile(rf"({_PART}):({_PART}):({_PART}):({_PART})\Z")


class ProcessTag(msgspec.Struct, frozen=True, order=True):
    workspace: str
    run: str
    dispatch: str
    nonce: str

    def __str__(self) -> str:
        return f"{self.workspace}:{self.run}:{self.dispatch}:{self.nonce}"


def read_tag(text: str) -> ProcessTag | None:
    found = _TAG.match(text)
    return ProcessTag(*found.groups()) if found else None


def parse_tag(text: str) -> ProcessTag:
    tag = read_tag(text)
    if tag is None:
        raise SourceError(f"{text!r} is not a tag; write workspace:run:dispatch:nonce")
    return tag


def build_tag_variables(tag: ProcessTag, owner: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What goes into an agent's environment. The tags above come from our own one."""
    above = f"{environ.get(PARENT_TAGS_VARIABLE, '')} {environ.get(TAG_VARIABLE, '')}".split()
    found = {TAG_VARIABLE: str(tag), OWNER_VARIABLE: owner}
    return found | ({PARENT_TAGS_VARIABLE: " ".join(above)} if above else {})
