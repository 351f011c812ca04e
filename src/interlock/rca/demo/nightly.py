"""The nightly job of the small world: clones side by side, and the job's own script run on them.

Knows how the job is started; what it does is in the world's repositories.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from interlock.system.errors import SourceError
from interlock.system.repository import check_out, plain_environment

_PATIENCE = 120.0


def run_nightly(
    repos: Path, revisions: Mapping[str, str], workspace: Path, results: Path, *, began: str
) -> bool:
    """Run the tests at these revisions; the build's number is the name of the results' folder.

    Returns whether all was green.
    """
    for name, revision in revisions.items():
        check_out(repos / name, revision, workspace / name)
    return run_job(workspace, results, began=began)


def run_job(workspace: Path, results: Path, *, began: str) -> bool:
    """Run the job in a workspace that is ready, as it is."""
    script = workspace / "shop-deploy" / "ci" / "nightly.py"
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, script, workspace, results, "--build", results.name, "--began", began],
            cwd=workspace,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"the tests in {workspace} did not end in {_PATIENCE:.0f} s") from None
    if done.returncode not in (0, 1) or not any(results.glob("TEST-*.xml")):
        said = done.stdout.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"see {results / 'logs' / 'console.log'}"
        raise SourceError(f"the tests in {workspace} could not be run: {why}")
    return done.returncode == 0
