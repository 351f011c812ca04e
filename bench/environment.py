"""Where the benchmark runs: the peers' virtual environment, and the facts of this machine.

Knows how to make `.bench-venv` from the lock with hashes, and what to say of the hardware.
Knows nothing of what is measured.
"""

import hashlib
import os
import platform
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEERS_VENV = ROOT / ".bench-venv"
LOCK = ROOT / "requirements" / "bench.lock"


class SetupError(Exception):
    """The peers' environment could not be made."""


def peers_python() -> str:
    """The python of `.bench-venv`, made anew when the lock has changed."""
    python = PEERS_VENV / "bin" / "python"
    stamp = PEERS_VENV / ".lock-sha256"
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest and python.exists():
        return str(python)
    base = os.environ.get("PYTHON") or sys.executable
    _run([base, "-m", "venv", "--clear", str(PEERS_VENV)])
    quiet = ["--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps"]
    _run([str(python), "-m", "pip", "install", *quiet, "-r", str(LOCK)])
    stamp.write_text(digest)
    return str(python)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = done.stderr[-2000:]
        raise SetupError(f"The peers could not be installed: {' '.join(command)}\n{tail}")


def machine(workdir: Path) -> dict[str, str]:
    kernel = ".".join(platform.release().split(".")[:2])
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{_memory_gb():.0f} GB",
        "system": f"{platform.system()} {kernel}, file system {file_system(workdir)}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def file_system(path: Path) -> str:
    """The type of the mount that holds this path; on tmpfs an fsync costs nothing."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    here, best, kind = str(path.resolve()), "", "unknown"
    for line in mounts.read_text().splitlines():
        _, mount, mount_kind, *_ = line.split()
        inside = here == mount or here.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, mount_kind
    return kind
