"""Questions asked again, and refusals that say what to do.

Where ReportPortal is and what opens it.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock_rca.sources.reportportal.client import (
    DELAYS_S,
    LaunchReference,
    PortalAddress,
    PortalClient,
    PortalError,
    find_address,
    parse_launch_word,
)
from rca_tests.worlds.reportportal import LAUNCH_ID, PROJECT, TOKEN, Portal, a_portal

PATH = f"/api/v1/{PROJECT}/launch/{LAUNCH_ID}"


@pytest.fixture
def portal() -> Iterator[Portal]:
    with a_portal() as running:
        yield running


class Asked:
    """A client whose waiting is only written down."""

    def __init__(self, portal: Portal, timeout_s: float = 10.0, tick: int = 0) -> None:
        self.waits: list[float] = []
        times = count(0, tick)
        self._rest = PortalClient(
            portal.address,
            timeout_s=timeout_s,
            sleep=self.waits.append,
            clock=lambda: float(next(times)),
        )

    def __call__(self, path: str = PATH) -> object:
        try:
            return self._rest.request("GET", path, "launch 7001")
        finally:
            self._rest.close()


@pytest.mark.parametrize("kind", ["500", "502", "503", "504", "408", "429", "half", "broken"])
def test_what_passes_by_itself_is_asked_again(portal: Portal, kind: str) -> None:
    portal.fault(kind, times=3)
    asked = Asked(portal)
    assert asked() == portal.launch
    assert asked.waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("kind", "result"),
    [("500", "it answered 500"), ("half", "cut off"), ("broken", "it broke the connection")],
)
def test_in_the_end_it_is_given_up_with_a_sentence(portal: Portal, kind: str, result: str) -> None:
    portal.fault(kind, times=99)
    asked = Asked(portal)
    with pytest.raises(PortalError, match=f"{result}.*5 tries were made"):
        asked()
    assert asked.waits == list(DELAYS_S)
    assert len(portal.requests) == 5


def test_a_silent_server_is_late(portal: Portal) -> None:
    portal.fault("slow", times=99)
    asked = Asked(portal, timeout_s=0.05)
    with pytest.raises(PortalError, match=r"did not answer within 0\.05 s"):
        asked()
    assert asked.waits == list(DELAYS_S)


def test_a_server_that_only_drips_is_late_too(portal: Portal) -> None:
    asked = Asked(portal, tick=50)
    with pytest.raises(PortalError, match="did not finish its answer within 40 s"):
        asked()


def test_the_server_says_how_long_to_wait(portal: Portal) -> None:
    portal.fault("429", Retry_After="7")
    portal.fault("503", Retry_After="Thu, 09 Oct 2125 08:53:20 GMT")
    asked = Asked(portal)
    with pytest.raises(PortalError, match=r"it asks to wait \d+ s: try again then") as error:
        asked()
    assert asked.waits == [7.0]
    assert error.value.status == 503


def test_nonsense_about_waiting_is_ignored(portal: Portal) -> None:
    portal.fault("429", Retry_After="soon")
    asked = Asked(portal)
    assert asked() == portal.launch
    assert asked.waits == [1.0]


@pytest.mark.parametrize(
    ("status", "result"),
    [
        ("401", "ASTERISK_RP_TOKEN"),
        ("403", "ask for access to the project"),
        ("404", "has no launch 7001 in project harbour"),
        ("302", "set ASTERISK_RP_URL"),
        ("406", "refuses launch 7001"),
        ("page", "is ASTERISK_RP_URL the address of ReportPortal"),
    ],
)
def test_a_refusal_is_not_repeated_and_says_what_to_do(
    portal: Portal, status: str, result: str
) -> None:
    portal.fault(status, times=99, Location="https://elsewhere.example.org/")
    with pytest.raises(PortalError, match=result) as error:
        Asked(portal)()
    assert len(portal.requests) == 1
    assert TOKEN not in str(error.value)


def test_a_wrong_token_is_a_refusal(portal: Portal) -> None:
    rest = PortalClient(PortalAddress(portal.url, PROJECT, "another"), sleep=lambda _: None)
    with pytest.raises(PortalError, match="does not accept the token") as error:
        rest.request("GET", PATH, "launch 7001")
    rest.close()
    assert error.value.status == 401
    assert "another" not in str(error.value)


def test_nobody_there(portal: Portal) -> None:
    waits: list[float] = []
    rest = PortalClient(PortalAddress("http://127.0.0.1:1", PROJECT, TOKEN), sleep=waits.append)
    with pytest.raises(PortalError, match="it cannot be reached"):
        rest.request("GET", PATH, "launch 7001")
    rest.close()
    assert waits == list(DELAYS_S)


def test_a_server_whose_tls_is_refused_is_not_asked_again(portal: Portal) -> None:
    waits: list[float] = []
    plain = PortalAddress(portal.url.replace("http:", "https:"), PROJECT, TOKEN)
    rest = PortalClient(plain, sleep=waits.append)
    with pytest.raises(PortalError, match=r"does not speak TLS.*SSL_CERT_FILE"):
        rest.request("GET", PATH, "launch 7001")
    rest.close()
    assert waits == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "foo:bar:baz"),
        ("ALL_PROXY", "ftp://h:1"),
        ("SSL_CERT_FILE", "/nowhere/at/all.pem"),
    ],
)
def test_an_environment_that_leads_nowhere_is_named(
    portal: Portal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SourceError, match=name):
        PortalClient(portal.address)


def test_changes_that_are_not_taken_are_told_as_such(portal: Portal) -> None:
    portal.fault("500", times=99)
    rest = PortalClient(portal.address, sleep=lambda _: None)
    with pytest.raises(PortalError, match="does not accept the changes: it answered 500"):
        rest.request("PUT", f"/api/v1/{PROJECT}/item", "the changes", body={"issues": []})
    rest.close()


FULL = {
    "ASTERISK_RP_URL": "https://rp.example.org/",
    "ASTERISK_RP_PROJECT": "harbour",
    "ASTERISK_RP_TOKEN": "s3cret-token",
}


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("rp:33", LaunchReference("33")),
        ("rp:3e0b6a0e-58c5", LaunchReference("3e0b6a0e-58c5")),
        ("rp:harbour/33", LaunchReference("33", "harbour")),
        (
            "https://rp.example.org/ui/#harbour/launches/all/33",
            LaunchReference("33", "harbour", "https://rp.example.org"),
        ),
        (
            "http://h:8080/tools/ui/#my%20one/launches/latest/33/44/log?page=1",
            LaunchReference("33", "my one", "http://h:8080/tools"),
        ),
        ("report.xml", None),
        ("rp.xml", None),
    ],
)
def test_the_words_for_a_launch(word: str, found: LaunchReference | None) -> None:
    assert parse_launch_word(word) == found


@pytest.mark.parametrize(
    "word",
    ["rp:", "rp:a/b/3", "rp:../../x", "rp:3?x=1", "https://x/y", "https://x/#a/launches/all"],
)
def test_words_that_name_no_launch_are_refused_with_the_forms(word: str) -> None:
    with pytest.raises(SourceError, match=r"rp:ID"):
        parse_launch_word(word)


def test_the_environment_tells_everything() -> None:
    assert find_address(FULL) == PortalAddress("https://rp.example.org", "harbour", "s3cret-token")


@pytest.mark.parametrize(
    "url",
    [
        "https://h/ui",
        "https://h/api/v1/",
        "https://h/",
        " https://h",
        "https://h/ui/#harbour/launches/all",
        "https://h/ui/?a=b",
    ],
)
def test_pages_of_the_server_are_not_its_address(url: str) -> None:
    assert find_address(FULL | {"ASTERISK_RP_URL": url}).url == "https://h"


@pytest.mark.parametrize("missing", sorted(FULL))
def test_what_is_missing_is_named(missing: str, tmp_path: Path) -> None:
    output = {name: value for name, value in FULL.items() if name != missing}
    with pytest.raises(SourceError, match=missing):
        find_address(output, key_file=None)


def test_the_token_is_not_sent_to_another_server() -> None:
    with pytest.raises(SourceError, match="the token is only sent there"):
        find_address(FULL, url="https://evil.example.org")
    assert find_address(FULL, url="https://rp.example.org/ui").url == "https://rp.example.org"


@pytest.mark.parametrize("url", ["rp.example.org", "ftp://x", "https://", "https://a:b@h"])
def test_an_address_is_http(url: str) -> None:
    with pytest.raises(SourceError, match="ASTERISK_RP_URL"):
        find_address(FULL | {"ASTERISK_RP_URL": url})


def test_the_token_is_never_shown() -> None:
    assert "s3cret" not in repr(find_address(FULL))
    assert "s3cret" not in f"{find_address(FULL)}"


def test_a_key_file_gives_its_first_line(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("  from-file \nsecond\n")
    key.chmod(0o600)
    output = {**FULL, "ASTERISK_RP_TOKEN": ""}
    assert find_address(output, key_file=key).token == "from-file"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_file_that_others_can_read_is_refused_with_the_command(
    tmp_path: Path, mode: int
) -> None:
    key = tmp_path / "key"
    key.write_text("from-file")
    key.chmod(mode)
    with pytest.raises(SourceError, match=f"chmod 600 {key}") as error:
        find_address({**FULL, "ASTERISK_RP_TOKEN": ""}, key_file=key)
    assert "from-file" not in str(error.value)


def test_key_files_that_give_nothing(tmp_path: Path) -> None:
    output = {**FULL, "ASTERISK_RP_TOKEN": ""}
    with pytest.raises(SourceError, match="is not there"):
        find_address(output, key_file=tmp_path / "none")
    with pytest.raises(SourceError, match="regular file"):
        find_address(output, key_file=tmp_path)
    key = tmp_path / "key"
    for content, result in ((b"", "is empty"), (b"\x80\xff\n", "unusual characters")):
        key.write_bytes(content)
        key.chmod(0o600)
        with pytest.raises(SourceError, match=result):
            find_address(output, key_file=key)
