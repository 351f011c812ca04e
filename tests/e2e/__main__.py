"""`make e2e`: installs the pinned agent CLIs below build/, then tries them where nothing can leave.

Needs npm, a package registry for the first time, and a network namespace of its own. Where one is
missing it says so in one line and ends well: these tests are a luxury, not a gate.
"""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / "build" / "agents"
PINNED = ("package.json", "package-lock.json")
NATIVE = Path("node_modules/@anthropic-ai/claude-code/install.cjs")
CLIS = ("claude", "codex")
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


class CannotRunError(Exception):
    """These tests cannot be run on this machine."""


def main(words: list[str]) -> int:
    if words[:1] == ["--inside"]:
        return _inside(words[1:])
    try:
        apart = _apart()
        install()
    except CannotRunError as reason:
        sys.stdout.write(f"e2e skipped: {reason}\n")
        return 0
    return subprocess.call([*apart, sys.executable, "-m", "tests.e2e", "--inside", *words])


def install() -> None:
    """The CLIs, exactly as pinned. Nothing is done where they are there already."""
    if all((INSTALLED / name).is_file() and _same(name) for name in PINNED) and not _silent():
        return
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise CannotRunError("npm is not installed; it brings Claude Code and Codex.")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in PINNED:
        shutil.copy(HERE / name, INSTALLED / name)
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    _do([npm, "ci", *quiet], "the packages did not come from the registry")
    _do([node, str(NATIVE)], "Claude Code did not set itself up")
    if _silent():
        raise CannotRunError(f"{_silent()[0]} was installed but does not start on this machine.")


def _same(name: str) -> bool:
    return (INSTALLED / name).read_bytes() == (HERE / name).read_bytes()


def _silent() -> list[str]:
    """The CLIs that do not answer to --version."""
    bin_ = INSTALLED / "node_modules" / ".bin"
    return [name for name in CLIS if not _answers([str(bin_ / name), "--version"])]


def _answers(argv: list[str]) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _do(argv: list[str], trouble: str) -> None:
    done = subprocess.run(argv, cwd=INSTALLED, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        (INSTALLED / PINNED[0]).unlink(missing_ok=True)
        raise CannotRunError(f"{trouble}: {last}")


def _apart() -> list[str]:
    """The command that gives a process a network of its own."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise CannotRunError("unshare (util-linux) is not installed; it keeps the agents offline.")
    ways = ([unshare, "-n"], [unshare, "-rn"])
    for way in ways:
        if _answers([*way, "true"]):
            return way
    raise CannotRunError(
        "this user may not make a network namespace; be root or allow user namespaces."
    )


def _inside(words: list[str]) -> int:
    _loopback_up()
    where = [] if any((Path(word.split("::")[0])).exists() for word in words) else [str(HERE)]
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *where, *words])


def _loopback_up() -> None:
    """As `ip link set lo up`, on machines without `ip`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(asker, _GET_FLAGS, asked))[1]
        fcntl.ioctl(asker, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
