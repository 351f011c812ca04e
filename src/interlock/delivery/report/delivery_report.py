"""The report of a delivery, written beside its workshop, or where the user says."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.delivery.report.records import Delivered

HTML, MARKDOWN = "report.html", "report.md"


def write_report(
    told: "Delivered", html: Path | None = None, markdown: Path | None = None
) -> list[str]:
    """The paths that were written; both in the run's own folder if none is named."""
    from interlock.delivery.report.delivery_markdown import delivery_markdown
    from interlock.delivery.report.delivery_page import delivery_page

    if html is None and markdown is None:
        html, markdown = Path(told.home) / HTML, Path(told.home) / MARKDOWN
    written: list[str] = []
    for path, made in ((html, delivery_page), (markdown, delivery_markdown)):
        if path is not None:
            _write(path, made(told))
            written.append(str(path))
    return written


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise SourceError(f"{path} is a folder; name a file for the report")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise SourceError(f"{path} cannot be written ({error}); name another file") from None
