"""The window's pages of epics: their state, stories and sessions."""

from typing import Any, Final

import msgspec
from jinja2 import PackageLoader
from litestar import Response, get

from interlock.api.project import Project
from interlock.system.errors import InterlockError, NotFoundError
from interlock.system.time import parse_timestamp
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.record import Checkpoint, UnreadableCheckpoint
from interlock_epic.checkpoints.store import Checkpoints
from interlock_epic.report import describe_newest_run
from interlock_web.extend import NavLink, Section, Window, reading


class EpicView(msgspec.Struct, frozen=True):
    """An epic with its checkpoint and its newest run."""

    epic_id: str
    checkpoint: Checkpoint | None
    problem: str
    """Why its checkpoint cannot be read, or ""."""
    run: dict[str, Any]

    @property
    def updated_at(self) -> float | None:
        """Return when its checkpoint was written, or None if that is not a time."""
        return parse_timestamp(self.checkpoint.updated) if self.checkpoint else None


@get("/epics", sync_to_thread=True)
def show_epics(window: Window) -> Response[str]:
    project = window.project
    epics = [_read_epic(project, each) for each in _list_epics(project)]
    return window.render("epic/epics.html", title="Epics", path="/epics", epics=epics)


@get("/epics/{epic_id:str}", sync_to_thread=True)
def show_epic(window: Window, epic_id: str) -> Response[str]:
    if epic_id not in _list_epics(window.project):
        raise NotFoundError(
            f"there is no epic {epic_id[:80]!r}; 'interlock epic run FILE' begins one"
        )
    epic = _read_epic(window.project, epic_id)
    return window.render("epic/epic.html", title=f"Epic {epic_id}", path="/epics", epic=epic)


def _list_epics(project: Project) -> list[str]:
    try:
        return Checkpoints(find_state_folder(project.path)).list_epics()
    except InterlockError:
        return []


def _read_epic(project: Project, epic_id: str) -> EpicView:
    found = Checkpoints(find_state_folder(project.path)).read(epic_id)
    newest = describe_newest_run(project, epic_id)
    if isinstance(found, UnreadableCheckpoint):
        return EpicView(epic_id, None, found.sentence, newest)
    return EpicView(epic_id, found.checkpoint, "", newest)


class EpicRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An epic in a list."""

    epic_id: str
    status: str
    """Its checkpoint's status, or "" if that cannot be read."""
    stories: dict[str, str]
    """The status of each story."""
    sessions: int
    run_id: int
    """Its newest run, or 0."""
    outcome: str
    questions: list[int]
    """The questions that wait for a person."""


class EpicList(msgspec.Struct, frozen=True):
    epics: list[EpicRecord]


@reading("/epics", "Epics", sync_to_thread=True)
def list_epics(project: Project) -> EpicList:
    """Return every epic with its stories, its newest run and its open questions."""
    return EpicList([_describe(_read_epic(project, each)) for each in _list_epics(project)])


def _describe(epic: EpicView) -> EpicRecord:
    checkpoint = epic.checkpoint
    return EpicRecord(
        epic_id=epic.epic_id,
        status=checkpoint.epic.status.value if checkpoint else "",
        stories={each.id: each.status.value for each in checkpoint.stories} if checkpoint else {},
        sessions=len(epic.run["sessions"]),
        run_id=epic.run["run_id"],
        outcome=epic.run["outcome"],
        questions=[each for each in epic.run["questions"] if isinstance(each, int)],
    )


SECTION: Final = Section(
    "",
    (NavLink("/epics", "Epics", "p"),),
    (show_epics, show_epic),
    PackageLoader("interlock_epic", "templates"),
    api=(list_epics,),
    rank=20,
)
