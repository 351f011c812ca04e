"""Circuits for tests: a sound one, ways to break it in one place, and what verify finds then."""

from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.verify import verify
from interlock.engine.verify.finding import Finding

FILE = "press.yaml"
SOUND = """\
circuit: press
version: 1
start: draft
ends: {published: healthy, rejected: healthy, abandoned: unhealthy}
thresholds: {passing: 0.8}
loops: {rework: 2, retries: {max: 2, per: step}}
max_steps: 60
roles: [author, critic, press]
steps:
  draft: {role: author, answer: text, timeout: 10m}
  review:
    role: critic
    judges: draft
    timeout: 10m
    answer:
      type: object
      properties:
        score: {type: number, minimum: 0, maximum: 1}
        verdict: {type: string, enum: [pass, fail]}
        remark: {type: string}
        doubts: {type: array, items: {type: string}}
        rank: {type: [integer, "null"]}
      required: [score, verdict, doubts, rank]
  approve: {gate: true, answer: approval, timeout: 7d}
  publish: {role: press, writes: true, timeout: 5m}
rules:
  - {id: drafted, at: draft, to: review, adds: {title: =text}}
  - {id: good, at: review, when: verdict == "pass" and score >= passing, to: approve}
  - {id: rework, at: review, when: score < passing or verdict != "pass", to: draft, loop: rework}
  - {id: hopeless, at: review, to: abandoned}
  - {id: approved, at: approve, when: decision == "approve", to: publish}
  - {id: revise, at: approve, when: decision == "revise", loop: rework, to: draft}
  - {id: refused, at: approve, to: rejected}
  - {id: expired, at: approve, on: timeout, to: rejected}
  - {id: live, at: publish, to: published}
  - {id: retry, at: ANY, on: [timeout, crash, unreadable], loop: retries, to: AGAIN}
  - {id: give-up, at: ANY, on: [timeout, crash, unreadable], to: abandoned}
"""
HOPELESS = "  - {id: hopeless, at: review, to: abandoned}\n"
OTHERWISE = "otherwise: {to: abandoned, why: nothing else applies}\n"


def changed(text: str, *changes: tuple[str, str]) -> str:
    """The text with each change made; a change that finds no place or two is a mistake here."""
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the circuit"
        text = text.replace(old, new)
    return text


def press(*changes: tuple[str, str], otherwise: bool = False) -> CircuitSource:
    return read_circuit(changed(SOUND, *changes) + (OTHERWISE if otherwise else ""), FILE)


def one_step(rules: str, fields: str, *, otherwise: str = "", more: str = "") -> CircuitSource:
    """A circuit of one step `ask` whose answer has these fields, and ends a, b and c."""
    return read_circuit(
        f"""\
circuit: single
start: ask
ends: [a, b, c]
{more}
steps:
  ask: {{role: agent, timeout: 1m, answer: {{type: object, {fields}}}}}
rules:
{rules}
  - {{id: lost, at: ask, on: [timeout, crash, unreadable], to: a}}
{otherwise}
""",
        "single.yaml",
    )


def serious(written: CircuitSource) -> list[Finding]:
    return [finding for finding in verify(written).findings if finding.level != "note"]


def summary(written: CircuitSource) -> set[tuple[str, str, str]]:
    return {(each.level, each.id, each.subject) for each in serious(written)}


def found(written: CircuitSource, finding_id: str) -> Finding:
    matching = [each for each in verify(written).findings if each.id == finding_id]
    assert matching, f"no {finding_id} in {verify(written).findings}"
    return matching[0]
