"""The memory of results behind `interlock serve`: list, get, and put after a check.

Blobs never change and are named by their content, so a client with a copy asks only for what is
missing. Reading needs the scope `read`, adding needs `upload`.
"""

from typing import Annotated, Final, cast

import msgspec
from litestar.params import Parameter

from interlock.api.project import Project
from interlock.system.errors import NotFoundError
from interlock.system.http import BYTES
from interlock_history.settings import read_history_settings
from interlock_history.store import BlobKind, FolderStore, HistoryStore, open_store
from interlock_web.extend import reading, writing

_KINDS: Final = ("results", "names")
_Kind = Annotated[str, Parameter(description="results or names.", max_length=20)]
_Key = Annotated[str, Parameter(description="The hash of its content.", max_length=32)]


class BlobKeys(msgspec.Struct, frozen=True):
    """The keys of a kind, oldest first."""

    keys: list[str]


class KeptBlob(msgspec.Struct, frozen=True):
    """The answer to a blob that is kept."""

    new: bool
    """False if the blob was there before."""


def open_project_store(project: Project) -> HistoryStore:
    """Open the project's memory as its settings name it."""
    word = read_history_settings(project.path).store
    return open_store(word) if "://" in word else FolderStore(project.path / word)


def _check_kind(kind: str) -> BlobKind:
    if kind not in _KINDS:
        raise NotFoundError(f"the memory has {', '.join(_KINDS)}, not {kind!r}")
    return cast("BlobKind", kind)


@reading("/history/{kind:str}", "What the memory of results holds", sync_to_thread=True)
def list_blobs(project: Project, kind: _Kind) -> BlobKeys:
    """List the keys of all blobs of a kind."""
    return BlobKeys(open_project_store(project).list_blobs(_check_kind(kind)))


@reading("/history/{kind:str}/{key:str}", "One blob of it", sync_to_thread=True, media_type=BYTES)
def read_blob(project: Project, kind: _Kind, key: _Key) -> bytes:
    """Return the bytes of a blob; they never change."""
    raw = open_project_store(project).read_blob(_check_kind(kind), key)
    if raw is None:
        raise NotFoundError(f"the memory has no {kind} {key}")
    return raw


@writing(
    "/history/{kind:str}/{key:str}",
    "Add a blob to it",
    scopes=("upload",),
    content=(BYTES,),
    sync_to_thread=True,
)
def keep_blob(project: Project, kind: _Kind, key: _Key, body: bytes) -> KeptBlob:
    """Add results, or the names that they refer to. Names must arrive before results; a blob that
    does not match its key is refused."""
    return KeptBlob(open_project_store(project).put_blob(_check_kind(kind), key, body))


HANDLERS: Final = (list_blobs, read_blob, keep_blob)
"""The handlers that history adds to the server's API."""
