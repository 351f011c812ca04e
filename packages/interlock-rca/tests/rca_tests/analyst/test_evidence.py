"""Evidence: complaints and what belongs to them, against good logs and alone; excerpts."""

import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.evidence import choose_evidence, make_excerpt
from rca_tests.worlds.job_logs import read_failed_builds

GOOD = [
    "2024-01-01T10:00:00Z checking out 1111111111",
    "2024-01-01T10:00:01Z warning: lid is old",
    "2024-01-01T10:00:02Z ERROR: mirror 10.0.0.1 did not answer in 12 ms",
    "2024-01-01T10:00:03Z all 12 tests went well",
    "2024-01-01T10:00:09Z done",
    "",
]
BAD = [
    "2024-02-02T11:00:00Z checking out 2222222222",
    "2024-02-02T11:00:01Z warning: lid is old",
    "2024-02-02T11:00:02Z ERROR: mirror 10.0.0.7 did not answer in 99 ms",
    "2024-02-02T11:00:03Z something new and quiet",
    "2024-02-02T11:00:04Z box.LidError: the lid is shut",
    "2024-02-02T11:00:04Z     at box.Lid.open(Lid.java:12)",
    "",
    "2024-02-02T11:00:04Z     the hinge was seen last at noon",
    "2024-02-02T11:00:05Z BUILD FAILED",
    "2024-02-02T11:00:09Z done",
    "",
]


def chosen(lines: list[str], *good: list[str]) -> list[int]:
    return [line.line for line in choose_evidence(lines, good)]


def test_what_good_logs_say_too_is_left_out() -> None:
    assert chosen(BAD, GOOD) == [5, 6, 7, 8]
    assert 3 in chosen(BAD)


def test_each_choice_has_a_reason_and_a_score() -> None:
    found = {line.line: line for line in choose_evidence(BAD, [GOOD])}
    assert found[5].why == "an error, not in the good logs"
    assert found[8].why == "goes on with what stands above, not in the good logs"
    assert found[5].score == max(line.score for line in found.values())
    assert found[5].text == BAD[4]


def test_a_log_like_the_good_ones_still_shows_its_complaints() -> None:
    assert chosen(BAD, BAD) == [3, 5]


@pytest.mark.parametrize(
    "lines",
    [
        ["_" * 30 + " test_open " + "_" * 30],
        ["Testcase: open took 0.1 sec", "\tCaused an ERROR"],
        ["=" * 70, "FAIL: test_open (box.LidTest)"],
    ],
)
def test_names_of_failed_tests_are_shown(lines: list[str]) -> None:
    heading = f"{' FAILURES ':=^80}"
    found = choose_evidence(["quiet", heading, *lines, "quiet"])
    assert [line.why for line in found if "open" in line.text] == ["names a failed test"]


def test_a_test_that_went_well_is_not_named() -> None:
    lines = ["Testcase: open took 0.1 sec", "Testcase: shut took 0.1 sec", "\tFAILED"]
    assert [line.text for line in choose_evidence(lines)] == lines[1:]


def test_without_good_logs_one_complaint_is_not_shown_for_ever() -> None:
    lines = [f"ERROR: lid {number} is shut" for number in range(100)]
    assert len(choose_evidence(lines)) == 5


def test_of_a_log_that_complains_of_nothing_the_end_is_shown() -> None:
    assert chosen([f"step {number}" for number in range(100)]) == list(range(76, 101))
    assert chosen([]) == []
    assert chosen(["", "  ", "-----"]) == []


def test_where_only_the_end_says_failed_what_stands_above_it_is_shown() -> None:
    lines = ["##[group]Run box", "##[endgroup]", "would paint lid.py", "", "2 lids are plain"]
    lines += ["##[error]Process completed with exit code 1.", "Post job cleanup.", "bye"]
    assert chosen(lines) == [3, 5]


def test_words_of_failure_directly_above_an_error_belong_to_it() -> None:
    lines = ["linking", "lid.c:(.text+0x2): undefined reference", "ld: error: 1 exit status"]
    assert chosen(lines) == [2, 3]


def test_a_consequence_scores_less_than_its_cause() -> None:
    cause, *rest = choose_evidence(
        [
            "c++: fatal error: Killed signal terminated program",
            "make[2]: *** [box/build.make:76: lid.o] Error 1",
            "error: could not compile `box` due to 1 previous error",
        ]
    )
    assert all(line.score < cause.score for line in rest)


def test_a_word_of_failure_is_better_than_nothing() -> None:
    assert chosen(["fine", "the lid is missing", "fine", "fine"]) == [2]


class MarkedLog(NamedTuple):
    """A log in which the lines that say why it failed are marked."""

    name: str
    lines: list[str]
    marked: set[int]


def read_marked_logs() -> list[MarkedLog]:
    """Logs of many tools, as their users see them; a mark begins each line that says why."""
    text = Path(__file__).with_name("failed_jobs.txt").read_text(encoding="utf-8")
    logs = []
    for part in re.split(r"(?m)^@@ (?=[a-z])", text)[1:]:
        name, *lines = part.rstrip("\n").split("\n")
        marked = {at for at, line in enumerate(lines, 1) if line.startswith("»")}
        logs.append(MarkedLog(name, [line.removeprefix("»") for line in lines], marked))
    return logs


def test_without_a_good_log_the_block_that_decided_it_is_chosen() -> None:
    logs = read_marked_logs()
    missed, right, found, marked = [], 0, 0, 0
    for log in logs:
        evidence = choose_evidence(log.lines)
        if max(evidence, key=lambda line: (line.score, -line.line)).line not in log.marked:
            missed.append(log.name)
        right += len(log.marked.intersection(line.line for line in evidence))
        found, marked = found + len(evidence), marked + len(log.marked)
    assert missed == []
    assert right / found > 0.88, "too much is chosen"
    assert right / marked > 0.72, "too little is chosen"


def test_of_failed_builds_the_best_lines_say_why() -> None:
    builds = read_failed_builds()
    first, third = [], []
    for build in builds:
        ranked = sorted(choose_evidence(build.lines), key=lambda line: (-line.score, line.line))
        best = [line.line in build.evidence for line in ranked[:3]]
        first += [] if best[:1] == [True] else [build.name]
        third += [] if any(best) else [build.name]
    assert len(first) <= 0.13 * len(builds), f"first: {first}"
    assert len(third) <= 0.03 * len(builds), f"top three: {third}"


@pytest.mark.parametrize(
    ("around", "noise"),
    [
        (["$ a", "{}", 'The command "a" exited with 0.', "$ b"], "an earlier step"),
        (["10:00:00 {}", "tests run: 3, failures: 0", "{0}"], "a passing test"),
    ],
)
def test_a_complaint_that_did_no_harm_ranks_below_the_one_that_did(
    around: list[str], noise: str
) -> None:
    lines = [line.format(f"ERROR: lid {noise}: broken") for line in around[:-1]]
    lines += [around[-1].replace("{0}", "next"), "ERROR: the hinge is broken", "exit status 1"]
    lines += ['The command "b" exited with 1.', "$ cat log", "ERROR: no log is there"]
    best = max(choose_evidence(lines), key=lambda line: line.score)
    assert best.text == "ERROR: the hinge is broken"


def test_every_failed_test_is_named_once() -> None:
    heads = [f"--- FAIL: TestLid{letter} (0.00s)" for letter in "abcdefghijklmnopqrst"]
    bodies = [[f"    lid_test.go:{at}: hinge {at} is bent"] * 4 for at in range(20)]
    lines = [line for head, body in zip(heads, bodies, strict=True) for line in (head, *body)]
    texts = [line.text for line in choose_evidence([*lines, "FAIL", *heads])]
    assert [texts.count(head) for head in heads] == [1] * 20


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # A test is named before it runs, and what it says stands between its name and its end.
        (
            [
                "[ RUN      ] Lid.Opens",
                "[       OK ] Lid.Opens (0 ms)",
                "[ RUN      ] Lid.Shuts",
                "lid.cc:2: Failure",
                "Expected equality of these values:",
                "  3",
                "  4",
                "[  FAILED  ] Lid.Shuts (0 ms)",
                "[----------] 2 tests from Lid (0 ms total)",
                "[ RUN      ] Box.Holds",
                "[       OK ] Box.Holds (0 ms)",
            ],
            [4, 5, 6, 7, 8],
        ),
        (
            [
                "=== RUN   TestLid",
                "    lid_test.go:4: got 3, want 4",
                "--- FAIL: TestLid (0.00s)",
                "=== RUN   TestBox",
                "--- PASS: TestBox (0.00s)",
                "FAIL",
            ],
            [2, 3],
        ),
        # A list names the test, and elsewhere stands why it failed.
        (
            [
                "   \u00d7 shuts the lid 5ms",
                "   \u2193 opens the lid",
                "",
                "\u23af\u23af\u23af\u23af Failed Tests 1 \u23af\u23af\u23af\u23af",
                "",
                " FAIL  lid.test.ts > lid > shuts the lid",
                "AssertionError: expected 3 to be 4",
                " \u276f lid.test.ts:2:9",
            ],
            [6, 7, 8],
        ),
        # An arrow leads from what failed to why.
        (
            ["* What went wrong:", "Execution failed for task ':lid'.", "> The hinge is gone.", ""],
            [1, 2, 3],
        ),
        # What fills the page is left out of a long block.
        (
            [
                f"{' FAILURES ':=^80}",
                f"{' test_lid ':_^80}",
                "",
                *(f"        hinge = hinges[{at}]" for at in range(20)),
                ">       assert lid == 3",
                "E       assert 2 == 3",
                "",
                "lid_test.py:9: AssertionError",
            ],
            [2, 23, 24, 25, 27],
        ),
        # The job was stopped; what follows is no part of it.
        (["linking", "##[error]The operation was canceled.", "Post job cleanup."], [2]),
    ],
)
def test_each_line_shown_says_what_failed_where_or_why(
    lines: list[str], expected: list[int]
) -> None:
    assert chosen(lines) == expected


def test_each_step_that_failed_is_looked_at_before_its_end() -> None:
    steps = [
        [f"##[group]Run {name}", "##[endgroup]", f"{name}.c:3:1: error: no {name}"]
        for name in ("lid", "hinge")
    ]
    end = "##[error]Process completed with exit code 1."
    after = ["##[group]Run report", "error: no report was found", "##[endgroup]"]
    assert chosen([*steps[0], end, *steps[1], end, *after]) == [3, 7]


@pytest.mark.parametrize("stamp", ["2024-01-01T10:00:0{}Z ", "job\tstep\t2024-01-01T10:00:0{}.1Z "])
def test_times_before_every_line_change_nothing(stamp: str) -> None:
    log = next(log for log in read_marked_logs() if log.name == "travis-phpunit")
    stamped = [f"{stamp.format(at % 10)}{line}" for at, line in enumerate(log.lines)]
    assert chosen(stamped) == chosen(log.lines)
    nested = [f"{stamp.format(1)}2024/01/01 10:00:01 {line}" for line in log.lines]
    assert chosen(nested) == chosen(log.lines)


def test_of_very_many_failed_tests_a_hundred_are_named() -> None:
    names = ["".join(each) for each in itertools.product("abcdefg", repeat=4)]
    lines = [
        line
        for at, name in enumerate(names)
        for line in (
            f"=== RUN   Test{name}",
            f"    a_test.go:{at}: bent",
            f"--- FAIL: Test{name} (0.00s)",
        )
    ]
    found = choose_evidence(lines)
    assert sum(line.why == "names a failed test" for line in found) == 100
    assert len(found) <= 140


def test_an_endless_log_is_bounded() -> None:
    lines = itertools.islice(itertools.cycle(["ERROR: lid {} is shut", "fine"]), 45_000)
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = itertools.cycle("".join(each) for each in itertools.product(letters, repeat=3))
    assert 0 < len(choose_evidence(line.format(next(names)) for line in lines)) <= 40


LINES = st.lists(
    st.sampled_from(
        ["", "ERROR: lid", "\tat box.Lid(Lid.java:1)", "fine", "no such lid", "[INFO] x"]
    )
)


@given(LINES, LINES)
def test_chosen_lines_are_lines_of_the_log_in_order(lines: list[str], good: list[str]) -> None:
    found = choose_evidence(lines, [good])
    assert [lines[each.line - 1] for each in found] == [each.text for each in found]
    assert [each.line for each in found] == sorted({each.line for each in found})
    assert all(0 < each.score <= 1 for each in found)


@given(LINES, st.integers(0, 300))
def test_an_excerpt_fits_and_says_what_it_left_out(lines: list[str], most: int) -> None:
    text = "\n".join(lines)
    visible, cut = make_excerpt(text, most)
    assert cut == (len(text) > most)
    if not cut:
        assert visible == text
        return
    kept = [line for line in visible.split("\n") if not line.startswith("[… ")]
    gaps = [int(line.split()[1]) for line in visible.split("\n") if line.startswith("[… ")]
    assert len(kept) + sum(gaps) == len(lines)
    assert len(visible) <= max(most, 40)


def test_an_excerpt_keeps_the_error_and_cuts_long_lines() -> None:
    text = "\n".join(["fine"] * 1_000 + ["ERROR: lid " + "x" * 5_000] + ["fine"] * 1_000)
    visible, cut = make_excerpt(text, 2_000)
    assert cut
    assert "ERROR: lid xxx" in visible
    assert "[… 1000 lines left out …]" in visible
    assert len(visible) <= 2_000


def test_giant_and_binary_lines() -> None:
    lines = ["ERROR " + "x" * 1_000_000, "\0\ufffd" * 100_000]
    assert len(choose_evidence(lines)[0].text) == 4_000


def test_lines_that_say_nothing_are_looked_at_once_and_hide_nothing() -> None:
    chatter = [f"copied {number} sheets to shelf {number}" for number in range(1_000)]
    trouble = ["ERROR: the lid is broken", "  hinge 3 of 4", *chatter[:1]]
    assert chosen([*chatter, *trouble, *chatter, "exit status 1"]) == [1_001, 1_002]
    counts = [f"lids shut, failures: {number}, errors: 0" for number in (0, 0, 2)]
    assert chosen([*chatter, *counts, *chatter[:9]]) == [1_003]
