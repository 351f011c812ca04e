"""The webhook's door: only genuine, new deliveries about a bound issue wake the desk."""

import hashlib
import hmac
import json

import httpx
import pytest
from tests.world.github import REPO

from interlock.epic.approval.webhook import LARGEST, PATH, GithubHook
from interlock.system.errors import SourceError

SECRET = "a secret of the tests"
BODY = {"action": "created", "repository": {"full_name": REPO}, "issue": {"number": 7}}


class Door:
    """The app, a client before it, and what it woke."""

    def __init__(self) -> None:
        self.woken: list[int] = []
        bound = {(REPO, 7)}
        hook = GithubHook(SECRET, lambda repo, number: (repo, number) in bound, self.woken.append)
        transport = httpx.ASGITransport(hook.app())
        self.client = httpx.AsyncClient(transport=transport, base_url="http://door")

    async def knock(
        self,
        body: object = BODY,
        *,
        secret: str = SECRET,
        event: str = "issue_comment",
        delivery: str = "d-1",
        **headers: str,
    ) -> int:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        right = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
        output = {
            "X-Hub-Signature-256": f"sha256={right}",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": delivery,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        answer = await self.client.post(PATH, content=raw, headers=output)
        return answer.status_code


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.mark.parametrize("event", ["issue_comment", "issues", "label"])
async def test_a_genuine_delivery_wakes(door: Door, event: str) -> None:
    assert await door.knock(event=event) == 202
    assert door.woken == [7]


async def test_a_forged_one_does_not(door: Door) -> None:
    assert await door.knock(secret="another secret altogether") == 401
    assert await door.knock(X_Hub_Signature_256="") == 401
    assert await door.knock(X_Hub_Signature_256="sha256=") == 401
    assert await door.knock(X_Hub_Signature_256="sha1=0000") == 401
    assert door.woken == []


async def test_a_changed_body_does_not(door: Door) -> None:
    right = hmac.new(SECRET.encode(), json.dumps(BODY).encode(), hashlib.sha256).hexdigest()
    changed = {**BODY, "action": "edited"}
    assert await door.knock(changed, X_Hub_Signature_256=f"sha256={right}") == 401
    assert door.woken == []


async def test_a_replayed_one_counts_once(door: Door) -> None:
    assert [await door.knock() for _ in range(3)] == [202, 409, 409]
    assert await door.knock(delivery="d-2") == 202
    assert door.woken == [7, 7]


async def test_a_forged_one_does_not_use_up_the_id_of_a_genuine_one(door: Door) -> None:
    assert await door.knock(secret="another secret altogether") == 401
    assert await door.knock() == 202


@pytest.mark.parametrize(
    "body",
    [
        {**BODY, "issue": {"number": 8}},
        {**BODY, "repository": {"full_name": "harbour/other"}},
        {"repository": {"full_name": REPO}, "label": {"name": "approved"}},
    ],
)
async def test_other_issues_wake_nobody(door: Door, body: object) -> None:
    assert await door.knock(body) == 202
    assert door.woken == []


@pytest.mark.parametrize("event", ["push", "ping", "pull_request_review", ""])
async def test_other_events_wake_nobody(door: Door, event: str) -> None:
    assert await door.knock(event=event) == 202
    assert door.woken == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"issue": 7}', b"null"]
)
async def test_a_body_that_is_none(door: Door, body: bytes) -> None:
    assert await door.knock(body) == 400
    assert door.woken == []


async def test_a_body_that_is_too_large(door: Door) -> None:
    assert await door.knock(b"x" * (LARGEST + 1)) == 413
    assert await door.knock(delivery="") == 400
    assert await door.knock(delivery="d" * 129) == 400


async def test_only_post_and_only_its_path(door: Door) -> None:
    assert (await door.client.get(PATH)).status_code == 405
    assert (await door.client.post("/")).status_code == 404


async def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(SourceError, match="at least 16 characters"):
        GithubHook("short", lambda *_: True, lambda _: None)
