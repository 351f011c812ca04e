"""Pages of analyses on a real server: causes, reports that keep to themselves, tests over time."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from rca_tests.worlds.red_repository import KEY, TYPE, junit, red
from tests.together.test_uploads import XML, send, wait
from tests.world.command_line import LIMIT, World
from tests.world.git_repo import GitRepo
from tests.world.serving import Served, served

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    world = World(tmp_path_factory.mktemp("near"))
    with served(world) as server:
        body = junit(KEY, TYPE, red(EVIL, f"ValueError: {EVIL}"), name=EVIL)
        found = wait(server, send(server, body.encode(), XML, suite=EVIL, run="1"))
        assert found["state"] == "done", found
        yield server


def show(server: Served, path: str) -> httpx.Response:
    found = httpx.get(f"{server.url}{path}", timeout=LIMIT, follow_redirects=True)
    assert found.status_code == 200, found.text
    assert EVIL not in found.text
    return found


def show_report(server: Served, path: str) -> httpx.Response:
    """A report, when it is written."""
    page = show(server, path)
    while "is being written" in page.text:
        assert page.headers["refresh"] == "1"
        page = show(server, path)
    return page


def test_causes_lead_to_their_suites(near: Served) -> None:
    page = show(near, "/causes").text
    first = re.search(r'href="(/causes/\d+)"', page)
    assert first is not None
    cause = show(near, first[1]).text
    assert "Seen in" in cause
    assert 'href="/suites/1"' in cause
    assert "No cause is like that" in show(near, "/causes?text=nothing-like-it").text
    listed = httpx.get(f"{near.url}/api/v1/causes").json()["causes"]
    assert sum(each["failures"] for each in listed) == 3
    detail = httpx.get(f"{near.url}/api/v1{first[1]}").json()
    assert detail["cause"]["suites"] == [1]
    assert httpx.get(f"{near.url}/causes/999").status_code == 404
    assert httpx.get(f"{near.url}/api/v1/causes/999").status_code == 404


def test_a_report_is_shown_in_a_sandbox_with_its_own_policy(near: Served) -> None:
    listed = httpx.get(f"{near.url}/api/v1/reports").json()["reports"][0]
    report = show_report(near, f"/reports/{listed['id']}")
    assert report.url.path == "/suites/1/report.html"
    policies = report.headers.get_list("content-security-policy")
    assert len(policies) == 1
    assert re.search(r"script-src 'sha256-[^']+'; style-src 'sha256-[^']+'", policies[0])
    assert "sandbox allow-scripts" in policies[0]
    assert "frame-ancestors 'none'" in policies[0]
    assert "&lt;script&gt;" in report.text
    assert "/suites/1" in show(near, "/reports").text
    assert httpx.get(f"{near.url}/suites/999/report.html").status_code == 404


def test_a_large_report_is_written_aside(near: Served) -> None:
    """One that has a page for each cause, too."""
    many = junit(*(red(f"case {number}", f"IndexError: row {number}") for number in range(2_001)))
    found = wait(near, send(near, many.encode(), XML, run="2"))
    report = show_report(near, f"/suites/{found['suite_id']}")
    assert "2,001 failures" in report.text
    part = re.search(r'href="(causes/\d+\.html)"', report.text)
    assert part is not None
    page = show(near, f"/suites/{found['suite_id']}/{part[1]}")
    assert "sandbox" in page.headers["content-security-policy"]
    assert 'href="../report.html' in page.text
    missing = httpx.get(f"{near.url}/suites/{found['suite_id']}/causes/..%2freport.html")
    assert missing.status_code == 404


def test_an_upload_says_how_far_it_is(near: Served) -> None:
    broken = wait(near, send(near, b"<html/>", XML, run="3"))
    assert "not a JUnit report" in show(near, f"/reports/{broken['id']}").text
    assert httpx.get(f"{near.url}/reports/{'0' * 20}").status_code == 404
    assert httpx.get(f"{near.url}/reports/..%2f..%2fetc").status_code == 404


def test_a_run_is_searched_by_the_names_of_its_tests(near: Served) -> None:
    page = show(near, "/runs/1?q=SCRIPT").text
    assert "1 found" in page
    assert "No case fits" in show(near, "/runs/1?q=no-test-is-called-so").text


def test_a_test_leads_to_its_history_and_its_causes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("red.xml", junit(KEY, red(EVIL, f"ValueError: {EVIL}")))
    assert world.say("ingest", "red.xml").code == 0
    assert world.type("analyze", "red.xml").code == 4
    with served(world) as server:
        page = show(server, "/tests").text
        links = re.findall(r'href="(/tests/history[^"]*)"', page)
        assert len(links) == 2
        assert "(no name)" not in page
        for link in links:
            found = show(server, unescape(link)).text
            assert "it failed on the newest source" in found
            assert re.search(r'href="/causes/\d+"', found)
            assert re.search(r'href="/runs/1/cases/\d+"', found)
        cause = re.search(r'href="(/causes/\d+)"', found)
        assert cause is not None
        back = re.search(r'href="(/tests/history[^"]*)"', show(server, cause[1]).text)
        assert back is not None
        assert unescape(back[1]).partition("test=")[2] in unescape(" ".join(links))
        assert "No test is like that" in show(server, "/tests?text=nothing-like-it").text
        listed = httpx.get(f"{server.url}/api/v1/tests?text=CART::ONE").json()["tests"]
        assert [(each["test"], each["state"], each["newest"]) for each in listed] == [
            ("nightly::shop.Cart::one", "failing", "F")
        ]
        for wanted in ("", "?test=", "?test=%00", "?test=nothing-like-it", f"?test={'x' * 5_000}"):
            assert httpx.get(f"{server.url}/tests/history{wanted}").status_code == 404, wanted


def test_without_a_memory_of_results(near: Served) -> None:
    assert "interlock ingest results/" in show(near, "/tests").text


CART = """\
class Cart:
    def one(self, lines):
        # {}
        found = lines
        if not found:
            return 0
        return {}
"""


def test_a_review_is_shown_for_people_with_links_to_what_it_rests_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    repo = GitRepo(tmp_path / "app")
    repo.commit(
        "Begin the cart",
        {"shop/Cart.py": CART.format("adds up", 'found.get("total", 0)'), "secret.txt": "hush\n"},
    )
    repo.commit(f"Reckon totals {EVIL}", {"shop/Cart.py": CART.format(EVIL, 'found["total"]')})
    world.write("red.xml", junit(red("one", f"KeyError: no total {EVIL}")))
    words = ("--repo", "app=app:the product", "--last-green", "HEAD~1")
    assert world.say("analyze", "red.xml", *words).code == 4
    with served(world) as server:
        inbox = show(server, "/inbox").text
        assert "Is it right?" in inbox
        assert "--- data" not in inbox
        case = show(server, "/runs/1/cases/1").text
        sources = set(re.findall(r'href="(/failures/1/source[^"]*)"', case))
        assert sources
        assert sources == set(re.findall(r'href="(/failures/1/source[^"]*)"', inbox))
        pages = [show(server, unescape(each)).text for each in sources]
        assert any("Reckon totals" in page and 'class="add"' in page for page in pages)
        assert "KeyError: no total" in show(server, "/failures/1/log").text
        assert "/suites/1/report.html#case-C1" in case
        assert "shop.Cart.one" in show(server, "/runs/1").text
        for ref in ("app:secret.txt", "app:../red.xml", "app@HEAD", "/etc/passwd", "", "\x00"):
            found = httpx.get(f"{server.url}/failures/1/source", params={"ref": ref})
            assert (found.status_code, "hush" in found.text) == (404, False), ref
        assert httpx.get(f"{server.url}/failures/{2**70}/log").status_code == 404
