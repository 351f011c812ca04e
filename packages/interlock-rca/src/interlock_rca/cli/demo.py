"""The verb demo: a small world with real failures, and the real commands run on them.

Each command is a process of its own, shown as a user would type it. Halfway, the analysis is killed
with SIGKILL; the rest proves that nothing was lost. At the end the findings stand beside the
planted faults.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json
from interlock.system.errors import StateError
from interlock.system.text import align_columns

if TYPE_CHECKING:
    from interlock_rca.demo.verdict import DemoRow
    from interlock_rca.demo.world import DemoWorld

_CONFIG = """\
# What passed last, and the repositories that may hold a cause: what each is for.
last_green = "last-green"

{repos}"""
_REPO = """\
[[repo]]
name = "{name}"
path = "repos/{name}"
purpose = "{purpose}"
role = "{role}"
"""
_KILLED_AFTER = 40


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to put it.")] = Path(
        "demo"
    ),
    json: Json = False,
) -> None:
    """See Interlock at work, in seconds. Analyses a failing test run and shows the truth."""
    from interlock_rca.demo.world import build_world

    echo_line = (lambda _text="": None) if json else echo
    echo_line("Three git repositories, a real test suite, two nights of failures: making them…")
    world = build_world(folder.resolve())
    _reset_world(world)
    play = DemoShow(world, echo_line)
    play.play()
    rows = play.show_verdict()
    if json:
        right = sum(row.is_right for row in rows)
        found = {"right": right, "families": len(rows), "rows": msgspec.to_builtins(rows)}
        echo_json({"folder": str(world.folder), "commands": play.played, "verdict": found})


class DemoShow:
    """Runs commands in the world and prints them as a user would type them."""

    def __init__(self, world: "DemoWorld", echo: Callable[..., None]) -> None:
        self.played: list[dict[str, Any]] = []
        from interlock.runtime.settings import DATABASE

        self._world = world
        self._database = world.folder / DATABASE
        self._echo = echo

    def play(self) -> None:
        early, late = self._world.earlier.name, self._world.today.name
        self._echo("Three weeks ago three tests failed. They are analysed, and a human agrees:")
        green = ("--last-green", self._world.green_before)
        self._run_command("analyze", f"results/{early}", *green, expect=ExitCode.WAITING)
        self._run_command("inbox")
        for question_id in self._list_questions():
            self._run_command("answer", str(question_id), "approve", "--by", "demo", quiet=True)
        self._echo()
        self._run_command("resume")
        self._echo("This morning 37 of 94 tests are red. In the middle the analysis is killed:")
        self._kill_midway("analyze", f"results/{late}")
        self._echo("The same command again. It continues where it was:")
        self._run_command("analyze", f"results/{late}", expect=ExitCode.WAITING)
        self._echo("Why does it say so? Every decision is on record:")
        self._run_command("explain", "C1")
        self._echo("What would another threshold have done? Decided again, nobody asked:")
        self._run_command("replay", "--set", "convergence_sufficient=0.9")
        self._echo("Is every case still the fold of its journal?")
        self._run_command("doctor", "--deep")

    def show_verdict(self) -> "list[DemoRow]":
        """Show the findings beside the planted faults."""
        from interlock.api.project import Project
        from interlock_rca.analyze import collect_findings, get_suite
        from interlock_rca.demo.verdict import (
            TABLE_HEAD,
            format_sentences,
            format_table,
            judge_findings,
        )

        with Project(self._world.folder, db=self._database).read() as connection:
            findings = collect_findings(connection, get_suite(connection, None))
        rows = judge_findings(findings, self._world.truth)
        self._echo("\nWhat was found, next to what was planted:\n")
        for line in align_columns(TABLE_HEAD, format_table(rows)):
            self._echo(line)
        self._echo()
        for sentence in format_sentences(rows):
            self._echo(sentence)
        report = self._world.folder / "interlock-report" / self._world.today.name / "report.html"
        self._echo(f"\nThe page to send around: {report}")
        self._echo(f"The small world is in {self._world.folder}: look around, try your own.")
        return rows

    def _run_command(self, *words: str, expect: int = ExitCode.DONE, quiet: bool = False) -> None:
        self._echo(f"{'' if quiet else chr(10)}$ interlock {' '.join(words)}")
        done = subprocess.run(  # noqa: S603
            _build_command(*words),
            cwd=self._world.folder,
            env=_build_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self._echo(done.stdout.strip() if quiet else done.stdout)
        self.played.append({"words": words, "exit": done.returncode, "output": done.stdout})
        if done.returncode != expect:
            raise StateError(
                f"'interlock {' '.join(words)}' was meant to end with {expect}, "
                f"not {done.returncode}: {done.stdout.strip()}"
            )

    def _kill_midway(self, *words: str) -> None:
        before = self._count_decisions()
        self._echo(f"\n$ interlock {' '.join(words)}")
        process = subprocess.Popen(  # noqa: S603
            _build_command(*words),
            cwd=self._world.folder,
            env=_build_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and self._count_decisions() < before + _KILLED_AFTER:
            time.sleep(0.01)
        process.kill()
        self.played.append({"words": words, "exit": process.wait(), "output": ""})
        self._echo(f"killed (SIGKILL) after {self._count_decisions() - before} decisions\n")

    def _count_decisions(self) -> int:
        from interlock.api.inspect import JournalReader, list_overviews

        numbers = [each.run.run_id for each in list_overviews(self._database)]
        return sum(len(JournalReader(self._database, number).read()) for number in numbers)

    def _list_questions(self) -> list[int]:
        done = subprocess.run(  # noqa: S603
            _build_command("inbox", "--json"),
            cwd=self._world.folder,
            env=_build_environment(),
            capture_output=True,
            check=True,
        )
        reviews = msgspec.json.decode(done.stdout)["reviews"]
        return [each["question_ids"][0] for each in reviews]


def _reset_world(world: "DemoWorld") -> None:
    """Remove the results of an earlier demo; write down where the repositories are."""
    for old in (world.folder / ".interlock").glob("interlock.db*"):
        old.unlink() if old.is_file() else shutil.rmtree(old)
    repos = "\n".join(
        _REPO.format(name=one.name, purpose=one.purpose, role=one.role) for one in world.repos
    )
    text = _CONFIG.format(repos=repos)
    (world.folder / "interlock.toml").write_text(text, encoding="utf-8")


def _build_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "interlock", *words]


def _build_environment() -> dict[str, str]:
    """Return an environment without the user's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
