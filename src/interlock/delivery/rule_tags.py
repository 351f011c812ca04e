"""The tags of delivery's rules: what taking a rule means to us beyond where the case goes.

`verdict` is `objects` or `accepts`, and `by` names the judge: what judges hold against the work is
shown to its author until they accept it. `waits` is `any` or `holder`: the case waits until any
other task is over, or the one that holds the reported file. `event` names the rule in logs.
"""

from collections.abc import Mapping
from typing import Final

from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError

VERDICT, BY, WAITS, EVENT = "verdict", "by", "waits", "event"
OBJECTS, ACCEPTS = "objects", "accepts"
ANY, HOLDER = "any", "holder"
_VALUES: Final = {VERDICT: (OBJECTS, ACCEPTS), WAITS: (ANY, HOLDER)}

_UNTAGGED: Final[Mapping[str, Mapping[str, str]]] = {
    "waits": {WAITS: ANY},
    "conflict": {WAITS: HOLDER},
    "violated": {VERDICT: OBJECTS, BY: "checks"},
    "nothing": {VERDICT: OBJECTS, BY: "checks"},
    "failing": {VERDICT: OBJECTS, BY: "checks"},
    "checked": {VERDICT: ACCEPTS, BY: "checks"},
    "rework-review": {VERDICT: OBJECTS, BY: "critic"},
    "reviewed": {VERDICT: ACCEPTS, BY: "critic"},
    "rework-audit": {VERDICT: OBJECTS, BY: "auditor"},
    "audited": {VERDICT: ACCEPTS, BY: "auditor"},
    "unmerged": {VERDICT: OBJECTS, BY: "merge"},
}
"""What rules meant before they had tags, by id: for circuits that were stored or copied then."""


def read_rule_tags(circuit: Circuit) -> Mapping[str, Mapping[str, str]]:
    """The tags of every rule, by its id. CircuitError if a value is not known."""
    tags = {rule.id: rule.tags for rule in circuit.rules}
    if not any(name in each for each in tags.values() for name in _VALUES):
        return _UNTAGGED
    for rule_id, each in tags.items():
        for name, values in _VALUES.items():
            if name in each and each[name] not in values:
                raise CircuitError(
                    f"rule {rule_id!r} has the tag {name}: {each[name]}; "
                    f"use one of {', '.join(values)}"
                )
        if VERDICT in each and not each.get(BY):
            raise CircuitError(f"rule {rule_id!r} has a verdict; say whose it is with by: …")
    return tags
