"""The carrier `manual`: a step is written out, and somebody saves the answer by a later command.

The papers are those of the carrier `file`; only nobody waits for them. An answer is an artifact put
in its place, so it can be saved while nothing runs, and a watcher of files could give it as well.
"""

from pathlib import Path

from interlock.agents.files.artifact import LARGEST
from interlock.agents.files.case_folder import SIGNAL, Names, Papers, case_folder, plain_names
from interlock.agents.files.file import FileCarrier
from interlock.agents.files.signal_paper import signal_at
from interlock.signals.signal_file import Artifact, encode_artifact, read_artifact
from interlock.system.errors import SourceError
from interlock.system.safe_file import UnreadableFile, read_regular, set_aside, write_whole
from interlock.system.strict_json import Problem, decode_object


class ManualCarrier(FileCarrier):
    """A carrier whose answers come by hand, some time; `save` puts them where they belong."""

    tells = False


def read_saved(path: Path, dispatch_id: int) -> Artifact:
    """The artifact in a user's file, with or without its wrapper; a wrapper must carry this id."""
    raw = read_regular(path.resolve(), LARGEST)
    if isinstance(raw, UnreadableFile):
        raise SourceError(f"{raw.reason}; nothing was saved")
    found = decode_object(raw)
    if isinstance(found, dict):
        if not found.keys() >= {"dispatch_id", "data"}:
            return Artifact(dispatch_id, found)
        wrapped = read_artifact(raw)
        if isinstance(wrapped, Artifact) and wrapped.dispatch_id == dispatch_id:
            return wrapped
        found = wrapped if isinstance(wrapped, Problem) else _another(wrapped, dispatch_id)
    raise SourceError(f"{path}: {found.sentence}; nothing was saved")


def _another(wrapped: Artifact, dispatch_id: int) -> Problem:
    said = f"it answers dispatch {wrapped.dispatch_id}, and {dispatch_id} is open"
    return Problem("wrong-dispatch-id", said)


def items_in(path: Path) -> list[int]:
    """The items that an artifact says it is about, if it can be read and does."""
    raw = read_regular(path.resolve(), LARGEST)
    found = None if isinstance(raw, UnreadableFile) else decode_object(raw)
    data = found.get("data", found) if isinstance(found, dict) else {}
    items = data.get("case_ids") if isinstance(data, dict) else ()
    known = items if isinstance(items, list) else ()
    return [item for item in known if isinstance(item, int) and not isinstance(item, bool)]


def laid(root: Path, run_id: int, case_no: int, papers: Papers, dispatch_id: int) -> Path | None:
    """What somebody put at the artifact's place after that dispatch was written out; an earlier
    answer may still lie there before that, and is none."""
    folder = root.resolve() / f"{run_id}" / f"{case_no}"
    there, artifact = signal_at(folder / SIGNAL), folder / papers.artifact
    is_asked = there is not None and there.dispatch_id == dispatch_id
    return artifact if is_asked and artifact.is_file() and not artifact.is_symlink() else None


def leave_artifact(
    root: Path,
    run_id: int,
    case_no: int,
    step: str,
    attempt: int,
    artifact: Artifact,
    names: Names = plain_names,
    *,
    given: Path | None = None,
) -> Path:
    """Put it where the next sitting looks; something else that lies there is kept aside. It may
    have been `given` in that very place."""
    place = case_folder(root.resolve(), run_id, case_no, names(step, attempt))
    try:
        if given is None or given.resolve() != place.artifact:
            set_aside(place.artifact, "replaced")
        write_whole(place.artifact, encode_artifact(artifact))
    except OSError as error:
        raise SourceError(f"{place.artifact} cannot be written: {error.strerror}") from None
    return place.artifact
