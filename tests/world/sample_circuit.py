"""A small circuit with every part that a run can meet, and crews for it."""

PAPER = """\
circuit: paper
start: write
ends: {done: healthy, dropped: unhealthy}
thresholds: {good: 3}
loops: {rework: 2, retry: {max: 1, per: step}}
steps:
  write:
    role: author
    timeout: 10s
    answer: {type: object, properties: {words: {type: integer}}, required: [words]}
  judge:
    role: critic
    timeout: 10s
    answer: {type: object, properties: {mark: {type: integer}}, required: [mark]}
  sign: {gate: true, answer: approval, timeout: 60s}
rules:
  - {id: written, at: write, to: judge, adds: {words: =words}}
  - {id: good, at: judge, when: mark >= good, to: sign}
  - {id: rework, at: judge, loop: rework, to: write}
  - {id: worn-out, at: judge, to: dropped}
  - {id: signed, at: sign, when: decision == "approve", to: done}
  - {id: unsigned, at: sign, to: dropped}
  - {id: silence, at: sign, on: timeout, to: dropped}
  - {id: again, at: ANY, on: [timeout, crash, unreadable], loop: retry, to: AGAIN}
otherwise: dropped
"""

GOOD_SCRIPT = """\
"*":
  write: {answer: {words: 5}}
  judge: {answer: {mark: 4}}
  sign: {answer: {decision: approve}}
"""

ONE_STEP = """\
circuit: one
start: work
ends: {done: healthy, failed: unhealthy}
steps:
  work: {role: worker, timeout: 10s}
rules:
  - {id: failed, at: work, when: has(failed), to: failed}
  - {id: worked, at: work, to: done}
otherwise: failed
"""

HOLDING = """\
circuit: holding
start: work
ends: {done: healthy}
steps:
  work: {role: worker, timeout: 10s}
  fix: {role: worker, timeout: 10s}
  ask: {gate: true, answer: approval, timeout: 60s}
rules:
  - {id: broken, at: work, when: has(broken), hold: repair, to: fix}
  - {id: worked, at: work, to: done}
  - {id: ask, at: fix, when: has(unsure), to: ask}
  - {id: fixed, at: fix, release: repair, to: work}
  - {id: asked, at: ask, to: done}
otherwise: done
"""
