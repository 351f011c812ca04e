"""Questions to GitHub: what is told apart, what is asked again, and that the token stays ours."""

from collections.abc import Iterator

import pytest

from interlock.system.errors import SourceError
from interlock.system.github import (
    GithubAddress,
    GithubAuthError,
    GithubBusyError,
    GithubError,
    GithubRest,
)
from tests.world.github import REPO, TOKEN, Github, a_github

PATH = f"/repos/{REPO}/issues"


@pytest.fixture
def github() -> Iterator[Github]:
    with a_github() as running:
        yield running


@pytest.fixture
def rest(github: Github) -> Iterator[GithubRest]:
    made = GithubRest(github.address, timeout_s=5)
    yield made
    made.close()


def test_what_has_not_changed_is_not_sent_again(github: Github, rest: GithubRest) -> None:
    first = rest.get(PATH, "issues")
    again = rest.get(PATH, "issues", etag=first.etag)
    assert (first.data, again.fresh) == ([], False)
    github.opened("one", "")
    assert rest.get(PATH, "issues", etag=first.etag).fresh
    assert [status for *_, status in github.log] == [200, 304, 200]


def test_an_environment_that_leads_nowhere_is_named(
    github: Github, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "foo:bar:baz")
    with pytest.raises(SourceError, match=r"check GITHUB_API_URL, HTTP_PROXY, HTTPS_PROXY"):
        GithubRest(github.address)


def test_pages_are_followed_to_the_end(github: Github, rest: GithubRest) -> None:
    for number in range(205):
        github.opened(f"issue {number}", "")
    first = rest.get(PATH, "issues", {"per_page": 100})
    assert [len(page.data) for page in rest.pages(first, "issues")] == [100, 100, 5]


@pytest.mark.parametrize(
    ("kind", "headers", "wait"),
    [
        ("403", {"retry_after": "30"}, 30),
        ("429", {"retry_after": "7"}, 7),
        ("429", {}, None),
        ("429", {"retry_after": "99999999999"}, None),
        ("403 API rate limit exceeded", {}, None),
        ("403 You have triggered an abuse detection mechanism", {}, None),
        ("503", {"retry_after": "nonsense"}, None),
        ("500", {}, None),
        ("408", {}, None),
    ],
)
def test_come_later(
    github: Github, rest: GithubRest, kind: str, headers: dict[str, str], wait: float | None
) -> None:
    github.fault(kind, "", 1, **headers)
    with pytest.raises(GithubBusyError) as caught:
        rest.get(PATH, "issues")
    assert caught.value.wait_s == wait


def test_the_end_of_a_limit_is_told_by_githubs_own_clock(github: Github, rest: GithubRest) -> None:
    github.fault("403", x_ratelimit_remaining="0", x_ratelimit_reset=str(github.now + 100))
    github.fault("403", x_ratelimit_remaining="0", x_ratelimit_reset=str(github.now - 100))
    github.fault("403", x_ratelimit_remaining="0", x_ratelimit_reset="9" * 11)
    waits = []
    for _ in range(3):
        with pytest.raises(GithubBusyError) as caught:
            rest.get(PATH, "issues")
        waits.append(caught.value.wait_s)
    assert waits == [101, 1, 24 * 3600]


@pytest.mark.parametrize("kind", ["401", "403 Resource not accessible by integration"])
def test_no_right(github: Github, rest: GithubRest, kind: str) -> None:
    github.fault(kind, x_ratelimit_remaining="4999")
    with pytest.raises(GithubAuthError, match=r"^GITHUB_AUTH_FAILED: ") as caught:
        rest.get(PATH, "issues")
    assert TOKEN not in str(caught.value)
    assert caught.value.code == "GITHUB_AUTH_FAILED"


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("404", "no issues in harbour/boats, or the token may not see it"),
        ("410", "no issues in harbour/boats"),
        ("422", r"refuses issues \(422\): Refused, \*\*\*\."),
        ("301", "has moved"),
    ],
)
def test_no(github: Github, rest: GithubRest, kind: str, result: str) -> None:
    github.fault(kind)
    with pytest.raises(GithubError, match=result) as caught:
        rest.get(PATH, "issues")
    assert not isinstance(caught.value, GithubAuthError | GithubBusyError)
    assert TOKEN not in str(caught.value)


def test_silence_half_an_answer_and_a_web_page_may_be_better_next_time(github: Github) -> None:
    github.fault("slow")
    github.fault("half")
    github.fault("page")
    rest = GithubRest(github.address, timeout_s=0.2)
    for result in ("did not answer", "was cut off", "A web page came back"):
        with pytest.raises(GithubBusyError, match=result):
            rest.get(PATH, "issues")
    rest.close()


def test_nobody_there() -> None:
    rest = GithubRest(GithubAddress("http://127.0.0.1:9", REPO, TOKEN), timeout_s=5)
    with pytest.raises(GithubBusyError, match="GitHub cannot be reached"):
        rest.get(PATH, "issues")
    rest.close()


def test_the_token_is_not_sent_to_another_place(github: Github, rest: GithubRest) -> None:
    github.fault("200", link='<http://127.0.0.1:9/x>; rel="next"')
    with pytest.raises(GithubError, match="next page is on another host"):
        rest.get(PATH, "issues")
