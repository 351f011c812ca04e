"""What is let in over HTTP: hosts, origins, tokens, bodies; forged ones come from real sockets."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.world.command_line import World
from tests.world.serving import TOKEN, Served, served

MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(World(tmp_path_factory.mktemp("near"))) as server:
        yield server


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("far")
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "token").chmod(0o600)
    words = ("--host", "0.0.0.0", "--token-file", "token", "--allow-host", "Build.Example")
    with served(World(folder), *words, "--allow-origin", "https://desk.example") as server:
        yield server


def post(server: Served, **headers: str) -> int:
    """Without a session this is refused by the SDK with 400: whoever sees that is inside."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(server.mcp, json=MESSAGE, headers={**ACCEPT, **given}).status_code


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 400),
        ("localhost:8787", 400),
        ("127.0.0.1:9", 400),
        ("[::1]:8787", 400),
        ("127.0.0.2", 400),
        ("evil.example", 421),
        ("evil.example:8787", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("evil.example@127.0.0.1", 421),
        ("10.0.0.1", 421),
        ("localhost:port", 421),
        ("[::1", 421),
        ("0x7f.1", 421),
    ],
)
def test_hosts(near: Served, host: str, status: int) -> None:
    assert post(near, Host=host) == status


def test_a_host_with_a_path_is_refused(near: Served) -> None:
    found = httpx.get(near.url, headers={"Host": "127.0.0.1/evil"})
    assert (found.status_code, "host" in found.json()["error"].lower()) == (400, True)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("SELF", 400),
        ("https://evil.example", 403),
        ("http://localhost:1", 403),
        ("http://127.0.0.1:1", 403),
        ("null", 403),
        ("SELF.evil.example", 403),
        ("file://", 403),
    ],
)
def test_origins(near: Served, origin: str, status: int) -> None:
    assert post(near, Origin=origin.replace("SELF", near.url)) == status


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (f"Bearer {TOKEN}", 400),
        ("", 401),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        (f"bearer {TOKEN}\u00e9", 401),
    ],
)
def test_tokens(far: Served, token: str, status: int) -> None:
    given = {**ACCEPT, "Authorization": token}
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
    found = httpx.post(far.mcp, json=MESSAGE, headers=encoded)
    assert found.status_code == status
    assert (found.headers.get("www-authenticate") == "Bearer") == (status == 401)


def test_a_token_may_not_come_twice(far: Served) -> None:
    lines = [f"Authorization: Bearer {TOKEN}"] * 2
    assert raw(far, b"", *lines).startswith(b"HTTP/1.1 401")


def test_names_that_are_allowed(far: Served) -> None:
    key = {"Authorization": f"Bearer {TOKEN}"}
    assert post(far, Host="build.example", **key) == 400
    assert post(far, Host="10.0.0.1:8787", **key) == 400
    assert post(far, Host="other.example", **key) == 421
    assert post(far, Host="build.example", Origin="https://desk.example", **key) == 400
    assert post(far, Host="build.example", Origin="https://build.example", **key) == 400
    assert post(far, Host="build.example", Origin="https://other.example", **key) == 403


def test_health_needs_no_token(far: Served) -> None:
    assert httpx.get(far.url.replace("0.0.0.0", "127.0.0.1") + "/healthz").status_code == 200
    assert post(far) == 401


def test_fifty_megabytes(near: Served) -> None:
    size = 50_000_000
    output = raw(near, b"", f"Content-Length: {size}", "Content-Type: application/json")
    assert output.startswith(b"HTTP/1.1 413")
    assert post(near) == 400


def test_fifty_megabytes_in_pieces(near: Served) -> None:
    piece = b"x" * 1_000_000
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    output = raw(near, chunk * 50, "Transfer-Encoding: chunked", "Content-Type: application/json")
    assert output.startswith(b"HTTP/1.1 413")
    assert post(near) == 400


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"null", b'{"id":1}']
)
def test_bodies_that_are_no_messages(near: Served, body: bytes) -> None:
    headers = {**ACCEPT, "Content-Type": "application/json"}
    for revision in ({}, {"MCP-Protocol-Version": "2026-07-28"}, {"MCP-Protocol-Version": "x"}):
        found = httpx.post(near.mcp, content=body, headers={**headers, **revision})
        assert found.status_code in (400, 422)
    assert post(near) == 400


def raw(server: Served, body: bytes, *lines: str) -> bytes:
    """A request by hand; what was answered, also if not all of the body was taken."""
    parts = urlsplit(server.url)
    assert parts.port is not None
    head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{parts.port}", *lines, "", ""])
    with socket.create_connection(("127.0.0.1", parts.port), timeout=30) as line:
        line.sendall(head.encode())
        with suppress(OSError):
            line.sendall(body)
        received = b""
        with suppress(ConnectionResetError):
            while piece := line.recv(65536):
                received += piece
        return received
