"""What the memory of test results costs: `python -m bench.remembering [DIR]`.

Writes a year and more of nights of a large project (50,000 tests, a few dozen failures and flips,
tests added and renamed every week), then measures in processes of their own: taking one more
night in, the first question (the index is made) and every later one, and the whole report of a CI
run (`interlock ci`: 200 failures of 40 kinds). Prints one JSON object.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from interlock_history.segment import FailedTest, encode_duration, make_segment
from interlock_history.store import FolderStore
from interlock_rca.ci_run import CiRun

TESTS = 50_000
NIGHTS = 400
DAY = 86_400.0
START = 1_760_000_000.0
_STATUS = {1: "P", 2: "F", 3: "FP"}
_FAILURE = (
    '<failure message="part {0} refused the order" type="shop.OrderError">shop.OrderError: '
    "part {0} refused the order\n\tat shop.Part{0}.place(Part{0}.java:31)</failure>"
)


def name_tests(week: int) -> list[str]:
    """The tests of a week: each week fifty are new and fifty are gone."""
    first = week * 50
    return [
        f"org.example.shop.part{n % 97}.module{n // 40}.Handler{n // 8}Test::shouldHandle{n}"
        for n in range(first, first + TESTS)
    ]


def write_nights(folder: Path, nights: int) -> list[int]:
    """A memory of so many nights; how many bytes each added."""
    chance = random.Random(7)
    store = FolderStore(folder)
    usual: dict[str, float] = {}
    sizes: list[int] = []
    flaky = set(chance.sample(range(TESTS), 60))
    for night in range(nights):
        tests = name_tests(night // 7)
        results: dict[str, tuple[int, int]] = {}
        failures = []
        red = set(chance.sample(range(TESTS), 40))
        for at, test in enumerate(tests):
            seconds = usual.setdefault(test, chance.lognormvariate(-3, 1.5))
            bits = 2 if at in red else 3 if at in flaky and chance.random() < 0.05 else 1
            results[test] = (bits, encode_duration(seconds * chance.uniform(0.9, 1.15)))
            if bits != 1:
                said = f"AssertionError: expected {chance.random()} but was {at} " * 4
                mark = f"{chance.getrandbits(64):016x}"
                failures.append(FailedTest(test, _STATUS[bits], mark, said))
        commit = f"{night:040x}"
        run = CiRun(provider="github", project="shop/web", run=str(night), job="nightly",
                    commit=commit, tree=commit, branch="main", at=START + night * DAY)  # fmt: skip
        store.add(make_segment(run, results, failures))
        sizes.append(measure_size(folder) - sum(sizes))
    return sizes


def measure_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_report(path: Path, night: int) -> None:
    chance = random.Random(night)
    red = set(chance.sample(range(TESTS), 200))
    with path.open("w", encoding="utf-8") as file:
        file.write("<testsuites>")
        open_class = ""
        for at, test in enumerate(name_tests(night // 7)):
            class_name, _, name = test.partition("::")
            if class_name != open_class:
                file.write(f'{"</testsuite>" * bool(open_class)}<testsuite name="{class_name}">\n')
                open_class = class_name
            took = f"{chance.lognormvariate(-3, 1.5):.3f}"
            inside = _FAILURE.format(at % 40) * (at in red)
            file.write(f'<testcase classname="{class_name}" name="{name}" time="{took}">')
            file.write(f"{inside}</testcase>\n")
        file.write("</testsuite>")
        file.write("</testsuites>")


def write_repository(folder: Path, commits: int = 50) -> None:
    """Something for the analyst to search: each commit changes some of the parts."""
    git = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-C", str(folder))
    subprocess.run((*git, "init", "-q"), check=True)
    for number in range(commits):
        for part in range(number % 7, 40, 7):
            (folder / f"Part{part}.java").write_text(f"class Part{part} {{ int v = {number}; }}\n")
        subprocess.run((*git, "add", "--", "*.java"), check=True)
        subprocess.run((*git, "commit", "-qm", f"Change parts, {number}"), check=True)


def run_verb(folder: Path, *words: str) -> dict[str, float]:
    """Seconds and CPU seconds of one command, and its peak memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    command = [sys.executable, "-m", "interlock", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)
    took = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": round(took, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_mb": round(after.ru_maxrss / 1024),
    }


def measure(folder: Path, nights: int = NIGHTS) -> dict[str, object]:
    sizes = write_nights(folder / "memory", nights)
    report = folder / "night.xml"
    write_report(report, nights)
    flags = ("--store", "memory")
    commit = ("--commit", "f" * 40, "--branch", "main", "--project", "shop/web", "--job", "nightly")
    took_in = run_verb(folder, "ingest", "night.xml", "--run", "new", *commit, *flags)
    first = run_verb(folder, "history", "top", *flags)
    tops = sorted(
        (run_verb(folder, "history", "top", *flags) for _ in range(5)), key=lambda x: x["seconds"]
    )
    one = run_verb(folder, "history", "test", name_tests(nights // 7)[777], *flags)
    write_repository(folder)
    report_it = ("ci", "night.xml", "--run", "newer", "--db", "journal.db", "--out", "report")
    ci = run_verb(folder, *report_it, *commit, *flags)
    late = sorted(sizes[7:])
    return {
        "results": TESTS * nights,
        "memory_mb_of_365_nights": round(sum(sizes[:365]) / 1e6, 1),
        "growth_mb_a_night_median": round(late[len(late) // 2] / 1e6, 3) if late else None,
        "growth_mb_a_night_most": round(late[-1] / 1e6, 3) if late else None,
        "index_mb": round(measure_size(folder / "memory" / "index") / 1e6, 1),
        "ingest": {**took_in, "results_per_cpu_second": round(TESTS / took_in["cpu_seconds"])},
        "top_first": first,
        "top": tops[2],
        "test": one,
        "ci": ci,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        print(json.dumps(measure(Path(place)), indent=2))
