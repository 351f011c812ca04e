"""The window in a real browser: live rows, answers by mouse and by keyboard, three widths, light
and dark, and axe, which finds nothing. Nothing on the console, nothing refused by the policy."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rca_tests.worlds.red_repository import KEY, TYPE, junit
from tests.world.agent_cli import BIN
from tests.world.change import CHANGE
from tests.world.command_line import APPROVED, World
from tests.world.serving import Served, served

if TYPE_CHECKING:
    from playwright import sync_api as playwright
else:
    playwright = pytest.importorskip("playwright.sync_api")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
AXE = BIN.parent / "axe-core" / "axe.min.js"
RUN = ("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
PAGES = (
    "/",
    "/runs",
    "/runs/1",
    "/runs/1/cases/1?set.good_enough=0.95",
    "/inbox",
    "/inbox/5",
    "/circuits",
    "/circuits/rca",
    "/agents",
    "/nowhere",
)
_AXE = """async () => (await axe.run()).violations.map(
  (each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`)"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


class Browser:
    """Pages of one server in one browser, and everything that they complained about."""

    def __init__(self, browser: "playwright.Browser", server: Served) -> None:
        self._browser = browser
        self._server = server
        self.complaints: list[str] = []

    @contextmanager
    def open(self, path: str, **options: Any) -> Iterator["playwright.Page"]:
        context = self._browser.new_context(base_url=self._server.url, **options)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._hear)
        page.goto(path)
        yield page
        context.close()

    def _hear(self, message: "playwright.ConsoleMessage") -> None:
        if message.type in ("error", "warning") and "404" not in message.text:
            self.complaints.append(message.text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two cases wait at the gate of run 1, with questions 5 and 6."""
    made = World(tmp_path)
    made.write("crew.yaml", APPROVED)
    made.cases("one", "two")
    assert made.say(*RUN).code == 4
    return made


@pytest.fixture
def browser(world: World) -> Iterator[Browser]:
    with served(world) as server, playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=str(BROWSER), args=["--no-sandbox", "--disable-gpu"]
        )
        made = Browser(chromium, server)
        yield made
        chromium.close()
        assert made.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_overflows(browser: Browser, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is installed by: make e2e")
    source = AXE.read_text(encoding="utf-8")
    found = []
    with browser.open("/") as page:
        links = page.eval_on_selector_all("nav a", "found => found.map((each) => each.pathname)")
    for width in (400, 1280, 2500):
        for path in dict.fromkeys([*PAGES, *links]):
            size = {"width": width, "height": 900}
            with browser.open(path, viewport=size, color_scheme=scheme) as page:
                page.evaluate(source)
                found += [f"{path} at {width}: {each}" for each in page.evaluate(_AXE)]
                over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                found += [f"{path} at {width} is {over} px too wide"] * (over > 0)
    assert found == []


def test_axe_finds_nothing_on_what_an_analysis_shows(tmp_path: Path) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is installed by: make e2e")
    made = World(tmp_path)
    made.write("red.xml", junit(KEY, TYPE))
    assert made.say("ingest", "red.xml").code == 0
    assert made.type("analyze", "red.xml").code == 4
    pages = ["/inbox", "/runs/1", "/runs/1/cases/1", "/failures/1/log", "/causes", "/causes/1"]
    pages += ["/tests", "/tests/history?test=one"]
    found = []
    with served(made) as server, playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=str(BROWSER), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page(base_url=server.url, viewport={"width": 400, "height": 900})
        for path in pages:
            page.goto(path)
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found += [f"{path}: {each}" for each in page.evaluate(_AXE)]
        chromium.close()
    assert found == []


def test_a_run_is_seen_to_move(world: World, browser: Browser) -> None:
    with browser.open("/runs/1") as page:
        place = page.locator('[data-place="approve"] .count')
        playwright.expect(place).to_have_text("2")
        row = page.locator("tr", has=page.get_by_role("link", name="one", exact=True))
        playwright.expect(row).to_contain_text("waits for you")
        playwright.expect(page.locator("[data-live=state]")).to_have_text("live")
        assert world.type("answer", "5", "approve").code == 0
        assert world.type("resume", "1").code == 4
        playwright.expect(row).to_contain_text("published")
        playwright.expect(place).to_have_text("1")
        playwright.expect(page.locator("nav [data-live=waiting]")).to_have_text(re.compile("^1"))


def test_a_second_tab_hears_it_too(world: World, browser: Browser) -> None:
    with browser.open("/runs/1") as page:
        other = page.context.new_page()
        other.goto("/runs/1/cases/1")
        playwright.expect(other.locator("[data-live=state]")).to_have_text("live")
        assert world.type("answer", "5", "approve").code == 0
        assert world.type("resume", "1").code == 4
        other.bring_to_front()
        playwright.expect(other.locator("#timeline")).to_contain_text("live → published")


def test_answering_by_mouse(world: World, browser: Browser) -> None:
    with browser.open("/inbox") as page:
        question = page.locator('[data-question="5"]')
        question.get_by_label("Comment").fill("ship it")
        question.get_by_label("Your name").fill("Ada")
        question.get_by_role("button", name="approve").click()
        dialog = page.get_by_role("dialog")
        playwright.expect(dialog).to_contain_text("ship it")
        dialog.get_by_role("button", name="Back").click()
        assert not world.type("inbox", "--json").json["questions"][0]["answer_saved"]
        question.get_by_role("button", name="approve").click()
        dialog.get_by_role("button", name="Answer approve").click()
        playwright.expect(page.locator("main")).to_contain_text("answer to question 5 is saved")
    assert world.type("resume", "1").code == 4
    assert "came back by Ada" in world.type("explain", "one").out


def test_answering_by_keyboard_takes_two_keys(world: World, browser: Browser) -> None:
    with browser.open("/inbox") as page:
        page.keyboard.press("a")  # nothing is chosen yet
        playwright.expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("r")
        playwright.expect(page.get_by_role("dialog")).to_contain_text("Question 6")
        page.keyboard.press("Escape")
        page.keyboard.press("r")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("main")).to_contain_text("answer to question 6 is saved")
    saved = {
        each["question_id"]: each["answer_saved"]
        for each in world.type("inbox", "--json").json["questions"]
    }
    assert saved == {5: False, 6: True}


def test_the_first_run_appears_by_itself(tmp_path: Path) -> None:
    made = World(tmp_path)
    with served(made) as server, playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=str(BROWSER), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page()
        page.goto(server.url)
        playwright.expect(page.locator("main")).to_contain_text("Nothing has run here yet")
        made.write("crew.yaml", APPROVED)
        made.cases("one")
        assert made.type(*RUN).code == 4
        playwright.expect(page.locator("#waits")).to_contain_text("the one", timeout=30_000)
        chromium.close()


def test_pages_of_features_follow_their_runs(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.write("red.xml", junit(KEY))
    assert made.type("analyze", "red.xml").code == 4
    with served(made) as server, playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=str(BROWSER), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page()
        page.goto(f"{server.url}/reports")
        playwright.expect(page.locator("#reports")).to_contain_text("red")
        made.write("more.xml", junit(TYPE))
        assert made.type("analyze", "more.xml").code == 4
        playwright.expect(page.locator("#reports")).to_contain_text("more", timeout=30_000)
        chromium.close()


def test_a_key_leads_to_each_page(browser: Browser) -> None:
    with browser.open("/") as page:
        for key, path in (("i", "/inbox"), ("r", "/runs"), ("c", "/circuits"), ("h", "/")):
            page.keyboard.press("g")
            page.keyboard.press(key)
            page.wait_for_url(f"**{path}")
        page.goto("/runs/1")
        page.keyboard.press("/")
        page.keyboard.type("two")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("[data-total]")).to_have_text("1 found")


def test_keys_reach_every_table(browser: Browser) -> None:
    with browser.open("/circuits") as page:
        page.keyboard.press("j")
        playwright.expect(page.get_by_role("link", name="delivery")).to_be_focused()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/circuits/epic")
        page.goto("/causes")
        page.keyboard.press("/")
        playwright.expect(page.get_by_label("Search")).to_be_focused()


def test_sliders_replay_in_place(browser: Browser) -> None:
    with browser.open("/runs/1/cases/1") as page:
        result = page.locator("#whatif")
        playwright.expect(result).to_contain_text("Move a slider")
        page.get_by_label("good_enough, slider").fill("0.95")
        playwright.expect(result).to_contain_text("2 cases of 2 would go another way")
        page.get_by_label("good_enough, slider").fill("0.5")
        playwright.expect(result).to_contain_text("0 cases of 2")


def test_pages_can_be_read_without_script(browser: Browser) -> None:
    with browser.open("/runs/1", java_script_enabled=False) as page:
        playwright.expect(page.locator("#rows")).to_contain_text("waits for you")
        playwright.expect(page.locator('[data-place="approve"] .count')).to_have_text("2")
        page.get_by_label("Search").fill("two")
        page.get_by_role("button", name="Filter").click()
        playwright.expect(page.locator("[data-total]")).to_have_text("1 found")


def test_a_lost_connection_is_told_and_found_again(world: World, tmp_path: Path) -> None:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=str(BROWSER), args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_page()
        with served(world) as server:
            page.goto(f"{server.url}/runs/1")
            state = page.locator("[data-live=state]")
            playwright.expect(state).to_have_text("live")
            port = server.url.rpartition(":")[2]
        playwright.expect(state).to_contain_text("connection lost")
        with served(world, "--port", port):
            playwright.expect(state).to_have_text("live", timeout=30_000)
        chromium.close()
