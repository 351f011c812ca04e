"""Calibration: the stub on sixty cases, a thousand replays, four responders beside one.

`python -m bench.calibrate [--cases N] [--seconds S]` measures the real command in a folder of its
own and prints one line for each target. Answers that take a second are slept, not thought.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec

from interlock.api.work import load_circuit
from interlock.journal.database import open_reader
from interlock.journal.runs import find_run
from interlock_calibrate.campaign import FOLDER
from interlock_calibrate.tune import TuningBench, parse_grid, read_recordings
from interlock_rca.calibration.benchmark import RcaBenchmark
from interlock_rca.calibration.scenario import find_scenario

COMMAND = (sys.executable, "-m", "interlock")
SIXTY = "web-shop"
ANSWERS = {
    "F0_RECALL": {"match": False, "confidence": 0.1, "reasoning": "new"},
    "F1_TRIAGE": {
        "symptom_category": "product",
        "defect_type_hypothesis": "pb001",
        "candidate_repos": ["shop-api"],
        "skip_investigation": False,
    },
    "F2_RESOLVE": {"selected_repos": [{"name": "shop-api", "reason": "prices"}]},
    "F3_INVESTIGATE": {
        "rca_message": "coupons stack in shop-api",
        "defect_type": "pb001",
        "component": "shop-api",
        "convergence_score": 0.9,
        "evidence_refs": ["shop-api:pricing/coupons.py:apply_coupon"],
    },
    "F4_CORRELATE": {"is_duplicate": False, "confidence": 0.1},
    "F5_REVIEW": {"decision": "approve"},
    "F6_REPORT": {"summary": "coupons"},
}
GRID = (
    "recall_hit=0.6..0.9/10",
    "convergence_sufficient=0.5..0.9/10",
    "correlate_dup=0.5..0.95/10",
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.calibrate", description=__doc__)
    parser.add_argument("--cases", type=int, default=60, help="cases for the responders")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long an answer takes")
    parser.add_argument("--batch-size", type=int, default=4, help="signals in one batch")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the stub")
    return parser.parse_args()


def timed(folder: Path, *words: str) -> float:
    began = time.monotonic()
    subprocess.run([*COMMAND, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def stub(folder: Path, rounds: int) -> list[float]:
    words = ("calibrate", "--scenario", SIXTY, "--agent", "stub", "--out", "stub.json")
    return [timed(folder, *words) for _ in range(rounds)]


def replays(folder: Path) -> tuple[int, int, float]:
    """How many points, over how many cases, in what time."""
    told = json.loads((folder / "stub.json").read_text())
    benchmark, scenario = RcaBenchmark(), find_scenario(SIXTY).scenario
    with open_reader(Path(told["scorecard"]["about"]["stores"][0])) as connection:
        run = find_run(connection)
        circuit = load_circuit(run)
        found = read_recordings(benchmark, connection, run.run_id, scenario, circuit)
    tried = parse_grid(GRID, circuit)
    bench = TuningBench(circuit, found, benchmark.closing_steps)
    began = time.monotonic()
    for point in tried:
        bench.try_point(point)
    return len(tried), len(found), time.monotonic() - began


def batched(folder: Path, responders: int, seconds: float, size: int) -> float:
    """A calibration in batches, answered by so many responders at once: how long it was at work."""
    table = {step: {"answer": answer, "delay": seconds} for step, answer in ANSWERS.items()}
    (folder / "agent.json").write_text(json.dumps({"*": table}))
    root = f".asterisk/by-{responders}"
    (folder / root).mkdir(parents=True)
    words = (
        *COMMAND,
        "respond",
        root,
        "--agent",
        "script:agent.json",
        "--parallel",
        str(responders),
    )
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            asked = ("--dispatch", "batch-file", "--batch-size", str(size), "--root", root)
            timed(folder, "calibrate", "--scenario", "some.json", *asked)
        finally:
            process.terminate()
    return at_work(max((folder / FOLDER).glob("*/run.db")))


def at_work(store: Path) -> float:
    """Seconds from the first ask to the last decision of a run."""
    with open_reader(store) as connection:
        query = "select max(j.at) - (select min(at) from dispatches) from journal j"
        (seconds,) = connection.raw.execute(query).fetchone()
    return float(seconds)


def main() -> None:
    wanted = parse()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        rounds = stub(folder, wanted.rounds)
        span = f"{min(rounds):.2f}..{max(rounds):.2f}"
        print(f"stub, 60 cases, the whole command: {median(rounds):.2f} s ({span}); target < 3 s")
        tried, cases, seconds = replays(folder)
        print(f"tune, {tried} replays of {cases} cases: {seconds:.2f} s; target < 10 s")
        known = find_scenario(SIXTY).scenario
        few = msgspec.structs.replace(known, cases=known.cases[: wanted.cases])
        (folder / "some.json").write_bytes(msgspec.json.encode(few))
        four, one = (batched(folder, many, wanted.seconds, wanted.batch_size) for many in (4, 1))
        ratio = f"{one / four:.2f} x"
        print(
            f"batches of {wanted.cases} cases, {wanted.seconds:g} s for an answer: "
            f"one responder {one:.1f} s, four {four:.1f} s, {ratio}; target >= 3.5 x"
        )


if __name__ == "__main__":
    main()
