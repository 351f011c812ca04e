"""The address of the live stream."""

from typing import Any

from litestar import Request, get
from litestar.response import Stream

from interlock_web.window import Window


@get("/live", sync_to_thread=False)
def send_changes(request: Request[Any, Any, Any], window: Window) -> Stream:
    """Stream server-sent events until the browser leaves or the server closes."""
    seen = request.headers.get("last-event-id") or request.query_params.get("from")
    stream = window.feed.stream(seen or "")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Stream(stream, media_type="text/event-stream", headers=headers)
