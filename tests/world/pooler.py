"""A pooler that nobody sees but by the numbers of its backends: it passes everything on and, like
PgBouncer, greets with a backend number of its own.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_KEY = b"K"


@contextmanager
def run_pooler(server: Path) -> Iterator[int]:
    """The port of a pooler before the server that listens at that socket."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                backend = socket.socket(socket.AF_UNIX)
                backend.connect(str(server))
                for pair in ((client, backend, False), (backend, client, True)):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.close()


def _pass_on(source: socket.socket, target: socket.socket, greeting: bool) -> None:
    """Everything, message by message as long as the greeting lasts."""
    with suppress(OSError), source, target:
        while greeting:
            head = _read(source, 5)
            kind, (length,) = head[:1], struct.unpack("!i", head[1:])
            body = _read(source, length - 4)
            if kind == _KEY:
                body = struct.pack("!i", 1) + body[4:]
            target.sendall(head + body)
            greeting = kind != b"Z"
        while data := source.recv(65536):
            target.sendall(data)


def _read(source: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            raise ConnectionError
        parts += part
    return parts
