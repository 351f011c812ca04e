"""A project of a user's own: one circuit, four cases and a crew whose every answer is known, so
that what the verbs say about the run can be worked out by hand.

A is sure at once; B on the second look; C never; D's agent crashes.
"""

from tests.world.command_line import CliResult, World

CIRCUIT = """\
circuit: triage
version: 3
start: look
ends: {kept: healthy, dropped: unhealthy}
thresholds: {sure: 0.7, patience: short}
loops: {more: 1}
max_steps: 10
steps:
  look:
    role: scout
    timeout: 1m
    prompt: Look at {{ case.topic }}.
    answer:
      type: object
      properties: {confidence: {type: number, minimum: 0, maximum: 1}}
      required: [confidence]
rules:
  - {id: sure, at: look, when: confidence >= sure, to: kept, why: Sure enough.}
  - id: look-again
    at: look
    loop: more
    to: AGAIN
    adds: {before: =confidence}
    why: One more look.
  - {id: unsure, at: look, to: dropped, why: Two looks were not enough.}
  - {id: failed, at: look, on: [timeout, crash, unreadable], to: dropped, why: No answer.}
"""
SCRIPT = """\
A: {look: {answer: {confidence: 0.9}, usage: {tokens: 10, money: 0.5}}}
B: {look: [{answer: {confidence: 0.6}}, {answer: {confidence: 0.8}, twice: true}]}
C: {look: [{answer: {confidence: 0.5}}, {answer: {confidence: 0.6}}]}
D: {look: {crash: exit code 1}}
"""
RUN = ("run", "triage", "--cases", "cases.jsonl", "--agent", "script:scout.yaml")


def lay_out(world: World) -> World:
    """The project's files; nothing has run yet."""
    world.write("circuits/triage.yaml", CIRCUIT)
    world.write("scout.yaml", SCRIPT)
    world.cases("A", "B", "C", "D")
    return world


def done(world: World) -> CliResult:
    """The whole run, one case after the other."""
    return lay_out(world).say(*RUN, "--parallel", "1")
