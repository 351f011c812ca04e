"""The commands that the pages show, and a folder in which they mean something."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.world.places import PYTHONPATH, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FILE = re.compile(r"`([\w./-]+\.\w+)`[:.]?$")
_COMMAND = re.compile(r"(?:interlock|asterisk) \S|.*; interlock ")
_PATIENCE = 120.0
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\b[0-9a-f]{10,40}\b"), "HASH"),
    (re.compile(r"\d[\d.]*"), "N"),
    (re.compile(r"\s+"), " "),
)
"""What differs from one run to the next, and what stands for it in a comparison."""


class Block(NamedTuple):
    """A fenced block: where it stands, its language, its text and the file it is, if any."""

    page: str
    line: int
    language: str
    text: str
    file: str

    @property
    def is_shell(self) -> bool:
        return self.language in ("", "sh", "bash", "console") and not self.file

    def list_commands(self) -> list[str]:
        """Each command as it would be typed; a block of anything else has none."""
        if not self.is_shell:
            return []
        lines = self.text.replace("\\\n", "").splitlines()
        return [line for line in lines if _COMMAND.match(line)]


def list_blocks(page: Path) -> Iterator[Block]:
    before = ""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "inline":
            before = token.content
        elif token.type == "fence":
            named = _FILE.search(before)
            line = (token.map or [0])[0] + 1
            language = (token.info.split() or [""])[0]
            name = str(page.relative_to(ROOT))
            yield Block(name, line, language, token.content, named[1] if named else "")
            before = ""


def list_outputs(page: Path) -> list[str]:
    """What a page shows as printed: blocks after one of commands, and what `inbox` lists.

    Other plain text between commands names its language (`text`)."""
    found, after_commands = [], False
    for block in list_blocks(page):
        commands, plain = block.list_commands(), not block.language and not block.file
        if plain and not commands and (after_commands or "  QUESTION\n" in block.text):
            lines = block.text.splitlines(keepends=True)
            found.append("".join(line for line in lines if not line.startswith("$ ")))
        after_commands = bool(commands)
    return found


def find_unprinted(page: str, printed: str) -> list[str]:
    """The lines a page shows that were not printed, whatever their times, numbers and hashes."""
    visible = [line for text in list_outputs(ROOT / page) for line in text.splitlines()]
    assert visible, f"{page} shows nothing"
    found = {_normalize(line) for line in printed.splitlines()}
    return [line for line in visible if _normalize(line) not in found]


def _normalize(line: str) -> str:
    for pattern, name in _VARYING:
        line = pattern.sub(name, line)
    return line.strip()


class Typed(NamedTuple):
    """How a command ended; one that was still at work when our patience ended has no code."""

    command: str
    code: int | None
    out: str


class Shell:
    """A folder with our two programs on its PATH, and no agents' programs but stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self._bin = folder / "bin"
        self._bin.mkdir()
        python = f'exec "{sys.executable}"'
        self.install("interlock", f'#!/bin/sh\n{python} -m interlock "$@"\n')
        main = "import sys; from interlock.__main__ import asterisk; sys.exit(asterisk())"
        self.install("asterisk", f"#!/bin/sh\n{python} -c '{main}' \"$@\"\n")
        self.install("python", f'#!/bin/sh\n{python} "$@"\n')

    def install(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text, encoding="utf-8")
        (self._bin / name).chmod(0o755)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)

    def type(self, command: str, patience: float = _PATIENCE) -> Typed:
        env = {
            "PATH": f"{self._bin}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._bin.parent),
            "PYTHONPATH": PYTHONPATH,
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
        }
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            return Typed(command, None, out)
        return Typed(command, process.returncode, out)
