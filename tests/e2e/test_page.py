"""The report in a real browser: its script runs, filters, opens what a link names, and complains of
nothing. The browser is asked for the page as it stands after its script."""

import shutil
import subprocess
from pathlib import Path

import pytest

from interlock_rca.records import Findings
from interlock_rca.report.outline import build_outline
from interlock_rca.report.page import render_page
from rca_tests.worlds.findings import example, hostile
from tests.world.page_reader import Page

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def seen(folder: Path, findings: Findings, address: str = "") -> Page:
    """The page at that address, after its script has run without a word on the console."""
    file = folder / "report.html"
    file.write_text(render_page(build_outline(findings)), encoding="utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom")
    own = f"--user-data-dir={folder / 'browser'}"
    done = subprocess.run(
        [str(BROWSER), *flags, own, f"{file.as_uri()}{address}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return Page(done.stdout.strip().removeprefix("<!DOCTYPE html>"))


def list_visible(read: Page, name: str) -> list[dict[str, str]]:
    return [attrs for attrs in read.with_attribute(name) if "hidden" not in attrs]


@pytest.mark.parametrize("findings", [example(), hostile()], ids=["night", "evil"])
def test_the_script_runs_and_nothing_else_does(tmp_path: Path, findings: Findings) -> None:
    read = seen(tmp_path, findings)
    assert "js" in read.all("html")[0]["class"].split()
    assert len(read.all("script")) == len(read.all("style")) == 1
    assert read.all("img") == read.all("iframe") == []
    assert len(list_visible(read, "data-n")) == len(findings.cases)


def test_an_address_may_filter(tmp_path: Path) -> None:
    read = seen(tmp_path, example(), "?kind=product")
    rows = list_visible(read, "data-n")
    assert {row["data-k"] for row in rows} == {"product"}
    assert f"Showing {len(rows)} of {len(example().cases)} failures in 2 causes." in read.text
    cards = list_visible(read, "data-family")
    assert {word for card in cards for word in card["class"].split() if word[:2] == "k-"} == {
        "k-product"
    }
    nothing = seen(tmp_path, example(), "?q=no-such-word")
    assert list_visible(nothing, "data-n") == []
    assert "Nothing fits." in nothing.text


def test_a_link_opens_what_it_names(tmp_path: Path) -> None:
    closed = seen(tmp_path, example())
    mark = closed.with_attribute("data-case")[-1]["id"]
    assert "open" not in next(attrs for attrs in closed.all("details") if attrs.get("id") == mark)
    opened = seen(tmp_path, example(), f"#{mark}")
    assert "open" in next(attrs for attrs in opened.all("details") if attrs.get("id") == mark)


def test_a_reader_may_choose_the_dark(tmp_path: Path) -> None:
    assert "dark" in seen(tmp_path, example(), "?theme=dark").all("html")[0]["class"].split()
    assert "dark" not in seen(tmp_path, example(), "?theme=<b>").all("html")[0]["class"].split()
