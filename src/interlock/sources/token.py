"""A token for an outside system: from the environment, or from a key file of its owner alone.

Knows what a token may look like and what to do where there is none. A token is never part of a
message. Refuses to know what it opens.
"""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from interlock.core.errors import SourceError

_LONGEST: Final = 4_096


def find_token(
    system: str,
    environ: Mapping[str, str],
    names: Sequence[str],
    usual: str,
    key_file: Path | None = None,
) -> str:
    """The token for that system: the first of the environment's `names` that is set, else what the
    key file holds; `usual` is the file that is looked for where none is named."""
    token = next((said for name in names if (said := environ.get(name, "").strip())), "")
    if not token:
        token = _from_file(key_file or Path(usual), needed=key_file is not None)
    if not token:
        raise SourceError(
            f"{system} needs a token: set {names[0]}, or put it into {usual} (chmod 600 {usual})."
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(f"The {system} token in {names[0]} or {usual} has odd signs in it.")
    return token


def _from_file(path: Path, *, needed: bool) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            raw = file.read(_LONGEST)
    except FileNotFoundError:
        if needed:
            raise SourceError(f"The key file {path} is not there.") from None
        return ""
    except OSError as error:
        raise SourceError(f"The key file {path} cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise SourceError(f"The key file {path} can be read by others: run chmod 600 {path}.")
    lines = raw.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else ""
