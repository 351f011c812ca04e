"""How laws are tried: the same examples each time, without a clock. How async tests run: alone.

`pytest --hypothesis-profile=search` looks at many more examples, and at new ones each time. What is
marked `soak` says again, at length, what other tests say; `make soak` has it, `make test` has not.
"""

import asyncio
import compileall
import inspect
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.world.places import PYTHONPATH
from tests.world.postgres_server import make_database

if TYPE_CHECKING:
    from interlock.journal.address import DatabaseAddress, PostgresAddress
    from tests.world.command_line import World

# `python3` in a plan or a script is this interpreter, not a version manager's slow shell script.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# Programs of the tests are found by processes that tests start, too.
os.environ["PYTHONPATH"] = PYTHONPATH

# Tests start more than a thousand processes of Interlock: it is compiled here, once. What a test
# writes is not kept compiled: a module written anew in the same second could be run as it was.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = False  # of this process: pytest keeps the tests that it has rewritten
if "PYTEST_XDIST_WORKER" not in os.environ:
    for folder in ("packages", "tests/world"):
        compileall.compile_dir(Path(__file__).parent / folder, quiet=2)

# A shell starts what runs in the background with SIGINT ignored, and processes started from here
# would inherit that: tests that interrupt a command would wait for it in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST_TEST = 600.0
"""Seconds after which an async test has failed: it waits for something that will not come."""

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "search", settings.get_profile("steady"), derandomize=False, max_examples=3_000
)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="also the long tests marked soak")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long repetitions are left out, unless they are asked for."""
    if config.getoption("--soak"):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> "Iterator[DatabaseAddress]":
    """An address for a journal: a test that asks for it holds on both databases."""
    if request.param == "sqlite":
        yield tmp_path / "interlock.db"
        return
    yield request.getfixturevalue("postgres")


@pytest.fixture
def postgres(tmp_path: Path) -> "Iterator[PostgresAddress]":
    """A new journal on a real server, which is started when the first test asks for it."""
    with make_database(tmp_path / ".interlock") as address:
        yield address


@pytest.fixture
def on_both_databases(db: "DatabaseAddress", monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that name no database use a file in one try, and a server in another."""
    if not isinstance(db, Path):
        monkeypatch.setenv("INTERLOCK_DB", db.url)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "World":
    """A folder of its own and the commands in it; nothing of this shell's settings reaches it."""
    from tests.world.command_line import World

    for name in ("INTERLOCK_DB", "INTERLOCK_PARALLEL"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An async test is run in an event loop of its own, and fails where it would wait for ever."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    longest = None if pyfuncitem.get_closest_marker("soak") else LONGEST_TEST
    asyncio.run(asyncio.wait_for(test, longest))
    return True
