"""Pages of deliveries, epics and calibrations on real servers, with what real runs left behind."""

import re
import shutil
from pathlib import Path

import httpx

from delivery_tests.world.delivery_project import AGENT, lay_out
from epic_tests.world.epic_project import DONE, Project
from tests.world.command_line import LIMIT, World
from tests.world.serving import Served, served


def show(server: Served, path: str, status: int = 200) -> httpx.Response:
    found = httpx.get(f"{server.url}{path}", timeout=LIMIT)
    assert found.status_code == status, found.text
    return found


def test_a_delivery_whose_plan_is_gone(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "lies", "after>lies", "asks")
    assert world.say("deliver", "plan.md", "--agent", AGENT, "--set", "max_checks=1").code == 4
    world.folder.joinpath("plan.md").unlink()
    shutil.rmtree(world.folder / ".git")
    with served(world) as server:
        listed = show(server, "/deliveries").text
        assert 'href="/deliveries/1"' in listed
        assert "Whose claims were true" in listed
        page = show(server, "/deliveries/1").text
        for task in ("adds", "lies", "after", "asks"):
            assert f'<a href="/runs/1/cases?id={task}"><bdi>{task}</bdi></a>' in page
        found = httpx.get(f"{server.url}/runs/1/cases?id=lies", follow_redirects=True)
        assert (found.status_code, "<bdi>lies</bdi></h1>" in found.text) == (200, True)
        assert "What agents claimed" in page
        (listed,) = show(server, "/api/v1/deliveries").json()["deliveries"]
        assert (listed["run_id"], sum(listed["tasks"].values())) == (1, 4)
        detail = show(server, "/api/v1/deliveries/1").json()
        assert {each["task_id"] for each in detail["tasks"]} == {"adds", "lies", "after", "asks"}
        assert sum(each["refuted"] for each in detail["claims"]) > 0
        assert show(server, "/api/v1/epics").json() == {"epics": []}
        report = show(server, "/deliveries/1/report")
        assert "sandbox" in report.headers["content-security-policy"]
        show(server, "/deliveries/999", 404)
        assert "No epic has begun yet" in show(server, "/epics").text
        assert "No scorecard" in show(server, "/scorecards").text


def test_an_epic_and_two_scorecards(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert Project(world).run([DONE]).code == 0
    for name in ("a", "b"):
        words = ("--scenario", "mobile-backend", "--agent", "stub", "--out", f"{name}.json")
        assert world.say("calibrate", *words).code == 0
    with served(world) as server:
        assert "epic-3" in show(server, "/epics").text
        page = show(server, "/epics/epic-3").text
        assert "Stories" in page
        assert "Session 1" in page
        assert re.search(r"<bdi>3-1</bdi></td><td[^>]*><span[^>]*>done<", page)
        show(server, "/epics/..%2f..%2fetc", 404)
        (epic,) = show(server, "/api/v1/epics").json()["epics"]
        assert (epic["epic_id"], epic["stories"]["3-1"], epic["sessions"]) == ("epic-3", "done", 1)
        cards = show(server, "/api/v1/scorecards").json()["scorecards"]
        assert {(each["name"], each["passed"]) for each in cards} == {
            ("a.json", True),
            ("b.json", True),
        }
        listed = show(server, "/scorecards").text
        keys = re.findall(r'href="/scorecards/([0-9a-f]{16})"', listed)
        assert len(keys) == 2
        card = show(server, f"/scorecards/{keys[0]}")
        assert "sandbox" in card.headers["content-security-policy"]
        compared = show(server, f"/scorecards?a={keys[0]}&b={keys[1]}").text
        assert "0 are solved that were not" in compared
        show(server, "/scorecards/0000000000000000", 404)
