"""Commands that a user names: their words, and whether there is such a program to run."""

import shlex
import shutil
from pathlib import Path

from interlock.system.errors import SourceError


def argv_of(kind: str, rest: str) -> list[str]:
    """The words of a command that is there."""
    try:
        argv = shlex.split(rest)
    except ValueError as error:
        raise SourceError(f"{kind}:{rest}: {error}") from None
    if not argv or shutil.which(argv[0]) is None:
        raise SourceError(f"{kind}:{rest}: {not_runnable(argv[0] if argv else '')}")
    return argv


def not_runnable(name: str) -> str:
    if "/" in name and Path(name).is_file():
        return f"{name!r} may not be executed; chmod +x it, or name its interpreter first"
    near = f"; did you mean './{name}'?" if name and Path(name).is_file() else ""
    return f"there is no command {name!r} to run{near}"
