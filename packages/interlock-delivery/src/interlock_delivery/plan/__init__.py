"""Read a plan from its file, refusing files that are too large or not text."""

import stat
from pathlib import Path
from typing import Final

from interlock.system.errors import SourceError
from interlock_delivery.plan.markdown import read_markdown
from interlock_delivery.plan.plan import Plan

MOST: Final = 10_000_000


def read_plan(path: Path) -> Plan:
    """Return the plan in a file; raise SourceError if it cannot be read as text."""
    return read_markdown(_read_text(path))


def _read_text(path: Path) -> str:
    content = _read_content(path)
    zero = content.find(0)
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise SourceError(
            f"{path}:{line}: there is a NUL byte, so this is not text; save it as UTF-8"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{path}:{line}: this is not UTF-8; save the plan as UTF-8") from None


def _read_content(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "not a regular file"
            raise SourceError(f"{path} is {what}; name the file that holds the plan")
        with path.open("rb") as file:
            content = file.read(MOST + 1)
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist; name the file that holds the plan") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MOST:
        raise SourceError(f"{path} is larger than the {MOST:,} bytes a plan may have; split it")
    return content
