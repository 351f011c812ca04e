"""A case: its life as a timeline, and its replay with other thresholds."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar import Request, Response, get

from interlock.api.browse import find_case_id
from interlock.api.inspect import (
    CaseLife,
    ReplaySample,
    explain_passed,
    list_case_files,
    replay_some,
)
from interlock.api.records import DispatchRecord
from interlock.engine.circuit import FAILURES, Circuit
from interlock.system.errors import InterlockError, NotFoundError
from interlock.system.files import read_file
from interlock_web.case_overview import show_overview
from interlock_web.window import Window

_LONGEST_DIFF: Final = 400
_REPLAY_SECONDS: Final = 3.0
_SHOWN_TURNS: Final = 100
_LARGEST_FILE: Final = 20 << 20


class Turn(msgspec.Struct, frozen=True):
    """One dispatch as the timeline shows it."""

    dispatch: DispatchRecord
    answer: str
    diff: tuple[tuple[str, str], ...]
    """The difference from the answer before at the same step: kind and line."""
    passed: tuple[tuple[str, str], ...]
    """Rules passed over, each with the reason."""
    rule: str
    why: str
    guard: str
    notes: tuple[str, ...]
    tone: str


@get("/runs/{run_id:int}/cases/{case_no:int}", sync_to_thread=True)
def show_case(
    request: Request[Any, Any, Any], window: Window, run_id: int, case_no: int
) -> Response[str]:
    with window.project.read() as connection:
        case_id = find_case_id(connection, run_id, case_no)
        overview = show_overview(connection, run_id, case_no)
    life = window.project.explain(case_id, run_id)
    changes, problem = _read_thresholds(request.query_params, life.circuit)
    sample = None
    if changes and not problem:
        try:
            sample = _replay(window, run_id, changes)
        except InterlockError as error:
            problem = str(error)
    return window.render(
        "case.html",
        title=f"{case_id} in run {run_id}",
        path="/runs",
        life=life,
        overview=overview,
        files=list(list_case_files(window.project.db, run_id, case_no)),
        turns=build_turns(life),
        spent=_sum_usage(life.dispatches),
        thresholds=list(_list_thresholds(life.circuit, changes)),
        changes=changes,
        problem=problem,
        sample=sample,
        shown=_SHOWN_TURNS,
    )


@get("/runs/{run_id:int}/cases/{case_no:int}/files/{name:path}", sync_to_thread=True)
def send_file(window: Window, run_id: int, case_no: int, name: str) -> Response[bytes]:
    """Send a file that an agent left, always as plain text."""
    found = list_case_files(window.project.db, run_id, case_no).get(name.removeprefix("/"))
    raw = read_file(found, _LARGEST_FILE) if found else None
    if not isinstance(raw, bytes):
        raise NotFoundError(
            "there is no such file of this case, or it is too large to be shown: look below "
            ".interlock"
        )
    headers = {
        "content-security-policy": "default-src 'none'; sandbox",
        "cache-control": "no-store",
    }
    return Response(raw, media_type="text/plain; charset=utf-8", headers=headers)


def build_turns(life: CaseLife) -> list[Turn]:
    """Return the dispatches of a case, each compared with the one before at its step."""
    found: list[Turn] = []
    before: dict[str, str] = {}
    for dispatch in life.dispatches:
        answer = "" if dispatch.decision is None else _format_answer(dispatch.answer)
        old = before.get(dispatch.step)
        diff = () if old is None or not answer else tuple(_compare(old, answer))
        found.append(_build_turn(life, dispatch, answer, diff))
        if answer and dispatch.decision and dispatch.decision.signal not in FAILURES:
            before[dispatch.step] = answer
    return found


def _build_turn(
    life: CaseLife, dispatch: DispatchRecord, answer: str, diff: tuple[tuple[str, str], ...]
) -> Turn:
    decision, circuit = dispatch.decision, life.circuit
    rule = None
    if decision is not None:
        rule = circuit.find_rule(decision.rule) or (
            circuit.otherwise if decision.rule == "otherwise" else None
        )
    passed = decision.passed if decision else ()
    return Turn(
        dispatch=dispatch,
        answer=answer,
        diff=diff,
        passed=tuple((each.rule, explain_passed(circuit, each.rule, each.why)) for each in passed),
        rule=decision.rule if decision else "",
        why=rule.why if rule else "",
        guard=rule.guard.text if rule and rule.guard else "",
        notes=tuple(life.notes.get(dispatch.dispatch_id, ())),
        tone=_find_tone(dispatch, circuit),
    )


def _find_tone(dispatch: DispatchRecord, circuit: Circuit) -> str:
    decision = dispatch.decision
    if decision is None:
        return "wait" if dispatch.role == "human" else "active"
    if decision.status == "stuck" or decision.signal in FAILURES:
        return "bad"
    if decision.status == "ended":
        return "good" if circuit.ends.get(decision.to) else "bad"
    return "quiet"


def _format_answer(answer: Any) -> str:
    """Write an answer for people: texts as they are, everything else as JSON."""
    if isinstance(answer, dict) and len(answer) == 1 and isinstance(answer.get("text"), str):
        return str(answer["text"])
    return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()


def _compare(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that differ, with two lines around them."""
    if old == new:
        yield "hunk", "the same answer as before"
        return
    lines = difflib.unified_diff(
        _split(old)[:_LONGEST_DIFF], _split(new)[:_LONGEST_DIFF], n=2, lineterm=""
    )
    for number, line in enumerate(lines):
        if number < 2:
            continue  # the names of files
        kind = {"+": "add", "-": "cut", "@": "hunk"}.get(line[:1], "same")
        yield kind, line


def _split(text: str) -> list[str]:
    """Return the lines of a text, also of texts inside JSON."""
    return text.replace("\\n", "\n").splitlines()


def _sum_usage(dispatches: Sequence[DispatchRecord]) -> Mapping[str, float]:
    pauses = [pause.usage for each in dispatches for pause in each.pauses]
    used = [*(each.usage for each in dispatches), *pauses]
    return {
        "tokens": sum(each.tokens for each in used),
        "money": sum(each.money for each in used),
    }


class Threshold(msgspec.Struct, frozen=True):
    """A threshold as a slider shows it."""

    name: str
    usual: Any
    value: Any
    kind: str
    """`number`, `flag` or `text`."""
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01


def _list_thresholds(circuit: Circuit, changes: Mapping[str, Any]) -> Iterator[Threshold]:
    for name, usual in circuit.thresholds.items():
        value = changes.get(name, usual)
        if isinstance(usual, bool):
            yield Threshold(name, usual, value, "flag")
        elif isinstance(usual, int | float):
            whole = isinstance(usual, int)
            high = 1.0 if not whole and 0 <= usual <= 1 else float(max(10, usual * 3))
            low = min(0.0, float(usual) * 3)
            yield Threshold(name, usual, value, "number", low, high, 1 if whole else 0.01)
        else:
            yield Threshold(name, usual, value, "text")


def _read_thresholds(given: Any, circuit: Circuit) -> tuple[dict[str, Any], str]:
    """Return the thresholds that an address changes, and the problem of one that is malformed."""
    changes: dict[str, Any] = {}
    for name, usual in circuit.thresholds.items():
        text = given.get(f"set.{name}")
        if text is None or text == "":
            continue
        value: Any = text
        if isinstance(usual, bool):
            value = text == "true"
        elif isinstance(usual, int | float):
            try:
                value = int(text) if isinstance(usual, int) else float(text)
            except ValueError:
                return {}, f"{name} takes a number, not {text[:80]!r}"
        if value != usual:
            changes[name] = value
    return changes, ""


def _replay(window: Window, run_id: int, changes: Mapping[str, Any]) -> ReplaySample:
    with window.project.read() as connection:
        return replay_some(connection, run_id, changes, seconds=_REPLAY_SECONDS)
