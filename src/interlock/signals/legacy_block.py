"""The block forms in which older tools print line signals.

Knows the three of them: rows of `=` or of `═` around a header and KEY: value lines.
Refuses to repair: a block with any damage is refused whole.
"""

import re
from typing import Final

import msgspec

from interlock.signals.line_payload import LineRefusal, LineSignal, read_payload

_RULE: Final = re.compile(r"={40,}[ \t]*\Z|═{3,}[ \t]*\Z")
_DECORATED: Final = re.compile(r"═{3,}[ \t]*SAGE_SIGNAL:CHECKPOINT[ \t]*═{3,}[ \t]*\Z")
_HEADER: Final = re.compile(r"(?:SAGE_SIGNAL:|SIGNAL:[ \t]+)([A-Z][A-Z0-9_]*)[ \t]*\Z")
_FIELD: Final = re.compile(r"([A-Z][A-Z0-9_]*):(?:[ \t]+(.*?))?[ \t]*\Z")
_CHECKPOINT_FILE: Final = re.compile(r"(?:.*/)?([^/]+)\.json\Z")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}\Z")
# Where older tools have another word for a field of the catalogue.
_NAMES: Final = {
    "ISSUE_NUMBER": "issue",
    "GITHUB_ISSUE": "issue",
    "REVERTED_TO": "commit_hash",
    "ERROR": "error",
    "CODE": "error_code",
}
# What else they print under a header.
KEYS: Final = (
    *_NAMES,
    "APPROVED_BY",
    "CHECKPOINT_FILE",
    "COMMIT",
    "ISSUE_URL",
    "NEXT_ACTION",
    "REASON",
    "REVIEW_TYPE",
    "REVISION_NOTES",
)
# A checkpoint block names its file and commit in the place of the line's four fields.
CHECKPOINT: Final = "CHECKPOINT:WRITE"
CHECKPOINT_FIELDS: Final = ("checkpoint_file", "commit")
_MOST_LINES: Final = 64


class LegacyBlock(msgspec.Struct):
    """A block that has been opened; `positional` is what stood there without a key."""

    kind: str
    where: int
    decorated: bool = False
    lines: list[str] = msgspec.field(default_factory=list)
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    positional: str = ""

    def take(self, line: str) -> bool:
        """Whether the line belongs to the block."""
        self.lines.append(line)
        name, mark, value = line.rpartition(": ")
        if mark and name == value.strip():  # an argument without `=` is printed twice
            self.positional = name
            return len(self.lines) <= _MOST_LINES
        field = _FIELD.match(line)
        if field:
            self.keys[field[1]] = field[2] or ""
        return bool(field) and len(self.lines) <= _MOST_LINES

    def read(self) -> LineSignal | LineRefusal:
        found = self._checkpoint() if self.decorated else self._signal()
        return self.refuse(found) if isinstance(found, str) else found

    def refuse(self, sentence: str) -> LineRefusal:
        return LineRefusal(sentence, "\n".join([self.kind, *self.lines])[:500], self.where)

    def _checkpoint(self) -> LineSignal | str:
        file = _CHECKPOINT_FILE.match(self.keys.get("CHECKPOINT_FILE", ""))
        if not file or not _COMMIT.match(self.keys.get("COMMIT", "")):
            return "the checkpoint block lacks CHECKPOINT_FILE or a COMMIT of 40 hex digits"
        fields: dict[str, str | int] = {"epic_id": file[1], **self._named()}
        return LineSignal(CHECKPOINT, self._payload(), fields, self.where)

    def _signal(self) -> LineSignal | str:
        issue = self.keys.get("ISSUE_NUMBER", self.keys.get("GITHUB_ISSUE", ""))
        payload = f"issue:{issue.lstrip('#')}" if issue else self.positional
        found = read_payload(self.kind, payload, self.where)
        if isinstance(found, str):
            return found
        fields = {**self._named(), **found.fields}
        return msgspec.structs.replace(found, fields=fields, payload=payload or self._payload())

    def _named(self) -> dict[str, str]:
        named = {_NAMES.get(key, key.lower()): value for key, value in self.keys.items()}
        named.pop("issue", None)
        return named

    def _payload(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.keys.items())


def is_rule(line: str) -> bool:
    return bool(_RULE.match(line))


def open_block(line: str, after_rule: bool, where: int) -> LegacyBlock | None:
    """A block, if this line is the header of one."""
    if _DECORATED.match(line):
        return LegacyBlock("CHECKPOINT", where, decorated=True)
    header = _HEADER.match(line) if after_rule else None
    return LegacyBlock(header[1], where) if header else None
