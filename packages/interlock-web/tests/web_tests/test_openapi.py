"""The API keeps to its own description, whatever is sent: schemathesis against a real server."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.world import triage
from tests.world.command_line import LIMIT, World
from tests.world.serving import served
from web_tests.test_api import asked
from web_tests.test_tokens import make_token

__all__ = ["asked"]


@pytest.mark.parametrize(
    "examples", [3, pytest.param(300, marks=pytest.mark.soak)], ids=["short", "long"]
)
def test_schemathesis_finds_nothing(asked: World, tmp_path: Path, examples: int) -> None:
    """With runs, cases and questions there, and a token that may do everything."""
    triage.done(asked)
    headers = make_token(asked, "fuzz", "read,answer,upload,work")
    with served(asked, "--rate", "0") as server:
        url = f"{server.url}/api/v1/openapi.json"
        assert httpx.get(url, headers=headers).json()["info"]["title"] == "Interlock"
        words = ["run", url, f"--max-examples={examples}", "--seed=1", "--phases=examples,fuzzing"]
        if examples > 3:
            words[-1] = "--phases=examples,coverage,fuzzing,stateful"
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("schemathesis")), *words, "--no-color"),
                *("-H", f"Authorization: {headers['Authorization']}"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=5 * LIMIT,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
