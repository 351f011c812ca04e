"""What a long history costs: 100,000 commits read for the first time, and once more.

Makes a repository with `git fast-import`; each reading is a process of its own. Beside it stands
`git log` itself, with the same question, which is the least that a first reading can cost.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.roster import PROGRAMS_DIR

FIRST, AGAIN = "history-first", "history-again"
COMMITS = 100_000
FILES = 2_000
TIMEOUT_S = 600.0
_ASK = ("log", "-z", "--name-status", "-M", "--format=%H%x00%P%x00%ct%x00%an%x00%s")


def make(folder: Path, commits: int = COMMITS) -> None:
    """A repository whose commits change one to four of 2,000 files, sometimes moving one."""
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True, timeout=TIMEOUT_S)
    command = ["git", "-C", str(folder), "fast-import", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as importing:
        if importing.stdin is None:
            raise subprocess.SubprocessError("git fast-import takes no input")
        for part in _stream(commits):
            importing.stdin.write(part)
        importing.stdin.close()
        if importing.wait(TIMEOUT_S):
            raise subprocess.SubprocessError("git fast-import failed")


def one_round(
    repository: Path, number: int, commits: int = COMMITS
) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Program, measure and values: git itself, then the first reading, then the second."""
    cache = repository.with_name(f"cache-{number}")
    yield "git", FIRST, plain(repository)
    yield "interlock", FIRST, read(repository, cache, commits)
    yield "interlock", AGAIN, read(repository, cache, commits)


def plain(folder: Path) -> dict[str, float]:
    """Seconds that git takes to tell the same."""
    started = time.monotonic()
    command = ["git", "-C", str(folder), *_ASK, "HEAD"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
    return {"read_s": time.monotonic() - started}


def read(folder: Path, cache: Path, commits: int = COMMITS) -> dict[str, float]:
    """Seconds and megabytes to have all commits as records; imports not counted."""
    since = ["git", "-C", str(folder), "rev-list", "--max-parents=0", "HEAD"]
    first = subprocess.run(since, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S)
    words = (str(folder), str(cache), first.stdout.decode().strip())
    command = [sys.executable, str(PROGRAMS_DIR / "on_history.py"), *words]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S)
    found: dict[str, float] = json.loads(ran.stdout)
    if found.pop("commits") != commits - 1:
        raise ValueError(f"not all commits after the first of {commits:,} were read")
    return found


def _stream(commits: int) -> Iterator[bytes]:
    random = Random(1)
    names = {number: f"src/part{number % 50}/file{number}.py" for number in range(FILES)}
    yield b"".join(_commit(1, [_change(name, 0) for name in names.values()]))
    for count in range(2, commits + 1):
        chosen = random.sample(range(FILES), random.randint(1, 4))
        changes = [_change(names[number], count) for number in chosen]
        if count % 50 == 0:
            number = random.randrange(FILES)
            moved = f"src/part{random.randrange(50)}/file{number}_{count}.py"
            changes.append(f"R {names[number]} {moved}\n".encode())
            names[number] = moved
        yield b"".join(_commit(count, changes))


def _commit(count: int, changes: list[bytes]) -> Iterator[bytes]:
    subject = f"Change number {count}".encode()
    yield b"commit refs/heads/master\n"
    yield b"committer Ada Fixed <ada@example.org> %d +0000\n" % (1_500_000_000 + 60 * count)
    yield b"data %d\n%s\n" % (len(subject), subject)
    yield from changes


def _change(name: str, count: int) -> bytes:
    lines = [f"value_{line} = {line if line % 7 else count}" for line in range(20)]
    text = "\n".join(lines).encode()
    return b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(text), text)
