"""Why a case stands where it stands, as status says it."""

from tests.world import triage
from tests.world.command_line import World

STUCK = "max_steps: 1 dispatches are spent"


def test_a_case_that_comes_after_one_that_did_not_end_well(world: World) -> None:
    triage.lay_out(world)
    world.write(
        "cases.jsonl",
        '{"id": "D", "topic": "x"}\n{"id": "B", "topic": "x", "after": ["D"]}\n'
        '{"id": "A", "topic": "x", "after": ["B"]}\n',
    )
    result = world.say(*triage.RUN)
    assert (result.code, result.out.splitlines()[0]) == (
        3,
        "run 1: unhealthy; 2 open, 1 dropped; 1 dispatch",
    )
    assert _cases(world) == [
        "D     dropped  look  No answer. (crash: exit code 1)",
        "B     open     look  comes after D, which did not end well (dropped)",
        "A     open     look  comes after B",
    ]


def test_a_case_that_waits_for_a_place(world: World) -> None:
    triage.lay_out(world)
    world.say(*triage.RUN, "--parallel", "1", "--budget", "dispatches=0")
    assert _cases(world) == [f"{name}     open    look  waits for its turn" for name in "ABCD"]


def test_a_case_that_is_stuck_says_so_itself(world: World) -> None:
    world.write("circuits/triage.yaml", triage.CIRCUIT.replace("max_steps: 10", "max_steps: 1"))
    world.write("scout.yaml", triage.SCRIPT)
    world.cases("C")
    result = world.say(*triage.RUN)
    assert (result.code, result.out.splitlines()[0]) == (3, "run 1: unhealthy; 1 stuck; 1 dispatch")
    assert _cases(world) == [f"C     stuck   look  {STUCK}"]
    assert world.say("explain", "C").out.splitlines()[-1] == f"stuck at look ({STUCK})"


def _cases(world: World) -> list[str]:
    lines = world.say("status").out.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("CASE"))
    return [line for line in lines[head + 1 :] if not line.startswith(("'", "the "))]
