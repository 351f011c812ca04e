"""Who belongs to an agent, over censuses of our own making."""

from interlock.system.process_table import (
    Process,
    ProcessTable,
    SeenProcess,
    find_ancestors,
    find_descendants,
    find_relatives,
)

TAG = "w:1:1:a"
LEADER = Process(10, 10)


def person(pid: int, parent: int, *tags: str, session: int = 0, state: str = "S") -> SeenProcess:
    return SeenProcess(Process(pid, pid), parent, session or pid, state, 0.0, "x", tags)


def people(*seen: SeenProcess) -> ProcessTable:
    return {each.process.pid: each for each in seen}


def kin(*seen: SeenProcess, known: tuple[Process, ...] = ()) -> list[int]:
    return sorted(process.pid for process in find_relatives(people(*seen), TAG, LEADER, known))


AGENT = person(10, 1, TAG)


def test_by_tag_wherever_they_went() -> None:
    others = [person(11, 10, TAG), person(12, 1, TAG), person(13, 1, "w:1:1:ab"), person(14, 1)]
    assert kin(AGENT, *others) == [10, 11, 12]


def test_by_a_tag_above() -> None:
    assert kin(AGENT, person(11, 1, TAG, "w:2:1:inner")) == [10, 11]


def test_by_descent_without_a_tag() -> None:
    assert kin(AGENT, person(11, 10), person(12, 11), person(13, 12)) == [10, 11, 12, 13]


def test_by_session_while_its_leader_is_there_also_dead() -> None:
    child = person(11, 1, session=10)
    assert kin(AGENT, child) == [10, 11]
    assert kin(person(10, 1, state="Z"), child) == [11]
    assert kin(child) == [], "nobody knows whose session it is now"


def test_a_session_of_one_who_got_the_number_of_the_leader() -> None:
    stranger = SeenProcess(Process(10, 99), 1, 10, "S", 0.0, "x")
    assert kin(stranger, person(11, 10, session=10)) == []


def test_who_was_known_stays_known_but_not_his_number() -> None:
    known = (Process(11, 11), Process(12, 5))
    assert kin(person(11, 1), person(12, 1), known=known) == [11]


def test_circles_end() -> None:
    """A census is no moment: parents may change while it is taken."""
    census = people(person(10, 12, TAG), person(11, 10), person(12, 11))
    assert len(find_descendants(census, census.values())) == 3
    assert len(find_ancestors(census, 10)) == 3


def test_the_line_above() -> None:
    census = people(person(1, 0), person(5, 1), person(6, 5), person(7, 5))
    assert find_ancestors(census, 6) == {Process(6, 6), Process(5, 5), Process(1, 1)}
    assert find_ancestors(census, 99) == set()
