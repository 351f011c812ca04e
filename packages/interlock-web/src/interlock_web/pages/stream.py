"""The address of the live stream."""

from typing import Any

from litestar import Request, get
from litestar.response import Stream

from interlock_web.app import Window


@get("/live", sync_to_thread=False)
def send_changes(request: Request[Any, Any, Any], window: Window) -> Stream:
    """Server-sent events, as long as the browser stays and the server lives."""
    seen = request.headers.get("last-event-id") or request.query_params.get("from")
    stream = window.feed.stream(seen or "")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(stream, media_type="text/event-stream", headers=headers)
