"""Text files that a user names: UTF-8, of a bounded size, or a sentence that says why not."""

from pathlib import Path

from interlock.system.errors import SourceError


def read_text(path: Path, most: int) -> str:
    """A text file of the user's, if it is one and not too large."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise SourceError(f"{path} has more than the {most:,} bytes that are read")
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
