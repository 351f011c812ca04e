"""Pictures: the whole text of a small one, and nothing that could break out of a label."""

from interlock.engine.circuit_file import read_circuit
from interlock.engine.draw import draw, draw_text, escape_mermaid
from tests.world.circuits import press

SMALL = """\
circuit: small
start: write
ends: {done: healthy, lost: unhealthy}
thresholds: {limit: 2}
loops: {again: 1}
steps:
  write: {role: author, timeout: 1m, signals: [artifact, ask]}
  help: {role: critic, judges: write}
  check: {gate: true, timeout: 1h}
  send: {role: press, writes: true, timeout: 5s}
rules:
  - {id: note, at: write, adds: {seen: 1}}
  - {id: more, at: write, when: 'x > limit and y == "z"', to: AGAIN, loop: again, why: try again}
  - {id: ask, at: write, on: ask, to: help, detour: true}
  - {id: on, at: write, to: check}
  - {id: back, at: help, to: BACK}
  - {id: ok, at: check, to: send}
  - {id: sent, at: send, to: done}
  - {id: fail, at: ANY, on: [timeout, crash], to: lost}
otherwise: lost
"""
CHART = """\
flowchart TD
    start(( )) --> n0
    n0["write<br/>author"]
    n1["help<br/>critic"]
    n2{{"check<br/>human"}}:::gate
    n3[["send<br/>press"]]:::writes
    n4(["done"]):::healthy
    n5(["lost"]):::unhealthy
    n0 -.->|"note (adds seen)"| n0
    n0 -->|"more: x #gt; limit and y == #quot;z#quot; (loop again)"| n0
    n0 -.->|"ask on ask"| n1
    n0 -->|"on"| n2
    n1 -.->|"back"| h0
    n2 -->|"ok"| n3
    n3 -->|"sent"| n4
    h1 -->|"fail on timeout, crash"| n5
    h2 -.->|"otherwise"| n5
    h0["back from the detour"]:::helper
    h1["any step"]:::helper
    h2["no other rule"]:::helper
"""
TABLE = """\
small, version 1, at most 100 dispatches
ends: done, lost (unhealthy)
thresholds: limit = 2
loops: again x 1

* write: author, timeout 60 s
    artifact                               adds      [note] (adds seen = 1)
    artifact  when x > limit and y == "z"  -> AGAIN  [more] (loop again)  # try again
    ask                                    -> help   [ask] (detour)
    artifact                               -> check  [on]

  help: critic, judges write, no timeout
    artifact    -> BACK  [back]

  check: human, gate, timeout 3600 s
    artifact    -> send  [ok]

  send: press, writes, timeout 5 s
    artifact    -> done  [sent]

at any step
    timeout, crash    -> lost  [fail]

otherwise -> lost
"""


def test_chart() -> None:
    assert draw(read_circuit(SMALL).circuit).startswith(CHART)


def test_table() -> None:
    assert draw_text(read_circuit(SMALL).circuit) == TABLE


def test_every_rule_and_place_is_in_both_pictures() -> None:
    circuit = press(otherwise=True).circuit
    for picture in (draw(circuit), draw_text(circuit)):
        for name in (*circuit.steps, *circuit.ends, *(rule.id for rule in circuit.rules)):
            assert name in picture


def test_labels_cannot_break_out() -> None:
    assert escape_mermaid('a"b<c>d&e#f\n\tg') == "a#quot;b#lt;c#gt;d#amp;e#35;f g"


def test_a_broken_circuit_is_drawn_as_it_stands() -> None:
    text = SMALL.replace("to: send", "to: sand").replace("start: write", "start: wrote")
    chart = draw(read_circuit(text).circuit)
    assert '["sand?"]:::helper' in chart
    assert '["wrote?"]:::helper' in chart
