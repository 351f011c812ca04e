"""The names for packages that bring an application, an agent or a carrier.

They are declared as entry points: `interlock.applications` (a circuit's name, its `Application`),
`interlock.agents` (a word, a function that takes an `AgentSpec` and an `AgentContext` and returns a
`Carrier`) and `interlock.settings` (a table of interlock.toml, the record that it is read into).
"""

from interlock.carriers.contract import (
    Ask,
    Carrier,
    CarrierWrapper,
    Deliver,
    ExecutionContext,
    Reply,
    Session,
    Traits,
)
from interlock.carriers.function import (
    AsyncHandler,
    Dispatch,
    FunctionCarrier,
    Handler,
    build_answer,
)
from interlock.carriers.registry import AgentContext, AgentSpec
from interlock.engine.case import Case, Decision, RefusedAnswer, Signal, Usage
from interlock.engine.circuit import Circuit
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase, Run
from interlock.runtime.application import (
    Application,
    CaseHooks,
    DefaultHooks,
    QuestionGroup,
    RunSetup,
)
from interlock.runtime.case_overview import CaseOverview, Item, Passage
from interlock.runtime.settings import Settings
from interlock.system.clock import Clock

__all__ = [
    "AgentContext",
    "AgentSpec",
    "Application",
    "Ask",
    "AsyncHandler",
    "Carrier",
    "CarrierWrapper",
    "Case",
    "CaseHooks",
    "CaseOverview",
    "Circuit",
    "Clock",
    "Decision",
    "DefaultHooks",
    "Deliver",
    "Dispatch",
    "Effect",
    "ExecutionContext",
    "FunctionCarrier",
    "Handler",
    "Item",
    "NewCase",
    "Passage",
    "QuestionGroup",
    "RefusedAnswer",
    "Reply",
    "Run",
    "RunSetup",
    "Session",
    "Settings",
    "Signal",
    "Traits",
    "Usage",
    "build_answer",
]
