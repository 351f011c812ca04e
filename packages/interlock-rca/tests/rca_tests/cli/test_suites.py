"""The report on disk: whole, and open to whom the user's umask lets in."""

import os
from pathlib import Path

import pytest

from interlock_rca.analyze import write_report
from rca_tests.worlds.findings import example


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_report_is_for_those_the_umask_lets_in(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        files = write_report(example(), tmp_path / "out")
    finally:
        os.umask(before)
    page, drafts = files[0], files[-1]
    assert page.stat().st_mode & 0o777 == mode
    assert {draft.stat().st_mode & 0o777 for draft in drafts.iterdir()} == {mode}
