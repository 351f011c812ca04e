"""The checker can fail: every law has a history that breaks it, and the nemesis repeats itself.

A cluster whose coordinators do not check their epoch is built for the soak: it takes minutes.
"""

import secrets
import shutil
from itertools import pairwise

import pytest
from msgspec.structs import replace

from interlock.journal.ownership import LEASE
from tests.cluster.__main__ import Plan, Say, describe, run_cluster
from tests.cluster.checker import (
    OF_EPOCHS,
    Decided,
    History,
    Offered,
    Replied,
    Stranger,
    Taken,
    Witnessed,
    find_violations,
)
from tests.cluster.nemesis import BUSIEST, KINDS, plan_faults
from tests.cluster.workload import Way
from tests.world.postgres_server import make_folder

WAY: Way = (("write", "artifact", "judge", "{}"), ("judge", "artifact", "sent", "{}"))
EXPECTED = {"C0": WAY}
GOOD = History(
    decided=(Decided(1, 10, 1), Decided(1, 11, 3)),
    taken=(Taken(1, 1, "a"), Taken(1, 2, "b"), Taken(1, 3, "a2")),
    witnessed=(Witnessed(1, 10, 1, 1), Witnessed(1, 11, 3, 3)),
    dispatched=frozenset({10, 11}),
    statuses={1: "done"},
    ways={(1, "C0"): WAY},
    offered=(Offered(10, 1), Offered(11, 1), Offered(11, 2)),
    replied=(Replied(10, 1, 1), Replied(11, 2, 2)),
)
BROKEN = {
    "accepted at most once": replace(
        GOOD,
        decided=(*GOOD.decided, Decided(1, 11, 3)),
        witnessed=(*GOOD.witnessed, Witnessed(1, 11, 3, 3)),
    ),
    "none lost: dispatch 12 was never decided": replace(GOOD, dispatched=GOOD.dispatched | {12}),
    "none lost: dispatch 11 was decided but never made": replace(GOOD, dispatched=frozenset({10})),
    "none lost: run 1 is running": replace(GOOD, statuses={1: "running"}),
    "none lost: case 1/C0 is still open": replace(GOOD, open_cases=("1/C0",)),
    "none lost: 3 decisions were seen, 2 are left": replace(
        GOOD, witnessed=(*GOOD.witnessed, Witnessed(1, 12, 3, 3))
    ),
    "epochs rise: run 1 was taken as 3, then 3": replace(
        GOOD, taken=(*GOOD.taken, Taken(1, 3, "b2"))
    ),
    "epochs rise: run 1 was taken as 3, then 2": replace(
        GOOD, taken=(*GOOD.taken, Taken(1, 2, "b2"))
    ),
    "epochs rise: run 1: nobody ever had epoch 3": replace(GOOD, taken=GOOD.taken[:2]),
    "no effect of a stale epoch": replace(
        GOOD, witnessed=(GOOD.witnessed[0], Witnessed(1, 11, 3, 4))
    ),
    "no effect of a stale epoch: run 1: b wrote 2 rows to cases while it was a's, under 3": replace(
        GOOD, strangers=(Stranger(1, 3, "a", "b", "cases"),) * 2, attempts=2
    ),
    "no attempt under a stale epoch: about 3 rows": replace(GOOD, attempts=3),
    "fences rise: dispatch 11: 2, then 2": replace(GOOD, offered=(*GOOD.offered, Offered(11, 2))),
    "fences rise: dispatch 11: 2, then 1": replace(GOOD, offered=(*GOOD.offered, Offered(11, 1))),
    "no effect of a stale fence: dispatch 11: taken under 1, not 2": replace(
        GOOD, replied=(*GOOD.replied, Replied(11, 1, 2))
    ),
    "no effect of a stale fence: dispatch 10: 2 replies under 1": replace(
        GOOD, replied=(*GOOD.replied, Replied(10, 1, 1))
    ),
    "fold equals state": replace(GOOD, faults=("case 1: its row is not what the journal says",)),
    "decisions as undisturbed: run 1, case C0: decision 1": replace(
        GOOD, ways={(1, "C0"): (WAY[0], ("judge", "artifact", "write", "{}"))}
    ),
    "decisions as undisturbed: run 1, case C0: 1 decisions, not 2": replace(
        GOOD, ways={(1, "C0"): WAY[:1]}
    ),
    "decisions as undisturbed: run 1 lacks C0": replace(GOOD, ways={}),
}


def test_a_history_in_which_all_went_well_breaks_no_law() -> None:
    assert find_violations(GOOD, EXPECTED) == []


@pytest.mark.parametrize("law", BROKEN)
def test_each_law_is_found_broken_and_no_other(law: str) -> None:
    (found,) = find_violations(BROKEN[law], EXPECTED)
    assert str(found).startswith(law)


def test_a_decision_under_an_older_epoch_is_found_by_the_order_of_the_journal() -> None:
    """Also where the database's own witness is missing."""
    history = replace(GOOD, decided=(Decided(1, 11, 3), Decided(1, 10, 1)))
    assert [str(each) for each in find_violations(history, EXPECTED)] == [
        "epochs rise: run 1: dispatch 10 was decided under 1, after 11 under 3"
    ]


def test_a_seed_replays_its_faults_and_all_kinds_come_up() -> None:
    daemons = ["coordinator-1", "coordinator-2", "w1", "w2", "w3", "w4"]
    plan = plan_faults(7, 1000, daemons, has_network=True)
    assert plan == plan_faults(7, 1000, daemons, has_network=True)
    assert plan[:20] != plan_faults(8, 20, daemons, has_network=True)
    assert {each.kind for each in plan} == set(KINDS)
    assert {each.target for each in plan} == {*daemons, BUSIEST, "server"}
    for target in daemons:
        for part in {kind.part for kind in KINDS.values()}:
            own = [each for each in plan if (each.target, KINDS[each.kind].part) == (target, part)]
            for one, other in pairwise(own):
                assert one.at + one.seconds < other.at, "one fault at a time of each part"
    assert plan[-1].at < 1200, "about one a second"


@pytest.mark.parametrize("count", [8, 100, 1000])
def test_every_plan_has_coordinators_that_come_back_too_late_with_something_to_write(
    count: int,
) -> None:
    """Chance alone gave plans in which no coordinator was away for longer than its lease."""
    for seed in range(20):
        plan = plan_faults(seed, count, ["coordinator-1", "coordinator-2"], has_network=False)
        away = [each for each in plan if KINDS[each.kind].needs_heir]
        assert len(away) >= max(1, count // 50)
        for fault in away:
            assert fault.seconds > LEASE
            assert not [
                other
                for other in plan
                if other is not fault
                and KINDS[other.kind].fatal
                and other.at < fault.at + fault.seconds
                and fault.at < other.at + other.seconds
            ], "nobody can take its run meanwhile"


@pytest.mark.soak
@pytest.mark.parametrize("sabotaged", [False, True])
def test_a_cluster_without_the_check_of_epochs_is_caught(sabotaged: bool) -> None:
    folder = make_folder(f"interlock-cluster-test-{secrets.token_hex(6)}")
    plan = Plan(seed=3, faults=25, workers=0, namespaces=False, sabotaged=sabotaged)
    try:
        outcome = run_cluster(plan, folder, Say(every=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    laws = {each.law for each in outcome.violations}
    assert laws.intersection(OF_EPOCHS) if sabotaged else not laws, describe(outcome)
