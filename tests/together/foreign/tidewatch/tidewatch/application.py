"""Watches tides: measures by itself, asks somebody how dangerous it is, keeps a log."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock.api.extend import (
    AgentContext,
    AgentSpec,
    Application,
    Ask,
    Carrier,
    Case,
    Decision,
    DefaultHooks,
    Dispatch,
    Effect,
    FunctionCarrier,
    Handler,
    RefusedAnswer,
    Reply,
    RunSetup,
    Settings,
    Signal,
    build_answer,
)


class Harbour(msgspec.Struct, frozen=True):
    name: str = "Brest"
    offset: float = 0.0


class HarbourTables(msgspec.Struct, frozen=True):
    """The tables of interlock.toml that are ours."""

    harbour: Harbour = Harbour()


class TideHooks(DefaultHooks):
    def __init__(self, harbour: Harbour) -> None:
        self._harbour = harbour

    def prompt_values(self, case_no: int, case: Case, context: Any) -> Mapping[str, Any]:
        return {"harbour": msgspec.to_builtins(self._harbour)}

    def check_answer(self, case_no: int, case: Case, signal: Signal) -> Signal | RefusedAnswer:
        if case.step == "judge" and not 0 <= signal.data["danger"] <= 1:
            return RefusedAnswer("Range", "Danger is from 0 to 1.")
        return signal

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        def write(connection: Any, at: float) -> None:
            line = f"{case.case_id} {case.step} {decision.to}"
            connection.execute("insert into tide_log (line) values (?)", (line,))

        return [write]


class Tidewatch(Application):
    own_roles = ("gauge",)
    prompt_names = ("harbour",)

    def default_config(self, settings: Settings, project: Any) -> dict[str, Any]:
        return {"harbour": msgspec.to_builtins(settings.read_tables(HarbourTables).harbour)}

    def set_up_run(
        self, connection: Any, run: Any, circuit: Any, carriers: Any, config: Any, **more: Any
    ) -> RunSetup:
        harbour = msgspec.convert(config["harbour"], Harbour)

        def measure(ask: Ask) -> Reply:
            assert ask.case is not None
            return build_answer(ask, {"height": ask.case.input["level"] + harbour.offset})

        gauge = Handler(measure)
        return RunSetup(
            circuit, {**carriers, "gauge": gauge}, TideHooks(harbour), unplaced=["gauge"]
        )

    def report(self, connection: Any, run: Any) -> str:
        lines = connection.raw.execute("select line from tide_log order by line_id")
        return "\n".join(["# Tides", "", *(f"- {line}" for (line,) in lines), ""])


def build_oracle(spec: AgentSpec, context: AgentContext) -> Carrier:
    """`oracle:2.5`: whatever stands higher than that is dangerous."""
    limit = float(spec.rest or 3)

    def judge(dispatch: Dispatch) -> dict[str, float]:
        height = float(dispatch.prompt.split(" stands at ")[1].split(" m")[0])
        if dispatch.attempt == 1 and dispatch.case_id == "odd":
            return {"danger": 7}
        return {"danger": 0.9 if height > limit else 0.1}

    return FunctionCarrier(judge)
