"""An analysis by agents on other hosts: they find the repositories there, as they were tested."""

import json
from pathlib import Path

import pytest

from cluster_tests.test_worker import started
from interlock.journal.address import PostgresAddress
from rca_tests.worlds.rca_oracle import PLAIN
from rca_tests.worlds.red_repository import KEY, junit
from tests.world.command_line import World
from tests.world.git_repo import git
from tests.world.processes import hear

AGENT = """\
import json, os, re, sys
from pathlib import Path
prompt = sys.stdin.read()
step = os.environ["INTERLOCK_STEP"]
for place in re.findall("path: ([^;]+); commit", prompt):
    cart = Path(place) / "cart.py"
    with open("seen", "a") as seen:
        print(step, cart.read_text().strip(), oct(cart.stat().st_mode)[-3:], file=seen)
print(json.dumps(json.load(open("answers.json"))[step][0]))
"""


def test_agents_elsewhere_read_the_repositories_of_the_launch(
    tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    remote, app = tmp_path / "app.git", tmp_path / "app"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(tmp_path, "init", "-q", "-b", "main", str(app))
    (app / "cart.py").write_text("tested\n")
    git(app, "add", "-A")
    git(app, "commit", "-qm", "first")
    git(app, "push", "-q", str(remote), "main")
    world, host = World(tmp_path / "project"), World(tmp_path / "host")
    world.write("red.xml", junit(KEY))
    world.write("interlock.toml", f'[[repo]]\nname = "app"\npath = "../app"\nremote = "{remote}"\n')
    host.write("answers.json", json.dumps(PLAIN))
    host.write("agent.py", AGENT)
    roles = ("recall", "triage", "resolve", "investigate", "correlate", "report")
    words = [word for role in roles for word in ("--role", f"{role}=exec:python3 agent.py")]
    with started(host, "worker", *words) as worker:
        hear(worker, "is ready")
        said = world.say("analyze", "red.xml", "--agent", "worker")
        assert said.code == 4, said
    assert "F3_INVESTIGATE tested 444" in (host.folder / "seen").read_text().splitlines()
