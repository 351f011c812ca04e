"""`python -m bench.window`: the window under load, while a run of ten thousand cases goes on.

On SQLite and on PostgreSQL. One browser is a real Chromium that shows the run; the others hold
their streams open and read what comes. Of every event of the journal it is measured when a frame
was painted that shows it. Beside it: what the server uses of a core and of memory, its start, the
first view of pages, and what the run itself costs, watched and unwatched. `--write` puts the
numbers into docs/benchmarks-window.md.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec
import psutil
import psycopg
from playwright.async_api import Page, async_playwright

from bench.environment import machine
from interlock.api.inspect import JournalReader
from interlock.api.project import Project
from interlock.api.records import JournalLine
from tests.world.change import CHANGE
from tests.world.postgres_server import run_server

COMMAND: Final = (sys.executable, "-m", "interlock")
PAGES: Final = ("/", "/runs", "/runs/{run}", "/inbox", "/agents")
TEMPLATE: Final = Path(__file__).with_name("window_page.md")
PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks-window.md"
CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
_WATCH: Final = """
window.painted = [];
let last = 0;
new MutationObserver(() => {
  const times = [...document.querySelectorAll("[data-run-changed] time")];
  const changed = Math.max(0, ...times.map((each) => Number(each.dataset.age)));
  if (changed === last) return;
  last = changed;
  // The frame that shows it is painted before the task after its callbacks runs.
  requestAnimationFrame(() => setTimeout(() => window.painted.push([changed, Date.now() / 1000])));
}).observe(document, { subtree: true, childList: true });
"""


class Load(msgspec.Struct, frozen=True):
    """One run that was watched."""

    seconds: float
    events: int
    """Decisions in the journal."""
    unseen: int
    """Those that no frame showed before the run was over and a second had passed."""
    visible_ms: tuple[float, float, float]
    """From the decision to the frame that shows it: p50, p95, the most."""
    frames: int
    core_percent: float
    memory_mb: float
    run_cpu_s: float


class Measured(msgspec.Struct, frozen=True):
    """Everything about one kind of database."""

    database: str
    cases: int
    browsers: int
    start_s: float
    load: Load
    unwatched_s: float
    unwatched_cpu_s: float
    pages_ms: dict[str, float]


def write_world(folder: Path, cases: int) -> None:
    """Cases for the circuit `change`, and a script that answers for everybody: most come to an end,
    some wait for a human."""
    rows = [json.dumps({"id": f"case-{number:05d}", "topic": "load"}) for number in range(cases)]
    (folder / "cases.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    review = {"answer": {"score": 0.1, "risky": False, "remarks": []}, "usage": {"tokens": 500}}
    good = {"answer": {"score": 0.9, "risky": False, "remarks": []}}
    script: dict[str, Any] = {
        "*": {"draft": {"answer": {"text": "done"}, "usage": {"tokens": 900}}, "review": review}
    }
    script |= {f"case-{number:05d}": {"review": good} for number in range(0, cases, 50)}
    (folder / "crew.yaml").write_text(json.dumps(script), encoding="utf-8")


@contextmanager
def serve(folder: Path, db: Sequence[str]) -> Iterator[tuple[str, psutil.Process, float]]:
    """A server: its address, its process, and the seconds until it answered."""
    began = time.monotonic()
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--json", *db],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "}\n"))
        url = json.loads("".join([*lines, "}"]))["url"]
        httpx.get(f"{url}/healthz").raise_for_status()
        took = time.monotonic() - began
        try:
            yield url, psutil.Process(process.pid), took
        finally:
            process.terminate()


async def hold_stream(url: str) -> None:
    """A browser that reads its stream and shows nothing: it costs the measuring side little."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(f"GET /live HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    try:
        while await reader.read(1 << 16):
            pass
    finally:
        writer.close()


@asynccontextmanager
async def open_browser(url: str) -> AsyncIterator[Page]:
    """A real browser that notes when a change was painted."""
    async with async_playwright() as started:
        chromium = await started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = await chromium.new_page()
        await page.add_init_script(_WATCH)
        await page.goto(url)
        yield page
        await chromium.close()


class Running:
    """A run in a process of its own."""

    def __init__(self, folder: Path, db: Sequence[str]) -> None:
        words = ["run", CHANGE, "--cases", "cases.jsonl", *db, "--new", "--json"]
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [*COMMAND, *words, "--agent", "script:crew.yaml"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> tuple[float, float]:
        """The seconds it took, and those of CPU that it used."""
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return time.monotonic() - self._began, used.ru_utime + used.ru_stime


def measure_load(
    url: str, server: psutil.Process, folder: Path, db: Sequence[str], browsers: int
) -> Load:
    """One run while all browsers watch."""
    return asyncio.run(_measure_load(url, server, folder, db, browsers))


async def _measure_load(
    url: str, server: psutil.Process, folder: Path, db: Sequence[str], browsers: int
) -> Load:
    streams = [asyncio.create_task(hold_stream(url)) for _ in range(browsers - 1)]
    number = max(_list_runs(url)) + 1
    async with open_browser(f"{url}/runs") as page:
        running = Running(folder, db)
        while not (shown := await page.goto(f"{url}/runs/{number}")) or not shown.ok:
            pass  # the run is not in the journal yet
        before, began, most = server.cpu_times(), time.time(), 0
        working = asyncio.create_task(asyncio.to_thread(running.wait))
        while not working.done():
            await asyncio.wait([working], timeout=0.5)
            most = max(most, server.memory_info().rss)
        seconds, after = time.time() - began, server.cpu_times()
        await asyncio.sleep(1)
        painted = sorted(await page.evaluate("window.painted"))
    for each in streams:
        each.cancel()
    project = Project(folder, db=db[1] if db else None)
    lines = JournalReader(project.db, number).read()
    events = [each.at for each in lines if isinstance(each, JournalLine) and each.at > began]
    delays = list(_find_delays(events, painted))
    used = (after.user + after.system) - (before.user + before.system)
    return Load(
        seconds=round(seconds, 1),
        events=len(events),
        unseen=len(events) - len(delays),
        visible_ms=_summarize(delays),
        frames=len(painted),
        core_percent=round(100 * used / seconds, 1),
        memory_mb=round(most / 1e6, 1),
        run_cpu_s=round(working.result()[1], 2),
    )


def _list_runs(url: str) -> set[int]:
    found = httpx.get(f"{url}/api/v1/runs").raise_for_status().json()
    return {each["run_id"] for each in found["runs"]}


def _find_delays(events: Sequence[float], painted: Sequence[Sequence[float]]) -> Iterator[float]:
    """From each decision to the first frame that shows the run as it was then, or later."""
    changes = [changed for changed, _ in painted]
    for at in events:
        place = bisect_left(changes, at)
        if place < len(painted):
            yield min(moment for _, moment in painted[place:]) - at


def _summarize(delays: Sequence[float]) -> tuple[float, float, float]:
    cuts = statistics.quantiles(delays, n=20)
    p50, p95, most = (round(1000 * each, 1) for each in (cuts[9], cuts[18], max(delays)))
    return p50, p95, most


def view_pages(url: str, run: int) -> dict[str, float]:
    """Milliseconds to each page, the middle of nine."""
    found = {}
    with httpx.Client(base_url=url, timeout=60) as client:
        for page in PAGES:
            times = []
            for _ in range(9):
                began = time.perf_counter()
                client.get(page.format(run=run)).raise_for_status()
                times.append((time.perf_counter() - began) * 1000)
            found[page] = round(statistics.median(times), 1)
    return found


def measure(name: str, folder: Path, db: Sequence[str], cases: int, browsers: int) -> Measured:
    """Everything about one kind of database: a run without a server first, then a watched one."""
    write_world(folder, cases)
    unwatched = Running(folder, db).wait()
    with serve(folder, db) as (url, server, start):
        load = measure_load(url, server, folder, db, browsers)
        pages = view_pages(url, max(_list_runs(url)))
    return Measured(
        database=name,
        cases=cases,
        browsers=browsers,
        start_s=round(start, 2),
        load=load,
        unwatched_s=round(unwatched[0], 1),
        unwatched_cpu_s=round(unwatched[1], 2),
        pages_ms=pages,
    )


def describe(found: Sequence[Measured], about: dict[str, str]) -> str:
    """The page of documentation with these numbers."""
    rows: list[tuple[str, str, Callable[[Measured], str]]] = [
        ("Start, to the first answer", "1 s", lambda each: f"{each.start_s:.2f} s"),
        (
            "From a decision to the frame that shows it, p50",
            "100 ms",
            lambda each: f"{each.load.visible_ms[0]:.0f} ms",
        ),
        ("The same, p95", "", lambda each: f"{each.load.visible_ms[1]:.0f} ms"),
        ("The same, the most", "", lambda each: f"{each.load.visible_ms[2]:.0f} ms"),
        (
            "Decisions, and those that no frame showed",
            "",
            lambda each: f"{each.load.events:,}, {each.load.unseen}",
        ),
        ("The server's share of a core", "25 %", lambda each: f"{each.load.core_percent} %"),
        ("The server's memory", "200 MB", lambda each: f"{each.load.memory_mb:.0f} MB"),
        (
            "CPU of the run, watched against alone",
            "+5 %",
            lambda each: f"{100 * (each.load.run_cpu_s / each.unwatched_cpu_s - 1):+.1f} %",
        ),
        ("Seconds of the run alone", "", lambda each: f"{each.unwatched_s:.1f} s"),
        *(
            (f"First view of `{page}`", "200 ms", partial(_format_page, page=page))
            for page in PAGES
        ),
    ]
    first = found[0]
    head = " | ".join(each.database for each in found)
    table = [f"| | wanted | {head} |", f"|---|---|{'---|' * len(found)}"]
    table += [
        f"| {name} | {wanted} | {' | '.join(show(each) for each in found)} |"
        for name, wanted, show in rows
    ]
    told = ", ".join(f"{name}: {value}" for name, value in about.items())
    return TEMPLATE.read_text(encoding="utf-8").format(
        table="\n".join(table), cases=first.cases, browsers=first.browsers, about=told
    )


def _format_page(found: Measured, page: str) -> str:
    return f"{found.pages_ms[page]:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.window", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    if CHROMIUM is None:
        parser.error("there is no Chromium; install it")
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-window-") as name:
        about = machine(Path(name))
        if given.only != "postgresql":
            folder = Path(name, "sqlite")
            folder.mkdir()
            found.append(measure("SQLite", folder, (), given.cases, given.browsers))
        if given.only != "sqlite":
            folder = Path(name, "postgresql")
            folder.mkdir()
            with run_server({"fsync": "on", "full_page_writes": "on"}) as server:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    connection.execute("create database bench")
                db = ("--db", server.url.replace("/postgres?", "/bench?"))
                found.append(measure("PostgreSQL", folder, db, given.cases, given.browsers))
    print(json.dumps(msgspec.to_builtins(found), indent=2))
    if given.write:
        PAGE.write_text(describe(found, about), encoding="utf-8")


if __name__ == "__main__":
    main()
