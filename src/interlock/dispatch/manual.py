"""The carrier `manual`: a step is written out, and somebody saves the answer by a later command.

The papers are those of the carrier `file`; only nobody waits for them. An answer is an artifact put
in its place, so it can be saved while nothing runs, and a watcher of files could give it as well.
"""

from pathlib import Path

from interlock.core.errors import SourceError
from interlock.dispatch.artifact import LARGEST
from interlock.dispatch.case_folder import Names, case_folder, plain_names
from interlock.dispatch.file import FileDesk
from interlock.dispatch.safe_file import NotRead, read_regular, set_aside, write_whole
from interlock.wire.signal_file import Artifact, encode_artifact, read_artifact
from interlock.wire.strict_json import Problem, decode_object


class ManualDesk(FileDesk):
    """A carrier whose answers come by hand, some time; `save` puts them where they belong."""

    tells = False


def read_saved(path: Path, dispatch_id: int) -> Artifact:
    """The artifact in a user's file, with or without its wrapper; a wrapper must carry this id."""
    raw = read_regular(path.resolve(), LARGEST)
    if isinstance(raw, NotRead):
        raise SourceError(f"{raw.reason}; nothing was saved")
    found = decode_object(raw)
    if isinstance(found, dict):
        if not found.keys() >= {"dispatch_id", "data"}:
            return Artifact(dispatch_id, found)
        wrapped = read_artifact(raw)
        if isinstance(wrapped, Artifact) and wrapped.dispatch_id == dispatch_id:
            return wrapped
        found = wrapped if isinstance(wrapped, Problem) else Problem("wrong-dispatch-id", "")
    sentence = found.sentence or f"it answers another dispatch than {dispatch_id}, which is open"
    raise SourceError(f"{path}: {sentence}; nothing was saved")


def leave_artifact(
    root: Path,
    run_id: int,
    case_no: int,
    step: str,
    attempt: int,
    artifact: Artifact,
    names: Names = plain_names,
) -> Path:
    """Put it where the next sitting looks; something else that lies there is kept aside."""
    place = case_folder(root.resolve(), run_id, case_no, names(step, attempt))
    try:
        set_aside(place.artifact, "replaced")
        write_whole(place.artifact, encode_artifact(artifact))
    except OSError as error:
        raise SourceError(f"{place.artifact} cannot be written: {error.strerror}") from None
    return place.artifact
