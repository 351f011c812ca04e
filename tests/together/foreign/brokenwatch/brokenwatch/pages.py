"""Sections that load, and that no server can take."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import get

from interlock_web.extend import NavLink, Section


@get("/runs", sync_to_thread=False)
def show_runs() -> str:
    return "a path that is taken"


@get("/untyped", sync_to_thread=False)
def show_untyped(window, nobody_gives_this):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    return "no types"


@get("/fine", sync_to_thread=False)
def show_fine() -> str:
    return "fine"


@asynccontextmanager
async def fail(_project: object) -> AsyncIterator[None]:
    raise RuntimeError("the tide gauge does not answer")
    yield


TAKEN = Section("", (NavLink("/runs", "Mine"),), (show_runs,))
UNTYPED = Section("", (), (show_untyped,))
LINKS = Section("", ("/fine",), (show_fine,))  # type: ignore[arg-type]
FAILING = Section("Fine", (NavLink("/fine", "Fine"),), (show_fine,), background=fail)
