"""A small world for the command line: a folder, and the real command run in it.

`say` calls the command's own `main` in this process, which is fast; `type` starts it as a user's
shell would. Both give back everything that was said, with times, hosts and process ids made equal.
"""

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from interlock.cli.app import main

COMMAND = (sys.executable, "-m", "interlock")
LIMIT = 180.0


class CliResult(NamedTuple):
    """What a command said, and how it left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout; stdout holds nothing else."""
        found = json.loads(self.out)
        assert found.pop("schema_version") == 1
        return found


class World:
    """A folder in which commands are given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / ".interlock" / "interlock.db"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def cases(self, *ids: str, **fields: object) -> None:
        """cases.jsonl with these ids."""
        rows = [json.dumps({"id": each, "topic": f"the {each}", **fields}) for each in ids]
        self.write("cases.jsonl", "".join(f"{row}\n" for row in rows))

    def say(self, *words: str) -> CliResult:
        """The command in this process. The object that repeats an error for programs is checked
        against stderr and left out."""
        return without_error(self.say_all(*words))

    def say_all(self, *words: str) -> CliResult:
        """The same with everything that is on stdout."""
        return self._say(main, "interlock", *words)

    def hand(self, *words: str) -> CliResult:
        """The command `asterisk` in this process."""
        return without_error(self._say(_find_asterisk(), "asterisk", *words))

    def _say(self, command: Callable[[], None], *words: str) -> CliResult:
        out, err = _paper(), _paper()
        before = sys.argv
        sys.argv = [*words]
        try:
            with chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
                command()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        finally:
            sys.argv = before
        return CliResult(code, plain(_read(out)), plain(_read(err)))

    def type(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        limit: float = LIMIT,
        before: tuple[str, ...] = (),
    ) -> CliResult:
        """The command in a process of its own, with other words `before` it."""
        done = subprocess.run(
            [*before, *COMMAND, *words],
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
        return without_error(CliResult(done.returncode, plain(done.stdout), plain(done.stderr)))

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """The command in the background; the caller ends it."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def until(true: Callable[[], object], what: str) -> None:
    """Wait for something that must happen soon."""
    limit = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < limit, f"waited in vain: {what}"
        time.sleep(0.01)


def ended(process: "subprocess.Popen[str]") -> CliResult:
    """What a background command said in the end."""
    out, err = process.communicate(timeout=LIMIT)
    return without_error(CliResult(process.returncode, plain(out), plain(err)))


def without_error(result: CliResult) -> CliResult:
    """What was said without the object that tells programs of an error; it must say the same."""
    if not result.code or not result.out.startswith('{\n  "schema_version": 1,\n  "error": '):
        return result
    assert result.json["exit_code"] == result.code
    assert result.json["error"] in result.err
    return CliResult(result.code, "", result.err)


def _paper() -> io.TextIOWrapper:
    """Something to write on, text or bytes, as a terminal's or a pipe's end is."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _read(paper: io.TextIOWrapper) -> str:
    paper.seek(0)
    return paper.read()


def plain(text: str) -> str:
    """Times, hosts and process ids as words, so that output can be compared whole."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"process \d+ on \S+", "process PID on HOST", text)
    return re.sub(r"\b\d+\.\d s\b", "SECONDS s", text)


APPROVED = """\
"*":
  draft: {answer: {text: fine}}
  review: {answer: {score: 0.9, risky: false, remarks: []}}
  publish: {answer: {}}
"""


def read_all(master: int) -> str:
    """All that is drawn until the last writer is gone."""
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    return b"".join(parts).decode()


def decisions(world: World) -> int:
    return _count(world.db, "journal")


def dispatches(world: World) -> int:
    return _count(world.db, "dispatches")


def _count(db: Path, table: str) -> int:
    if not db.exists():
        return 0
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    try:
        return int(connection.execute(f"select count(*) from {table}").fetchone()[0])
    finally:
        connection.close()


def _find_asterisk() -> Callable[[], None]:
    (entry,) = metadata.entry_points(group="console_scripts", name="asterisk")
    found: Callable[[], None] = entry.load()
    return found
