"""Test that nothing a session prints can break its checkpoint."""

import tempfile
import time
from pathlib import Path

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.api.circuits import Circuit
from interlock.carriers.contract import Ask
from interlock.engine.case import Case
from interlock.signals.lines import LineReader
from interlock_epic.checkpoints.place import StateFolder
from interlock_epic.checkpoints.store import Checkpoints
from interlock_epic.config import EpicConfig
from interlock_epic.epic_file import EpicStory
from interlock_epic.progress import CheckpointUpdater
from interlock_epic.sessions.record import SessionAttempt, SessionRecord
from interlock_epic.status import EFFECTS
from interlock_epic.steps import EpicSteps, SignalLog

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TYPES = (*EFFECTS, "CHECKPOINT")
VALUES = st.one_of(
    st.sampled_from(
        ("epic-3", "3-1", "success", "continue", "42", "#7", COMMIT, "{story_id}", "<x>", "../x")
    ),
    st.sampled_from((".sage/state/epic-3.json", "/etc/epic-3.json", "X: y", "NO_CHECKPOINT:x")),
    st.text(st.characters(exclude_characters="\n\r"), max_size=20),
)


def single(kind: str, values: list[str]) -> str:
    return f"SAGE_SIGNAL:{kind}:{':'.join(values)}"


SHAPE = Circuit.load("epic").source.circuit.steps["SESSION"].shape
SIGNALS = st.one_of(
    st.builds(single, st.sampled_from(TYPES), st.lists(VALUES, max_size=5)),
    VALUES,
)


def record_of(folder: Path, result: list[str]) -> SessionAttempt:
    """Return the attempt of a session that printed these lines."""
    record = SessionRecord(folder / "session.jsonl", "epic-3")
    reader = LineReader("raw")
    for found in [*reader.feed("\n".join(result) + "\n"), *reader.close(ended_by_itself=True)]:
        record.add(found, "stream", 1.0)
    record.close()
    signal = record.deciding_signal
    return SessionAttempt(
        ended_by=signal.type.replace(":", "_") if signal else "NOTHING",
        signal=signal,
        signals=tuple(record.signals),
        before="none",
        message=signal.payload if signal else "it ended",
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(SIGNALS, max_size=4), st.booleans())
@example(["SAGE_SIGNAL:FATAL_ERROR:{code}"], True)
def test_no_signal_breaks_the_keeping_of_the_checkpoint(result: list[str], has_one: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, notes = Path(name), list[str]()
        checkpoints = Checkpoints(StateFolder(root=folder))
        config = EpicConfig(
            epic_id="epic-3", root=name, db=name, fresh=True, stories=(EpicStory(id="3-1"),)
        )
        signals = SignalLog(folder / "signals.jsonl", notes.append, time.time)
        driver = EpicSteps(checkpoints, config, signals, time.time, lambda: 1)
        case = Case("epic-3", "SESSION")
        if has_one:
            assert driver.resume(Case("epic-3", "RESUME", visits={"RESUME": 1}))["ready"]
        updater = CheckpointUpdater(checkpoints, "epic-3", time.time, notes.append)
        ask = Ask(1, 1, "epic-3", "SESSION", 1, "session", "go on", 1, 0.0, case)

        answer = updater.apply(ask, record_of(folder, result))

        assert SHAPE is not None
        assert SHAPE.find_problem(msgspec.json.decode(msgspec.json.encode(answer))) is None
        context = {"outcome": "FATAL", "code": answer["error_code"], "reason": answer["message"]}
        assert driver.close(Case("epic-3", "CLOSE", context=context)) == {"outcome": "FATAL"}
