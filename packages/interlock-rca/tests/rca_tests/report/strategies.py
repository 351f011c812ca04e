"""Findings of any shape: texts from anywhere, families that contradict the cases, odd times."""

from hypothesis import strategies as st

from interlock_rca.records import (
    CaseFinding,
    Evidence,
    FindingFamily,
    Findings,
    FindingStep,
    Suspect,
)
from rca_tests.worlds.findings import HOSTILE
from tests.world.hostile import LINKS

texts = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE[:-1]))
times = st.sampled_from(
    ["", "2031-03-04T02:00:00Z", "2031-03-09T02:00:00+02:00", "2031-03-04", "?"]
)
ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])


@st.composite
def findings_of_any_kind(draw: st.DrawFn) -> Findings:
    return Findings(
        suite_id=draw(st.integers(0, 9)),
        name=draw(texts),
        made_at=draw(times),
        families=tuple(draw(st.lists(_families(), max_size=4))),
        cases=tuple(draw(st.lists(_cases(), max_size=8))),
    )


@st.composite
def _families(draw: st.DrawFn) -> FindingFamily:
    members = draw(st.lists(st.one_of(ids, texts), max_size=5))
    return FindingFamily(family_id=draw(texts), title=draw(texts), members=tuple(members))


@st.composite
def _cases(draw: st.DrawFn) -> CaseFinding:
    text = draw(texts)
    return CaseFinding(
        case_id=draw(ids),
        case_no=draw(st.integers(0, 99)),
        test_name=text,
        class_name=draw(texts),
        error=draw(texts),
        stack=draw(texts),
        question_id=draw(st.integers(0, 3)),
        at=draw(times),
        url=draw(st.sampled_from(LINKS)),
        status=draw(st.sampled_from(["open", "triaged", "investigated", "reviewed", "closed"])),
        step=draw(st.sampled_from(["F0_RECALL", "F5_REVIEW", "review", "f3", ""])),
        stuck=draw(st.sampled_from(["", "why"])),
        category=draw(st.sampled_from(["product", "infra", "environment", "flake", "?", ""])),
        severity=draw(st.sampled_from(["critical", "low", "", "odd"])),
        defect_type=draw(st.sampled_from(["pb001", "pb9x", "zz001", ""])),
        message=text,
        score=draw(st.one_of(st.none(), st.floats(allow_nan=True))),
        evidence=(Evidence(ref=text, url=draw(st.sampled_from(LINKS))),),
        suspects=(Suspect(repo=text, commit=text, subject=text),),
        symptom_id=draw(st.integers(0, 2)),
        seen=draw(st.integers(1, 4)),
        first_seen=draw(times),
        regression=draw(st.booleans()),
        recalled=draw(st.booleans()),
        decision=draw(st.sampled_from(["", "approve", "overturn", "odd"])),
        draft=draw(
            st.dictionaries(texts, st.one_of(texts, st.lists(texts), st.none()), max_size=3)
        ),
        trail=(FindingStep(step=text, attempt=1, at="", rule=text, to=text, read={text: [text]}),),
    )
