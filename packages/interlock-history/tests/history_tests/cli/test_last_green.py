"""`--last-green auto`: each failing test is compared with its own last pass."""

import subprocess

import pytest

from tests.world.command_line import World

LINE = '<testcase classname="shop.test_cart" name="{}" file="tests/test_cart.py">{}</testcase>'
BROKEN = (
    '<failure message="AssertionError: assert 3 == 4" type="AssertionError">'
    'File "shop/cart.py", line 2, in total</failure>'
)
FLAKY = '<flakyFailure message="late"/>'


class Shop:
    """A repository whose every commit is tested, and the results remembered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.git("init", "-q", "-b", "main")
        self.commits: list[str] = []

    def git(self, *words: str) -> str:
        command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *words]
        done = subprocess.run(
            command, cwd=self.world.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def change(self, path: str, text: str, subject: str, **results: str) -> None:
        """A commit, and what its run says about each test."""
        self.world.write(path, text)
        self.git("add", path)
        self.git("commit", "-qm", subject)
        self.commits.append(self.git("rev-parse", "HEAD"))
        cases = "".join(LINE.format(name, inside) for name, inside in results.items())
        self.world.write("out/r.xml", f'<testsuite name="pytest">{cases}</testsuite>')
        number = len(self.commits)
        said = self.world.say(
            "ingest", "out/r.xml", "--run", str(number), "--at", f"2026-10-{number:02d}"
        )
        assert said.code == 0, said.err


@pytest.fixture
def shop(world: World, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "INTERLOCK_STORE", "JENKINS_URL", "CIRCLECI"):
        monkeypatch.delenv(name, raising=False)
    shop = Shop(world)
    shop.change("shop/cart.py", "def total():\n    return 4\n", "Add a cart", adds="", waits="")
    shop.change("shop/tax.py", "RATE = 2\n", "Add taxes", adds="", waits=FLAKY)
    shop.change("shop/cart.py", "def total():\n    return 3\n", "Round", adds=BROKEN, waits="")
    shop.change("docs.md", "Prices\n", "Write down prices", adds=BROKEN, waits="")
    shop.change("shop/tax.py", "RATE = 3\n", "Raise taxes", adds=BROKEN, waits=BROKEN)
    return shop


def test_each_test_is_compared_with_its_own_last_pass(shop: Shop) -> None:
    world = shop.world
    second, third = shop.commits[1], shop.commits[2]
    said = world.say("last-green")
    assert said.out.splitlines() == [
        "shop.test_cart::adds",
        f"  it passed on {second[:12]} and failed 3 times from {third[:12]} on (high confidence)",
        f"  {second[:12]}..{third[:12]}",
        f"    {third[:12]} Round",
        "shop.test_cart::waits",
        "  no commit is accused: it passed and failed on the same source, " + second[:12],
    ]
    fields = world.say("last-green", "shop.test_cart::adds", "--json").json
    assert fields["tests"][0]["steps"] == [[third, "Round"]]
    words = ("--repo", "shop=.", "--last-green", "auto", "--review", "auto", "--each")
    said = world.say("analyze", "out", *words, "--json")
    assert (
        "of 2 failing tests, 1 compared with the last pass of the same test, 1 unsteady" in said.err
    )
    cases = {case["test_name"]: case for case in said.json["findings"]["cases"]}
    adds, waits = cases["adds"], cases["waits"]
    assert adds["suspects"][0]["commit"] == third
    why = "the only commit between its last pass and its first failure"
    assert why in adds["suspects"][0]["why"]
    assert f"History: it passed on {second[:12]}" in adds["message"]
    assert waits["suspects"] == []
    assert "History: no commit is accused: it passed and failed" in waits["message"]


def test_a_family_takes_the_range_of_its_steady_tests(shop: Shop) -> None:
    said = shop.world.say("analyze", "out", "--repo", "shop=.", "--last-green", "auto", "--json")
    cases = said.json["findings"]["cases"]
    assert len({case["rca_id"] for case in cases}) == 1
    assert {each["commit"] for case in cases for each in case["suspects"]} == {shop.commits[2]}


def test_without_a_memory_it_is_said(shop: Shop) -> None:
    words = ("--repo", "shop=.", "--last-green", "auto", "--store", "lost")
    said = shop.world.say("analyze", "out", *words)
    assert "of 2 failing tests, 0 compared with the last pass of the same test" in said.err
    assert "2 without any" in said.err


def test_results_of_an_older_commit_are_recognised(shop: Shop) -> None:
    world = shop.world
    report = (world.folder / "out" / "r.xml").read_text()
    shop.change("shop/cart.py", "def total():\n    return 4\n", "Mend it", adds="", waits="")
    world.write("out/r.xml", report)
    words = ("--repo", "shop=.", "--last-green", "auto", "--review", "auto", "--each")
    result = world.say("analyze", "out", *words, "--json")
    assert f"taken for results of {shop.commits[4][:12]}, where these tests fail" in result.err
    cases = {case["test_name"]: case for case in result.json["findings"]["cases"]}
    assert cases["adds"]["suspects"][0]["commit"] == shop.commits[2]
