"""Parse references in agents' answers: a file, a line, a commit, a line of the log.

Accepts the many ways in which agents write them, with words around. Pure: opens nothing, and does
not check that anything exists.
"""

import re
from collections.abc import Collection, Iterator
from urllib.parse import unquote, urlsplit

import msgspec

from interlock_rca.sources.git.repository import parse_browse_url
from interlock_rca.sources.git.stack_paths import is_code_name

_MOST_WORDS = 40
_HASH = r"(?P<hash>[0-9a-fA-F]{7,64})"
_NAME = r"(?P<repo>(?!(?:commit|rev|revision)\b)[\w.+-]{1,100})"
_COMMIT = re.compile(
    rf"(?:{_NAME}(?:@|:|\s+))?(?:(?:commit|rev|revision)[\s:]+)?{_HASH}", re.IGNORECASE
)
_COMMIT_MENTION = re.compile(rf"\b(?:commit|revision)[\s:]+`?{_HASH}\b", re.IGNORECASE)
_AT_COMMIT = re.compile(rf"{_NAME}@{_HASH}:(?P<rest>.+)")
_LINES = re.compile(r"[#:]?L?(\d{1,9})(?:\s*[-\N{EN DASH}]\s*L?(\d{1,9}))?(?::\d{1,9})?(?::(.+))?")
_LINE_MENTION = re.compile(
    r"[\"'`]?,?\s+\(?(?:at |on |in )?lines?\s+(\d{1,9})(?:\s*(?:-|to)\s*(\d{1,9}))?\)?.*",
    re.IGNORECASE | re.DOTALL,
)
_LOG = re.compile(
    r"(?:the\s+)?logs?(?:\s*lines?|\s*[:#]\s*lines?)?\s*[:#\s]\s*L?(\d{1,9})"
    r"(?:\s*[-\N{EN DASH}]\s*L?(\d{1,9}))?\b\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
_LOG_WORDS = re.compile(r"logs?:\s*(\D.*)", re.IGNORECASE | re.DOTALL)
_REASON = re.compile(
    r"\s+(?:-{1,2}|\N{EM DASH}|\N{EN DASH}|=>|->|#|because|since)\s|\s+\(|[;,]\s|:\s"
)
_URL = re.compile(r"https?://[^\s<>\"'`]+")
_BARE_NAME = re.compile(r"[A-Z][a-z]+file|LICENSE|README|CODEOWNERS")
_MIXED = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{7,64}")
_WRAP = "`\"'<>[](){}*,; \t"
_URL_COMMIT = re.compile(r"(?P<home>.+?)/(?:-/)?commits?/(?P<hash>[0-9a-fA-F]{7,64})/?")
_URL_FILES = (
    re.compile(r"(?P<home>.+?)/(?:-/)?(?:blob|blame|raw)/(?P<rest>.+)"),
    re.compile(r"(?P<home>.+?)/src/(?:commit|branch|tag)/(?P<rest>.+)"),
    re.compile(r"(?P<home>.+?)/(?:-/)?(?:tree|src)/(?P<rest>.+)"),
)
_URL_LINES = re.compile(r"(?:L|lines-)(\d{1,9})(?:[-:]L?(\d{1,9}))?")


class EvidencePointer(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a reference."""

    kind: str
    """commit, file or log."""
    repo: str = ""
    place: str = ""
    """Host, owner and name, if a URL names the repository."""
    rev: str = ""
    path: str = ""
    first: int = 0
    """The line, if one is named; -1 for line 0, which does not exist."""
    last: int = 0
    words: str = ""
    """For a file, the identifier; for a log, the quoted words."""

    @property
    def is_sure(self) -> bool:
        """Return True if the reading is certain: words with spaces may be a sentence."""
        is_plain = not any(map(str.isspace, self.path + self.words))
        return is_plain or self.kind != "file" or bool(self.place)


def parse_reference(ref: str, names: Collection[str]) -> Iterator[list[EvidencePointer]]:
    """Yield readings of a reference, best first; alternatives for the same words come together.
    `names` are the known repositories."""
    url = _URL.search(ref)
    if url:
        yield _parse_url(url[0].rstrip(").,;]"))
        return
    log = _parse_log(ref) if "log" not in names else None
    if log:
        yield [log]
        return
    for piece in dict.fromkeys(_split_pieces(ref)):
        found = _parse_piece(piece, names)
        if found:
            yield found


def _strip_marks(text: str) -> str:
    """Remove surrounding marks; a dot before a path belongs to it."""
    return text.strip(_WRAP).rstrip(_WRAP + ".:")


def _split_pieces(ref: str) -> Iterator[str]:
    yield _strip_marks(ref)
    line_mention = _LINE_MENTION.search(ref)
    if line_mention:
        head = _strip_marks(_strip_marks(ref[: line_mention.start()]).removeprefix("File"))
        lines = f"{line_mention[1]}-{line_mention[2]}" if line_mention[2] else line_mention[1]
        yield f"{head}:{lines}"
        yield f"{_strip_marks(head.rpartition(' ')[2])}:{lines}"
    yield _strip_marks(_REASON.split(_strip_marks(ref), maxsplit=1)[0])
    commit = _COMMIT_MENTION.search(ref)
    if commit:
        yield commit["hash"]
    for word in map(_strip_marks, ref.split()[:_MOST_WORDS]):
        # In a sentence, and/or is no path and 20240101 no commit.
        if is_code_name(re.split(r"[:#]L?\d", word)[0]) or _MIXED.fullmatch(word) or "@" in word:
            yield word


def _parse_piece(piece: str, names: Collection[str]) -> list[EvidencePointer]:
    commit = _COMMIT.fullmatch(piece)
    if commit and (not commit["repo"] or "@" in piece or commit["repo"] in names):
        return [
            EvidencePointer(kind="commit", repo=commit["repo"] or "", rev=commit["hash"].lower())
        ]
    at = _AT_COMMIT.fullmatch(piece)
    if at:
        file = _parse_file(at["repo"], at["rest"])
        return [msgspec.structs.replace(file, rev=at["hash"].lower())]
    first, colon, rest = piece.partition(":")
    found = []
    if colon and first in names and rest.strip(": "):
        return [_parse_file(first, rest.lstrip(": "))]
    named = re.fullmatch(_NAME, first) and not is_code_name(first)
    if colon and named and _looks_like_path(rest.partition(":")[0]):
        found.append(_parse_file(first, rest))
    plain = _parse_file("", piece)
    if _looks_like_path(plain.path) or (plain.first and plain.path and plain.is_sure):
        found.append(plain)
    return found


def _parse_file(repo: str, text: str) -> EvidencePointer:
    """`path`, `path:12`, `path:12-20`, `path:12:identifier`, `path:identifier`, `path#L12`."""
    path, mark, tail = text.partition(":")
    if "#L" in path and not mark:
        path, _, tail = text.partition("#")
    lines = _LINES.fullmatch(tail.strip())
    if lines:
        first, last = int(lines[1]) or -1, int(lines[2] or 0)
        words = (lines[3] or "").strip("`\"' ")
    else:
        first, last, words = 0, 0, tail.strip("`\"' ")
    return EvidencePointer(
        kind="file", repo=repo, path=path.strip(), first=first, last=last, words=words
    )


def _looks_like_path(word: str) -> bool:
    if _BARE_NAME.fullmatch(word):
        return True
    if any(map(str.isspace, word)):
        return "/" in word and is_code_name(word)
    return "/" in word or "\\" in word or is_code_name(word)


def _parse_log(ref: str) -> EvidencePointer | None:
    text = ref.strip("`* ")
    found = _LOG.fullmatch(text)
    if found:
        words = found[3].lstrip(":-\N{EM DASH}\N{EN DASH} ")
        return EvidencePointer(
            kind="log", first=int(found[1]) or -1, last=int(found[2] or 0), words=words
        )
    words_only = _LOG_WORDS.fullmatch(text)
    if words_only and not _looks_like_path(words_only[1].partition(":")[0]):
        return EvidencePointer(kind="log", words=words_only[1])
    return None


def _parse_url(url: str) -> list[EvidencePointer]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    base = f"{parts.scheme}://{parts.netloc}"
    commit = _URL_COMMIT.fullmatch(parts.path)
    if commit:
        rev = commit["hash"].lower()
        return [EvidencePointer(kind="commit", place=_find_place(base + commit["home"]), rev=rev)]
    file = next(filter(None, (form.fullmatch(parts.path) for form in _URL_FILES)), None)
    if file is None:
        return []
    lines = _URL_LINES.match(parts.fragment)
    first, last = (int(lines[1]), int(lines[2] or 0)) if lines else (0, 0)
    names = unquote(file["rest"]).split("/")
    # A branch may contain slashes: only the repository knows where it ends.
    return [
        EvidencePointer(
            kind="file",
            place=_find_place(base + file["home"]),
            rev="/".join(names[:cut]),
            path="/".join(names[cut:]),
            first=first,
            last=last,
        )
        for cut in range(1, min(len(names), 5))
    ]


def _find_place(home: str) -> str:
    found = parse_browse_url(home)
    return found.place if found else ""
