"""Interlock: a deterministic, durable coordinator for AI agents.

Agents do the thinking; Interlock reads their signals, decides the route by the rules of a circuit,
and never loses its place. A program begins with a project:

    import interlock

    def judge(dispatch: interlock.Dispatch) -> dict:
        return {"score": 0.9}

    with interlock.Project(".") as project:
        run = project.start("note", [{"id": "C1", "topic": "rain"}], agents={"critic": judge})
        for event in run.events():
            print(event)

Every name is loaded when it is first used: importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from interlock.version import __version__ as __version__

if TYPE_CHECKING:
    from interlock import testing
    from interlock.api.circuits import Circuit
    from interlock.api.inbox import Question, SavedAnswer
    from interlock.api.inspect import CaseLife
    from interlock.api.project import Project
    from interlock.api.run import Event, Run
    from interlock.api.work import RunResult
    from interlock.carriers.contract import Reply
    from interlock.carriers.function import Dispatch
    from interlock.carriers.models.carrier import Model
    from interlock.engine.case import Usage
    from interlock.engine.verify.finding import Finding
    from interlock.journal.history import CaseSummary as Case
    from interlock.runtime.application import Application
    from interlock.system.errors import InterlockError

__all__ = [
    "Application",
    "Case",
    "CaseLife",
    "Circuit",
    "Dispatch",
    "Event",
    "Finding",
    "InterlockError",
    "Model",
    "Project",
    "Question",
    "Reply",
    "Run",
    "RunResult",
    "SavedAnswer",
    "Usage",
    "testing",
]

_PLACES = {
    "Application": "interlock.runtime.application",
    "Case": "interlock.journal.history:CaseSummary",
    "CaseLife": "interlock.api.inspect",
    "Circuit": "interlock.api.circuits",
    "Dispatch": "interlock.carriers.function",
    "Event": "interlock.api.run",
    "Finding": "interlock.engine.verify.finding",
    "InterlockError": "interlock.system.errors",
    "Model": "interlock.carriers.models.carrier",
    "Project": "interlock.api.project",
    "Question": "interlock.api.inbox",
    "Reply": "interlock.carriers.contract",
    "Run": "interlock.api.run",
    "RunResult": "interlock.api.work",
    "SavedAnswer": "interlock.api.inbox",
    "Usage": "interlock.engine.case",
}


def __getattr__(name: str) -> Any:
    if name == "testing":
        return import_module("interlock.testing")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    found = getattr(import_module(module), attribute or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
