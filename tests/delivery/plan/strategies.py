"""Plans that nobody would write, for laws that must hold for all of them."""

import string

import msgspec
from hypothesis import strategies as st

from interlock.delivery.checks.records import Check, Environment
from interlock.delivery.plan.fields import means_nothing
from interlock.delivery.plan.plan import Phase, Plan, Task

_SIGNS = string.ascii_letters + string.digits + " .,:;#*_`|<>[](){}-+!?/\\\"'&$~=é→\u2028\x85\xa0\t"
_LOUD = (
    "#### Task 1-1: no task at all",
    "## Verification Commands",
    "### Phase 9: none",
    "**Work**: again",
    "Blocked By: 1-1-1",
    "**Notes**: of ours",
    "---",
    "***",
    "```",
    "~~~~",
    "```python",
    "    code",
    "\tcode",
    "<!-- a comment",
    "-->",
    "<!-- whole -->",
    "- [ ] a point",
    "| Check | Command |",
    "Words.",
    "",
    "\ufeff",
)
WORDS = st.text(_SIGNS, max_size=30)
LINES = st.lists(st.one_of(st.sampled_from(_LOUD), WORDS), max_size=8).map("\n".join)
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,9}", fullmatch=True).filter(
    lambda name: not means_nothing(name) and not name.endswith(".")
)
_ARGUMENT = st.text(
    string.printable.translate({ord(c): None for c in "\t\n\r\x0b\x0c"}), max_size=12
)
_ARGV = st.builds(
    lambda first, rest: (first, *rest),
    st.from_regex(r"[a-z][a-z0-9./_-]{0,9}", fullmatch=True),
    st.lists(_ARGUMENT, max_size=4),
)
_PLACES = ("Mac", "Box", "docker compose")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    names = draw(st.lists(IDS, unique=True, max_size=5))
    phases = draw(
        st.lists(
            st.builds(
                Phase,
                id=st.from_regex(r"[A-Za-z0-9]{1,3}", fullmatch=True),
                name=WORDS,
                overview=LINES,
            ),
            unique_by=lambda phase: phase.id,
            max_size=3,
        )
    )
    tasks = [draw(_task(name, names, ["", *(phase.id for phase in phases)])) for name in names]
    place = {phase.id: at for at, phase in enumerate(phases)}
    return Plan(
        title=draw(WORDS),
        overview=draw(LINES),
        phases=tuple(phases),
        tasks=tuple(sorted(tasks, key=lambda task: place.get(task.phase, -1))),
        checks=tuple(draw(st.lists(_check(), max_size=3))),
        environments=tuple(
            Environment(name, draw(st.one_of(st.just(()), _ARGV)), draw(WORDS))
            for name in draw(st.lists(st.sampled_from(_PLACES), unique=True))
        ),
    )


def _task(name: str, names: list[str], phases: list[str]) -> st.SearchStrategy[Task]:
    listed = st.lists(WORDS, max_size=4).map(tuple)
    return st.builds(
        Task,
        id=st.just(name),
        title=WORDS,
        phase=st.sampled_from(phases),
        work=LINES,
        criteria=listed,
        blocked_by=st.lists(st.sampled_from(names), unique=True, max_size=3).map(tuple),
        reading=listed,
        environment=st.sampled_from(("", *_PLACES)),
        target_files=listed,
    )


def _check() -> st.SearchStrategy[Check]:
    return st.builds(
        Check,
        name=WORDS.map(lambda words: f"Check {words}"),
        command=_ARGV,
        environment=st.sampled_from(("", *_PLACES)),
        exit_code=st.integers(0, 255),
        timeout=st.sampled_from((600.0, 0.5, 90.0, 100.0, 7200.0)),
        purpose=WORDS,
    )


def strip_positions(plan: Plan) -> Plan:
    """What a plan says, without where and in which form it was said."""
    return msgspec.structs.replace(
        plan,
        phases=tuple(msgspec.structs.replace(each, line=0) for each in plan.phases),
        tasks=tuple(msgspec.structs.replace(each, line=0) for each in plan.tasks),
        checks=tuple(msgspec.structs.replace(each, line=0) for each in plan.checks),
        environments=tuple(msgspec.structs.replace(each, line=0) for each in plan.environments),
        source_form="markdown",
        remarks=(),
    )
