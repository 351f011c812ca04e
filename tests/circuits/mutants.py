"""Ways to break a circuit in one place: each yields what was done and the text of the result.

Works on the plain value of a circuit file, so it breaks any circuit, rule by rule.
"""

import ast
import json
from collections.abc import Iterator
from typing import Any

from interlock.engine.circuit import FAILURES

Value = dict[str, Any]
Rule = dict[str, Any]
Mutant = tuple[str, str]
Alteration = tuple[str, str, Any]
"""What is done, to which field of the rule, and what stands there then."""

_OTHER_WAY: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}


def rule_mutants(value: Value) -> Iterator[Mutant]:
    """Every rule removed and altered, one thing at a time; the otherwise rule too."""
    for index, rule in enumerate(value["rules"]):
        name = rule.get("id", f"rule-{index + 1}")
        yield f"{name}: removed", _without(value, "rules", index)
        for what, field, new in _alterations(value, rule):
            yield f"{name}: {what}", _with(value, new, "rules", index, field)
        for field in ("adds", "loop", "detour", "hold", "release"):
            if rule.get(field) and ("to" in rule or field != "adds"):
                yield f"{name}: without its {field}", _without(value, "rules", index, field)
    yield from _otherwise_mutants(value)


def limit_mutants(value: Value) -> Iterator[Mutant]:
    """Every threshold and every loop's limit, a little higher and a little lower."""
    for name, usual in value.get("thresholds", {}).items():
        for other in _near(usual):
            what = f"threshold {name}: {usual} -> {other}"
            yield what, _with(value, other, "thresholds", name)
    for name, given in value.get("loops", {}).items():
        loop: Value = dict(given) if isinstance(given, dict) else {"max": given, "per": "case"}
        loop["max"] = value.get("thresholds", {}).get(loop["max"], loop["max"])
        others = [loop | {"max": each} for each in _near(loop["max"]) if each >= 0]
        others.append(loop | {"per": "case" if loop.get("per") == "step" else "step"})
        for other in others:
            yield f"loop {name}: {loop} -> {other}", _with(value, other, "loops", name)


def _alterations(value: Value, rule: Rule) -> Iterator[Alteration]:
    yield from _targets(value, rule)
    yield from _guards(rule)
    yield from _signals(rule)
    yield from _places(value, rule)
    for loop in value.get("loops", {}):
        if rule.get("loop") and loop != rule["loop"]:
            yield f"loop {loop} instead of {rule['loop']}", "loop", loop
    for name, given in rule.get("adds", {}).items():
        changed = {**rule["adds"], name: "something else"}
        yield f"adds another {name} than {given!r}", "adds", changed


def _targets(value: Value, rule: Rule) -> Iterator[Alteration]:
    for target in [*value["steps"], *value["ends"], "AGAIN"]:
        if target != rule.get("to") and (target, rule["at"]) != ("AGAIN", rule.get("to")):
            yield f"to {target} instead of {rule.get('to')}", "to", target


def _guards(rule: Rule) -> Iterator[Alteration]:
    guard = rule.get("when")
    if guard is None:
        return
    yield "without its guard", "when", None
    yield "with its guard negated", "when", f"not ({guard})"
    for shifted in _shifted(str(guard)):
        yield f"when {shifted}", "when", shifted


def _shifted(guard: str) -> Iterator[str]:
    """Each comparison turned: >= to >, == to !=, and so on."""
    comparisons = [node for node in ast.walk(ast.parse(guard)) if isinstance(node, ast.Compare)]
    for number in range(len(comparisons)):
        tree = ast.parse(guard, mode="eval")
        node = [each for each in ast.walk(tree) if isinstance(each, ast.Compare)][number]
        node.ops = [_OTHER_WAY[type(op)] for op in node.ops]
        yield ast.unparse(tree)


def _signals(rule: Rule) -> Iterator[Alteration]:
    given = rule.get("on", "artifact")
    names = [given] if isinstance(given, str) else given
    for name in names:
        others = [each for each in names if each != name]
        if others:
            yield f"no longer on {name}", "on", others
        for other in ("artifact", *FAILURES[:3]):
            if other not in names:
                yield f"on {other} instead of {name}", "on", [*others, other]


def _places(value: Value, rule: Rule) -> Iterator[Alteration]:
    given = rule["at"]
    places = [given] if isinstance(given, str) else given
    for step in value["steps"]:
        if [step] != places:
            yield f"at {step} instead of {given}", "at", step


def _otherwise_mutants(value: Value) -> Iterator[Mutant]:
    otherwise = value.get("otherwise")
    if otherwise is None:
        return
    yield "otherwise: removed", _without(value, "otherwise")
    target = otherwise if isinstance(otherwise, str) else otherwise["to"]
    for other in [*value["steps"], *value["ends"]]:
        if other != target:
            yield f"otherwise: to {other}", _with(value, other, "otherwise")


def _near(usual: Any) -> list[Any]:
    if isinstance(usual, bool):
        return [not usual]
    if isinstance(usual, int):
        return [usual + 1, usual - 1]
    if isinstance(usual, float):
        return [round(usual + 0.01, 6), round(usual - 0.01, 6)]
    return [f"not {usual}"]


def _with(value: Value, new: Any, *path: str | int) -> str:
    """The circuit with that in that place, as JSON, which is YAML."""
    changed = json.loads(json.dumps(value))
    _inside(changed, path)[path[-1]] = new
    return json.dumps(changed)


def _without(value: Value, *path: str | int) -> str:
    changed = json.loads(json.dumps(value))
    del _inside(changed, path)[path[-1]]
    return json.dumps(changed)


def _inside(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path[:-1]:
        value = value[part]
    return value
