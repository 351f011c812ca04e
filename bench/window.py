"""`python -m bench.window`: the window under load, while a run of ten thousand cases goes on.

Measures the start, the first view of pages, how long a decision takes from the journal to the
browsers that watch, and what the server uses of a core and of memory meanwhile. `--db` takes
another database than a new file, such as postgresql://….
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

COMMAND = (sys.executable, "-m", "interlock")
PAGES = ("/", "/runs", "/runs/{run}", "/inbox", "/agents")


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


async def watch(url: str, delays: list[float], stop: asyncio.Event) -> None:
    """One browser: hears every message, and notes how old the newest decision in it is."""
    async with (
        httpx.AsyncClient(timeout=None) as client,
        client.stream("GET", f"{url}/live") as stream,
    ):
        async for line in stream.aiter_lines():
            if stop.is_set():
                return
            if line.startswith("data: "):
                now = time.time()
                runs = json.loads(line[6:])["runs"]
                newest = [case["since"] for run in runs for case in run["cases"] if case["since"]]
                if newest:
                    delays.append(now - max(newest))


def view(url: str, run: int) -> dict[str, float]:
    """Milliseconds to each page, the middle of nine."""
    found = {}
    with httpx.Client(base_url=url) as client:
        for page in PAGES:
            times = []
            for _ in range(9):
                began = time.perf_counter()
                client.get(page.format(run=run)).raise_for_status()
                times.append((time.perf_counter() - began) * 1000)
            found[page] = round(statistics.median(times), 1)
    return found


async def measure_load(
    url: str, server: psutil.Process, run: list[str], folder: Path, browsers: int
) -> dict[str, Any]:
    """What the server uses, and how late browsers hear, while the run goes on."""
    delays: list[float] = []
    stop = asyncio.Event()
    watching = [asyncio.create_task(watch(url, delays, stop)) for _ in range(browsers)]
    await asyncio.sleep(2)
    delays.clear()
    before, began, most = server.cpu_times(), time.monotonic(), 0
    working = await asyncio.create_subprocess_exec(
        *run, cwd=folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    waiting = asyncio.ensure_future(working.wait())
    while not waiting.done():
        await asyncio.wait([waiting], timeout=0.5)
        most = max(most, server.memory_info().rss)
    took = time.monotonic() - began
    after = server.cpu_times()
    stop.set()
    for each in watching:
        each.cancel()
    used = (after.user + after.system) - (before.user + before.system)
    return {
        "seconds": round(took, 1),
        "core_percent": round(100 * used / took, 1),
        "memory_mb": round(most / 1e6, 1),
        "messages": len(delays),
        "delay_ms_p50": round(1000 * statistics.median(delays), 1) if delays else None,
        "delay_ms_p95": round(1000 * statistics.quantiles(delays, n=20)[18], 1) if delays else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.window", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--db", default="")
    given = parser.parse_args()
    db = ["--db", given.db] if given.db else []
    with tempfile.TemporaryDirectory(prefix="bench-window-") as name:
        folder = Path(name)
        write_world(folder, given.cases)
        began = time.monotonic()
        with subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--json", *db],
            cwd=folder,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            lines = list(iter(process.stdout.readline, "}\n"))
            url = json.loads("".join([*lines, "}"]))["url"]
            start = time.monotonic() - began
            server = psutil.Process(process.pid)
            run = [*COMMAND, "run", "change", "--cases", "cases.jsonl", *db, "--new"]
            run += ["--agent", "script:crew.yaml"]
            load = asyncio.run(measure_load(url, server, run, folder, given.browsers))
            alone = time.monotonic()
            subprocess.run(run, cwd=folder, capture_output=True, check=False)
            unwatched = time.monotonic() - alone
            found = {"start_s": round(start, 2), "load": load, "pages_ms": view(url, 1)}
            found["run_unwatched_s"] = round(unwatched, 1)
            process.terminate()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
