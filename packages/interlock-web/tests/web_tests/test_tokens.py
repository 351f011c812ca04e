"""Tokens with scopes at the door of a real server: what each opens, and that revoking closes it."""

import re
import time
from pathlib import Path

import httpx
import pytest

from tests.world.command_line import World, until
from tests.world.serving import TOKEN, served

MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def make_token(world: World, name: str, scopes: str, *words: str) -> dict[str, str]:
    made = world.say("token", "create", name, "--scope", scopes, *words)
    assert made.code == 0, made
    return {"Authorization": f"Bearer {made.out.strip()}"}


def test_a_token_opens_what_its_scopes_say_until_it_is_revoked(tmp_path: Path) -> None:
    world = World(tmp_path)
    reader, worker = make_token(world, "eve", "read"), make_token(world, "ada", "work,read")
    with served(world, "--host", "0.0.0.0") as server:  # no token of its own: the database has some
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers=reader).status_code == 200
        refused = httpx.post(f"{url}/mcp", json=MESSAGE, headers={**ACCEPT, **reader})
        sentence = "this needs a token with the scope work; eve has read"
        assert (refused.status_code, refused.json()) == (403, {"error": sentence})
        assert (
            httpx.post(f"{url}/mcp", json=MESSAGE, headers={**ACCEPT, **worker}).status_code == 400
        )
        assert world.say("token", "revoke", "eve").code == 0
        late = httpx.get(url, headers=reader)
        assert (late.status_code, "was revoked" in late.json()["error"]) == (401, True)
        assert httpx.get(url, headers=worker).status_code == 200


def test_a_browser_signs_in_with_a_token_that_was_made(tmp_path: Path) -> None:
    world = World(tmp_path)
    secret = make_token(world, "ada", "read,answer")["Authorization"].partition(" ")[2]
    with served(world, "--host", "0.0.0.0", env={"INTERLOCK_TOKEN": TOKEN}) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(base_url=url) as browser:
            assert browser.post("/login", data={"token": f"{secret}0"}).status_code == 401
            assert browser.post("/login", data={"token": secret}).status_code == 303
            assert browser.get("/").status_code == 200
        assert httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_near_a_wrong_token_is_refused_and_a_stale_cookie_is_not(tmp_path: Path) -> None:
    with served(World(tmp_path)) as server:
        assert httpx.get(server.url, headers={"Authorization": "Bearer x"}).status_code == 401
        assert httpx.get(server.url, headers={"Cookie": "interlock-token=x"}).status_code == 200


@pytest.mark.parametrize("words", [(), ("--expires", "1s")])
def test_without_a_good_token_it_does_not_open_beyond_this_machine(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    world = World(tmp_path)
    if words:
        made = make_token(world, "eve", "read", "--expires", "10ms")
        assert re.fullmatch(r"Bearer \S+", made["Authorization"])
        expired = time.time() + 0.01
        until(lambda: time.time() > expired, "the token expires")
    output = world.say("serve", "--host", "0.0.0.0", "--port", "0")
    assert (output.code, "'interlock token create NAME'" in output.err) == (2, True)
