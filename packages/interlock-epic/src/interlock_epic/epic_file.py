"""Read an epic from text: its title and status, its stories with criteria and tasks.

Two forms are read: YAML, and Markdown with a heading and a checklist for each story. A usable
epic's requirements are checked here too.
"""

import re
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec
from markdown_it import MarkdownIt

from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import read_yaml
from interlock_epic.checkpoints.record import check_epic_id
from interlock_epic.status import Status, read_status

_MOST_STORIES: Final = 1_000
_LONGEST: Final = 2_000
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,127}")
_STATUS: Final = re.compile(r"(?:\*\*|__)?Status:?(?:\*\*|__)?:?[ \t]*(.+?)[ \t]*$", re.IGNORECASE)
_EPIC: Final = re.compile(r"Epic[ \t]+([A-Za-z0-9._-]+)[ \t]*:[ \t]*(.*)$", re.IGNORECASE)
_STORY: Final = re.compile(r"Story[ \t]+([0-9A-Za-z][\w.#-]*)[ \t]*:[ \t]*(.*)$", re.IGNORECASE)
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,4}[.)])[ \t]+(?:\[([ xX])\][ \t]*)?(.*?)[ \t]*$")


class EpicTask(msgspec.Struct, frozen=True):
    """A task of a story; `done` is True if its box is ticked."""

    text: str
    done: bool = False


class EpicStory(msgspec.Struct, frozen=True, kw_only=True):
    """A story as written in the epic's file."""

    id: str
    title: str = ""
    status: Status = Status.READY
    acceptance_criteria: tuple[str, ...] = ()
    tasks: tuple[EpicTask, ...] = ()


class EpicText(msgspec.Struct, frozen=True, kw_only=True):
    """An epic as written in its file."""

    id: str
    title: str = ""
    status: Status = Status.READY
    stories: tuple[EpicStory, ...] = ()


def read_epic(text: str, name: str) -> EpicText:
    """Return the epic in a text; the stem of `name` is its id if the text has none."""
    if "\0" in text:
        raise SourceError(f"{name} contains NUL bytes, so it is not text; save it as UTF-8")
    stem = name.rpartition("/")[2].rpartition(".")[0] or name
    is_yaml = name.endswith((".yaml", ".yml"))
    epic = _read_yaml(text, name, stem) if is_yaml else _read_markdown(text, name, stem)
    return _check_epic(epic, name)


def _check_epic(epic: EpicText, name: str) -> EpicText:
    try:
        check_epic_id(epic.id)
    except SourceError as error:
        raise SourceError(f"{name}: {error}") from None
    if len(epic.stories) > _MOST_STORIES:
        raise SourceError(f"{name}: an epic has at most {_MOST_STORIES:,} stories")
    seen: set[str] = set()
    for story in epic.stories:
        if not _ID.fullmatch(story.id):
            raise SourceError(f"{name}: {story.id[:60]!r} is not a story id; write for example 3-1")
        if story.id in seen:
            raise SourceError(f"{name}: story {story.id} appears twice; give each its own id")
        seen.add(story.id)
    return epic


def _read_yaml(text: str, name: str, stem: str) -> EpicText:
    try:
        value = read_yaml(text, name).value
    except CircuitError as error:
        raise SourceError(str(error)) from None
    if not isinstance(value, dict):
        raise SourceError(f"{name}: write an epic as a mapping with id, title and stories")
    body = value.get("epic", value)
    body = body if isinstance(body, dict) else value
    stories = value.get("stories", body.get("stories")) or []
    if not isinstance(stories, list):
        raise SourceError(f"{name}: stories must be a list, one entry for each")
    return EpicText(
        id=_clean_words(body.get("id") or value.get("epic_id") or stem),
        title=_clean_words(body.get("title", "")),
        status=_read_status(body.get("status"), name),
        stories=tuple(
            _read_yaml_story(story, number, name) for number, story in enumerate(stories, 1)
        ),
    )


def _read_yaml_story(value: Any, number: int, name: str) -> EpicStory:
    if isinstance(value, str | int):
        return EpicStory(id=str(value))
    if not isinstance(value, dict):
        raise SourceError(f"{name}: story {number} is neither an id nor a mapping")
    story_id = value.get("id") or value.get("story_id") or value.get("story_key")
    if not isinstance(story_id, str | int | float):
        raise SourceError(f"{name}: story {number} has no id; write for example id: 3-{number}")
    criteria = value.get("acceptance_criteria") or []
    return EpicStory(
        id=str(story_id),
        title=_clean_words(value.get("title", "")),
        status=_read_status(value.get("status"), name),
        acceptance_criteria=tuple(_clean_words(text) for text in _as_list(criteria)),
        tasks=tuple(_read_yaml_task(task) for task in _as_list(value.get("tasks") or [])),
    )


def _read_yaml_task(value: Any) -> EpicTask:
    if isinstance(value, dict):
        text = value.get("text") or value.get("title") or value.get("description") or ""
        done = value.get("done") is True or value.get("status") in ("done", "completed")
        return EpicTask(_clean_words(text), done)
    return EpicTask(_clean_words(value))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _read_status(word: Any, name: str) -> Status:
    if word in (None, ""):
        return Status.READY
    try:
        return read_status(str(word))
    except SourceError as error:
        raise SourceError(f"{name}: {error}") from None


def _clean_words(value: Any) -> str:
    return " ".join(str(value).split())[:_LONGEST]


class _StoryDraft:
    """A story whose lines are still being read."""

    def __init__(self, story_id: str, title: str) -> None:
        self.id, self.title = story_id, title
        self.status = Status.READY
        self.criteria: list[str] = []
        self.tasks: list[EpicTask] = []

    def build_story(self) -> EpicStory:
        return EpicStory(
            id=self.id,
            title=self.title,
            status=self.status,
            acceptance_criteria=tuple(self.criteria),
            tasks=tuple(self.tasks),
        )


class _MarkdownReader:
    """Reads block after block: the first heading is the epic's, `Story ID: title` opens a story."""

    def __init__(self, name: str, stem: str) -> None:
        self.id, self.title, self.status = stem, "", Status.READY
        self.stories: list[_StoryDraft] = []
        self._name = name
        self._part = ""

    def read(self, text: str) -> None:
        lines = text.split("\n")
        for token, content in pairwise(_build_parser().parse(text)):
            first, end = token.map or (0, 0)
            if token.type == "heading_open" and lines[first].startswith("#"):
                self._take_heading(content.content, len(token.markup))
            elif token.type == "paragraph_open":
                for line in lines[first:end]:
                    self._take_line(line)

    def _take_heading(self, text: str, level: int) -> None:
        story = _STORY.match(text)
        if story:
            self.stories.append(_StoryDraft(story[1].replace(".", "-"), _clean_words(story[2])))
            self._part = ""
        elif not self.title and level == 1:
            epic = _EPIC.match(text)
            if epic:
                self.id = epic[1] if not epic[1].isdecimal() else f"epic-{epic[1]}"
            self.title = _clean_words(epic[2] if epic else text)
        else:
            self._part = text.lower()

    def _take_line(self, line: str) -> None:
        status = _STATUS.match(line)
        if status:
            self._take_status(status[1])
            return
        item = _ITEM.match(line)
        if item and item[2] and self.stories:
            if "accept" in self._part or "criteri" in self._part:
                self.stories[-1].criteria.append(_clean_words(item[2]))
            elif item[1] is not None or "task" in self._part:
                self.stories[-1].tasks.append(
                    EpicTask(_clean_words(item[2]), item[1] in ("x", "X"))
                )

    def _take_status(self, word: str) -> None:
        status = _read_status(word.strip("*_` "), self._name)
        if self.stories:
            self.stories[-1].status = status
        else:
            self.status = status


@cache
def _build_parser() -> MarkdownIt:
    """Return a parser of headings and fences.

    Points are read line by line, since people indent them freely: to the library, a point four
    blanks deep is code or continues the paragraph above.
    """
    parser = MarkdownIt("zero").enable(["heading", "fence"])
    parser.core.ruler.enableOnly(["block"])
    return parser


def _read_markdown(text: str, name: str, stem: str) -> EpicText:
    lines = text.split("\n")
    reader, first = _MarkdownReader(name, stem), 0
    if lines and lines[0].strip() == "---":
        ends = [at for at, line in enumerate(lines[1:200], 1) if line.strip() == "---"]
        first = ends[0] + 1 if ends else 0
    head = _read_yaml("\n".join(lines[1 : first - 1]), name, stem) if first else None
    reader.read("\n".join(line.rstrip("\r") for line in lines[first:]))
    if not reader.title and not reader.stories and not (head and head.stories):
        raise SourceError(
            f"{name} is not an epic; write '# Epic ID: title' and '## Story 1.1: title' headings"
        )
    stories = tuple(draft.build_story() for draft in reader.stories)
    return EpicText(
        id=head.id if head and head.id != stem else reader.id,
        title=(head.title if head else "") or reader.title,
        status=head.status if head and head.status != Status.READY else reader.status,
        stories=stories or (head.stories if head else ()),
    )
