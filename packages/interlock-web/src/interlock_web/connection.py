"""One HTTP connection: bounds on slow headers and silent bodies."""

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_TIMEOUT: Final = 10.0
"""Seconds from the first byte of a request, or from the connection, to the end of its headers."""
BODY_TIMEOUT: Final = 15.0
"""Seconds of silence in the middle of a body after which the rest of it is not waited for."""
_TIMED_OUT: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class Connection(H11Protocol):
    """uvicorn's connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel_timer()

    def _watch_request(self) -> None:
        """Data came, and still no request: its headers are not complete, or its body is not."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._cancel_timer()
            self._timer = self.loop.call_later(BODY_TIMEOUT, self._time_out)
        elif state is not h11.IDLE:
            self._cancel_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_TIMEOUT, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if self.transport.is_closing() or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            return
        if self.flow.read_paused:  # it is the application that does not read
            self._watch_request()
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_TIMED_OUT)
        self.transport.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
