"""The window's pages from a real server: what they show, what they refuse, and hostile names."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from interlock.api.project import Project
from interlock.engine.circuit_file import read_circuit
from interlock.journal.address import PostgresAddress
from interlock.journal.database import open_writer
from interlock.journal.runs import NewCase, NewRun, begin_run
from interlock.runtime.circuits import Bundle
from tests.world.change import CHANGE
from tests.world.command_line import APPROVED, LIMIT, World, until
from tests.world.serving import TOKEN, Served, served

RUN = ("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
EVIL = "</title><script>alert(1)</script><img src=x onerror=alert(2)>"
NAMES = [
    EVIL,
    "مرحبا \u202egnp.exe",
    "long " * 2000,
    "../../etc/passwd?x=1#y",
    "tab\tand\x00nul",
    "",
]
CIRCUIT = """\
circuit: tiny
version: 1
start: ask
ends: {done: healthy}
max_steps: 3
steps:
  ask: {gate: true, prompt: "{{ case.text }}", answer: approval}
rules:
  - {id: yes-or-no, at: ask, to: done}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two cases wait at the gate of run 1, with questions 5 and 6."""
    made = World(tmp_path_factory.mktemp("window"))
    made.write("crew.yaml", APPROVED)
    made.cases("one", "two")
    assert made.say(*RUN).code == 4
    return made


@pytest.fixture(scope="module")
def window(world: World) -> Iterator[Served]:
    with served(world) as server:
        yield server


def read(server: Served, path: str, status: int = 200, **more: str) -> str:
    headers = {"Accept": "text/html", **more}
    found = httpx.get(server.url + path, headers=headers)
    assert found.status_code == status, found.text[:400]
    assert found.headers["content-security-policy"] == POLICY
    assert found.headers["x-content-type-options"] == "nosniff"
    return found.text


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("/", ["questions wait", "Publish this change on", "the one", "$0"]),
        ("/runs", ["change", "cases.jsonl", "2 open"]),
        ("/runs/1", ["Only people can move it on", 'data-place="approve"', "waits for you", "two"]),
        ("/runs/1?q=TWO&sort=cost&desc=1", ["1 found", "two"]),
        ("/runs/1?state=human&step=approve", ["2 found"]),
        ("/runs/1?state=published", ["No case fits"]),
        ("/runs/1/cases/1", ["score &gt;= good_enough", "passed over", "read", "question 5"]),
        ("/inbox", ["Publish this change on", "approve", "reject", "2 questions"]),
        ("/inbox/5", ["The critic gave it 0.9.", 'name="version"']),
        ("/circuits", ["epic", "rca", "delivery"]),
        ("/circuits/rca", ["sound", "Worst case", "recall_hit"]),
        ("/agents", ["Claude Code", "script:crew.yaml"]),
    ],
)
def test_pages(window: Served, path: str, texts: list[str]) -> None:
    page = read(window, path)
    assert [text for text in texts if text not in page] == []
    assert " style=" not in page
    assert re.findall(r"<script(?! type=\"module\" src=| type=\"application/json\")", page) == []
    assert re.findall(r"(?:src|href)=\"(?:https?:)?//", page) == []


def test_a_case_is_found_by_its_id(window: Served) -> None:
    found = httpx.get(f"{window.url}/runs/1/cases?id=two", follow_redirects=True)
    assert found.url.path == "/runs/1/cases/2"


def test_a_page_that_is_not_there_shows_nothing_of_the_project(window: Served) -> None:
    page = read(window, "/nowhere", 404)
    assert re.search(r'data-live="waiting" hidden>0<', page)
    assert page.count("There is nothing at this address") == 1


def test_a_replay_shows_who_would_go_another_way(window: Served) -> None:
    page = read(window, "/runs/1/cases/1?set.good_enough=0.95")
    assert "<strong>2 cases</strong> of 2 would go another way" in page
    assert "good → approve" in page
    assert "rework → draft" in page
    assert "takes a number" in read(window, "/runs/1/cases/1?set.good_enough=high")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("/runs/99", 404),
        ("/runs/99999999999999999999999", 404),
        ("/runs/1/cases/99", 404),
        ("/runs/1/cases?id=three", 404),
        ("/runs/99999999999999999999999/cases?id=one", 404),
        ("/runs?before=99999999999999999999999", 200),
        ("/runs/x", 404),
        ("/inbox/77", 404),
        ("/circuits/..%2f..%2fetc%2fpasswd", 404),
        ("/static/..%2fapp.py", 404),
        ("/runs/1?page=99999999&sort=x&state=%00", 200),
    ],
)
def test_what_is_not_there(window: Served, path: str, status: int) -> None:
    page = read(window, path, status)
    assert "Traceback" not in page
    assert status == 200 or "Go to Home" in page


def test_assets_are_kept_by_the_browser(window: Served) -> None:
    css = re.search(r'href="(/static/window\.css\?v=[0-9a-f]+)"', read(window, "/"))
    assert css
    found = httpx.get(window.url + css[1])
    assert "immutable" in found.headers["cache-control"]
    again = httpx.get(window.url + css[1], headers={"If-None-Match": found.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx.head(window.url + "/").status_code == 200


def answer(server: Served, number: int, **fields: str) -> httpx.Response:
    """What a browser sends that has opened the inbox."""
    with httpx.Client(base_url=server.url, headers={"Accept": "text/html"}) as browser:
        page = browser.get(f"/inbox/{number}").text
        given = {
            name: found[1]
            for name in ("_csrf_token", "version")
            if (found := re.search(rf'name="{name}" value="([^"]*)"', page))
        }
        return browser.post(f"/inbox/{number}/answer", data={**given, **fields})


def test_an_answer_is_saved_once_and_names_its_giver(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.write("crew.yaml", APPROVED)
    made.cases("one", "two")
    assert made.say(*RUN).code == 4
    with served(made) as server:
        done = answer(server, 5, decision="approve", by="Ada", note="<script>alert(1)</script>")
        assert (done.status_code, done.headers["location"]) == (303, "/inbox?saved=5")
        again = answer(server, 5, decision="reject", by="Bob")
        assert again.status_code == 409
        assert "is answered already by Ada" in again.text
        bad = answer(server, 6, decision="perhaps", by="Bob")
        assert bad.status_code == 409
        assert "nothing was saved" in bad.text
        old = answer(server, 6, decision="approve", version="0123")
        assert old.status_code == 409
        assert "is not the one you saw" in old.text
        assert answer(server, 6, decision="approve", _csrf_token="forged").status_code == 403
        assert made.say("resume", "1").code == 4
        page = read(server, "/runs/1/cases/1")
        assert "by <bdi>Ada</bdi>" in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert(1)" not in page


def test_another_site_cannot_answer(window: Served) -> None:
    form = {"decision": "approve"}
    evil = {"Origin": "https://evil.example", "Accept": "text/html"}
    assert httpx.post(window.url + "/inbox/5/answer", data=form, headers=evil).status_code == 403
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert httpx.post(window.url + "/inbox/5/answer", data=form, headers=cross).status_code == 403
    plain = httpx.post(window.url + "/inbox/5/answer", data=form)
    assert plain.status_code == 403
    assert "not from a page of this server" in plain.text
    assert httpx.get(window.url, headers={"Host": "evil.example"}).status_code == 421
    assert httpx.post(window.url + "/runs").status_code == 405
    large = httpx.post(window.url + "/inbox/5/answer", data={"note": "x" * 5_000_000})
    assert large.status_code == 413


def test_beyond_this_machine_a_browser_signs_in(tmp_path: Path) -> None:
    made = World(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    with served(made, "--token-file", "token") as server:
        wants = {"Accept": "text/html"}
        with httpx.Client(base_url=server.url, headers=wants) as browser:
            asked = browser.get("/runs?before=3")
            assert (asked.status_code, asked.headers["location"]) == (
                303,
                "/login?next=%2Fruns%3Fbefore%3D3",
            )
            assert browser.post("/login", data={"token": "wrong"}).status_code == 401
            elsewhere = {"token": TOKEN, "next": "//evil.example/"}
            assert browser.post("/login", data=elsewhere).headers["location"] == "/"
            cookie = browser.post("/login", data={"token": TOKEN}).headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert browser.get("/").status_code == 200
        assert httpx.get(server.url + "/live").status_code == 401


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.db.parent.mkdir(parents=True)
    circuit = read_circuit(CIRCUIT, "tiny.yaml").circuit
    cases = [NewCase(name, {"text": name}) for name in NAMES]
    with open_writer(made.db) as connection:
        new = NewRun(
            circuit=circuit,
            text=Bundle("tiny.yaml", CIRCUIT).encode(),
            source=EVIL,
            fingerprint="x",
            options={"id": EVIL, "agents": {"human": EVIL}},
            at=0.0,
        )
        begin_run(connection, new, cases)
    assert len(Project(tmp_path).runs()) == 1
    with served(made) as server:
        for path in (
            "/",
            "/runs",
            "/runs/1",
            "/runs/1?q=%3Cscript",
            *(f"/runs/1/cases/{number}" for number in range(1, len(NAMES) + 1)),
        ):
            page = read(server, path)
            assert "<script>alert" not in page
            assert "<img" not in page
            assert "\u202e" not in page
        assert "<bdi" in read(server, "/runs/1")
        assert len(read(server, "/runs/1")) < 100_000
        assert "long long" in read(server, "/runs/1/cases/3")


def test_a_database_that_is_elsewhere_is_told(tmp_path: Path) -> None:
    made = World(tmp_path)
    with served(made) as server:
        assert "Nothing has run here yet" in read(server, "/")
        made.write("crew.yaml", APPROVED)
        made.cases("one")
        assert made.say(*RUN).code == 4
        assert "the one" in read(server, "/")
        assert made.say("db", "move", str(made.db), str(tmp_path / "other.db")).code == 0
        page = read(server, "/", 503)
        assert "was moved to another database" in page
        made.db.write_bytes(b"this is no database at all, not even nearly")
        assert "not an Interlock database" in read(server, "/runs", 503)


def test_a_database_that_breaks_while_it_is_read_is_told_once(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.write("crew.yaml", APPROVED)
    made.cases("one")
    assert made.say(*RUN).code == 4
    whole = made.db.read_bytes()
    with (
        served(made) as server,
        httpx.stream("GET", server.url + "/live", timeout=60) as stream,
    ):
        events = (
            json.loads(line.removeprefix("data: "))
            for line in stream.iter_lines()
            if line.startswith("data: ")
        )
        while not next(events)["fresh"]:
            pass
        for end in ("-wal", "-shm"):
            made.db.with_name(made.db.name + end).unlink(missing_ok=True)
        made.db.write_bytes(b"garbage" * 1000)  # under the connection that is open
        told = [next(events)]
        assert "interlock.db" in told[0]["problem"]
        made.db.write_bytes(whole)
        while not told[-1]["fresh"]:
            told.append(next(events))
    problems = [each["problem"] for each in told if each["problem"]]
    assert len(problems) == len(set(problems))


def test_agents_that_are_asked_are_named_with_their_run(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.cases("one", "two")
    silent = f"exec:{sys.executable} -c 'import time; time.sleep(600)'"
    words = ("run", CHANGE, "--cases", "cases.jsonl", "--agent", silent)
    process = made.start(*words, "--parallel", "2")
    try:
        with served(made) as server:
            until(
                lambda: '<a href="/runs/1?state=asked#cases">' in read(server, "/agents"),
                "both are asked",
            )
            page = read(server, "/agents")
            assert 'data-label="Open dispatches">2<' in page
            assert "import time" in page
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)


def test_changes_are_told_as_they_are_committed(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.write("crew.yaml", APPROVED)
    made.cases("one")
    assert made.say(*RUN).code == 4
    with (
        served(made) as server,
        httpx.stream("GET", server.url + "/live", timeout=60) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = (
            json.loads(line.removeprefix("data: "))
            for line in stream.iter_lines()
            if line.startswith("data: ")
        )
        assert next(events)["runs"] == {}
        assert next(events)["fresh"]
        assert made.say("answer", "3", "approve").code == 0
        assert made.say("resume", "1").code == 0
        while "1" not in next(events)["runs"]:
            pass


def test_a_server_database_is_shown_alike(tmp_path: Path, postgres: PostgresAddress) -> None:
    made = World(tmp_path)
    made.write("crew.yaml", APPROVED)
    made.cases("one", "two")
    db = ("--db", postgres.url)
    assert made.say(*RUN, *db).code == 4
    with served(made, *db) as server:
        inbox = read(server, "/inbox")
        found = re.search(r'data-question="(\d+)"', inbox)
        assert found
        page = read(server, "/runs/1?sort=cost&state=human&q=ON")
        assert "1 found" in page
        assert "waits for you" in page
        done = answer(server, int(found[1]), decision="approve", by="Ada")
        assert done.status_code == 303, done.text
        case = re.search(r'href="(/runs/1/cases/\d+)"', page)
        assert case
        assert made.say("resume", "1", *db).code == 4
        assert "by <bdi>Ada</bdi>" in read(server, case[1])
        page = read(server, "/agents")
        assert "Answers that held" in page
        assert "No worker has come yet" in page
