"""A case's folder: where its signal, its prompts and its artifacts lie.

Knows `ROOT/RUN/CASE/`, the names of the papers in it, and that nothing may lead out of the root.
Refuses to know when a paper is written and what stands in it.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError

SIGNAL = "signal.json"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)


class Papers(msgspec.Struct, frozen=True):
    """The names of one dispatch's files."""

    prompt: str
    artifact: str


Names = Callable[[str, int], Papers]
"""From a step and an attempt to the names of its papers; applications bring their own."""


def plain_names(step: str, attempt: int) -> Papers:
    """`prompt-STEP.md` and `STEP-result.json`; a later attempt has a prompt of its own."""
    again = f"-loop-{attempt}" if attempt > 1 else ""
    return Papers(f"prompt-{step}{again}.md", f"{step}-result.json")


class CaseFolder(msgspec.Struct, frozen=True):
    """The absolute paths of one dispatch."""

    folder: Path
    prompt: Path
    artifact: Path
    signal: Path

    def moved(self) -> bool:
        """Whether the folder's name leads elsewhere by now."""
        return not self.folder.is_dir() or os.path.realpath(self.folder) != str(self.folder)


def run_folder(root: Path, run_id: int) -> Path:
    """The folder of a run; SourceError if it leads elsewhere."""
    return _made(root, f"{run_id}")


def case_folder(root: Path, run_id: int, case_no: int, papers: Papers) -> CaseFolder:
    """The folder of a case, made if need be; SourceError if it cannot be or leads elsewhere."""
    for name in (papers.prompt, papers.artifact):
        if not _SAFE.fullmatch(name) or name == SIGNAL:
            raise SourceError(f"{name!r} is no safe file name")
    folder = _made(run_folder(root, run_id), f"{case_no}")
    return CaseFolder(folder, folder / papers.prompt, folder / papers.artifact, folder / SIGNAL)


def _made(above: Path, name: str) -> Path:
    folder = above / name
    try:
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the folder {folder} cannot be used: {error}") from None
    if real != above.resolve() / name:
        raise SourceError(f"{folder} is a symbolic link; symbolic links are refused")
    return real
