"""Nothing of this shell's settings reaches the worlds of these tests."""

import pytest


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INTERLOCK_DB", "INTERLOCK_PARALLEL"):
        monkeypatch.delenv(name, raising=False)
