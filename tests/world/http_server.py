"""A real HTTP server in a thread, for the services that tests pretend to be."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def serve_http(handler: type[BaseHTTPRequestHandler], **fields: Any) -> Iterator[str]:
    """Serve with that handler, whose class gets these fields; yield the server's address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), fields))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
