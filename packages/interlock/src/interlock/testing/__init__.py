"""For authors of circuits, applications and carriers: what they test their own things with.

    from interlock.testing import Script, assert_sound, run_cases

    def test_a_good_note_is_sent():
        assert_sound("circuits/note.yaml")
        script = Script({"author": "Rain.", "critic": [{"score": 0.4}, {"score": 0.9}],
                         "human": {"decision": "approve"}, "mailer": {}})
        trial = run_cases("circuits/note.yaml", [{"id": "C1", "topic": "rain"}], script)
        assert trial.ends == {"C1": "sent"}, trial

`CarrierContract` is the suite that every carrier passes. `lint` reads prompts, `transcript`
recorded sessions; `responder` is the agent's side of the file protocol, and `conform` tries a
watcher against it. Names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.testing.contracts import CarrierBench, CarrierContract, make_ask
    from interlock.testing.kit import (
        Delay,
        FakeClock,
        ManualClock,
        RateLimit,
        Script,
        Silence,
        Trial,
        assert_sound,
        make_project,
        run_cases,
    )

__all__ = [
    "CarrierBench",
    "CarrierContract",
    "Delay",
    "FakeClock",
    "ManualClock",
    "RateLimit",
    "Script",
    "Silence",
    "Trial",
    "assert_sound",
    "make_ask",
    "make_project",
    "run_cases",
]
_CONTRACTS = ("CarrierBench", "CarrierContract", "make_ask")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "contracts" if name in _CONTRACTS else "kit"
    found = getattr(import_module(f"{__name__}.{place}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
