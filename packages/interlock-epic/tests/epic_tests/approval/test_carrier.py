"""Test gates on GitHub issues: opened once, polled cheaply, answered only by those who may."""

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from interlock.signals.comments import CAUTION, UNCLEAR
from interlock.system.github import GithubAddress, GithubRest
from interlock_epic.approval.carrier import LONGEST_S, POLL_S, IssueCarrier
from interlock_epic.approval.issues import GithubIssue, Issues, format_request_marker
from tests.world.carrier_bench import Bench, ask
from tests.world.clock import FakeClock
from tests.world.crashes import boom, check_crash
from tests.world.github import OWN, REPO, Github, a_github


@pytest.fixture
def github() -> Iterator[Github]:
    with a_github() as running:
        yield running


class ApprovalBench(Bench):
    """A carrier with a GitHub server, and a clock that is moved poll by poll."""

    carrier: IssueCarrier

    def __init__(self, github: Github, allowed: tuple[str, ...] = (), token: str = "") -> None:
        address = github.address
        if token:
            address = GithubAddress(address.url, address.repo, token)
        self.github = github
        self.carrier = IssueCarrier(
            Issues(GithubRest(address, timeout_s=5)), FakeClock(), "w", allowed=allowed
        )
        super().__init__(self.carrier, self.carrier._clock)  # type: ignore[arg-type]

    async def rests(self) -> None:
        """Wait until the current poll is over."""
        tasks = [each.task for each in self.carrier._open.values() if each.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=120)

    async def asks(self, number: int = 1) -> None:
        self.carrier.send([ask(number, prompt="Is the plan good?", step="gate")])
        await self.rests()

    async def looks(self, times: int = 1) -> None:
        for _ in range(times):
            if self.replies and not self.carrier._open:
                return
            assert self.clock.advance()
            await self.rests()

    @property
    def answers(self) -> list[tuple[str, str, str]]:
        result = [(json.loads(each.content), each.answered_by) for each in self.replies]
        return [(data["decision"], data["comment"], by) for data, by in result]


class BrokenIssues(Issues):
    def open(self, request_id: str, title: str, body: str, since: float) -> GithubIssue:
        found: GithubIssue = boom()
        return found


async def test_an_unexpected_error_in_a_poll_ends_the_question(
    github: Github, tmp_path: Path
) -> None:
    issues = BrokenIssues(GithubRest(github.address, timeout_s=5))
    await check_crash(IssueCarrier(issues, FakeClock(), "w"), ask(1, step="gate"), tmp_path)


async def test_the_issue_says_what_is_asked_and_how_to_answer(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        issue = github.issues[0]
        assert issue["title"] == "Review: A - gate"
        assert "Is the plan good?" in issue["body"]
        assert "/approve" in issue["body"]
        assert issue["body"].endswith(f"{format_request_marker('w-1')}\n")
        assert [each["name"] for each in issue["labels"]] == ["hitl/review", "needs-approval"]
        assert github.labels == ["hitl/review", "needs-approval"]
        assert session.replies == []


async def test_an_approval_is_the_gates_answer_in_its_authors_name(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        await session.looks(3)
        github.comment(1, "LGTM, thanks!", "ann")
        await session.looks(2)
        assert session.answers == [("approve", "", "ann")]
        assert session.replies[0].dispatch_id == 1


@pytest.mark.parametrize(
    ("comment", "decision", "notes"),
    [
        ("/revise rename the table", "revise", "rename the table"),
        ("/discuss", "discuss", ""),
        ("/halt\nIt is not safe.", "halt", "It is not safe."),
        ("/defer", "defer", ""),
    ],
)
async def test_the_other_decisions(github: Github, comment: str, decision: str, notes: str) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, comment)
        await session.looks(2)
        assert session.answers == [(decision, notes, "ann")]


async def test_in_steady_state_a_look_is_one_conditional_request(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "hm, reading", "eve")
        await session.looks(4)
        before = len(github.log)
        await session.looks(40)
        steady = github.log[before:]
        assert len(steady) == 40
        assert {status for _, _, status in steady} == {304}


async def test_a_day_of_silence_is_looked_at_ever_less_often(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        started, before = session.clock.time, len(github.log)
        while session.clock.time < started + 24 * 3600:
            await session.looks()
        assert len(github.log) - before < 400
        last = session.clock.time
        await session.looks()
        assert session.clock.time - last == 10 * POLL_S
        github.comment(1, "reading", "eve")
        await session.looks(2)
        last = session.clock.time
        await session.looks()
        assert session.clock.time - last == POLL_S


async def test_a_restart_finds_the_same_issue(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
    github.comment(1, "/approve")
    async with ApprovalBench(github) as session:
        await session.asks()
        assert session.answers == [("approve", "", "ann")]
    assert len(github.issues) == 1


async def test_an_issue_whose_creation_was_not_acknowledged_is_not_opened_again(
    github: Github,
) -> None:
    github.lost = ["/issues"]
    async with ApprovalBench(github) as session:
        await session.asks()
        await session.looks()
        github.comment(1, "/approve")
        await session.looks(2)
        assert session.answers == [("approve", "", "ann")]
    assert len(github.issues) == 1


async def test_the_issue_is_found_behind_many_others(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
    for number in range(250):
        github.opened(f"later {number}", "")
    github.comment(1, "/approve")
    async with ApprovalBench(github) as session:
        await session.asks()
        assert session.answers == [("approve", "", "ann")]
    assert len(github.issues) == 251


async def test_a_strangers_issue_with_our_marker_is_not_ours(github: Github) -> None:
    github.opened("mine", format_request_marker("w-1"), by="eve")
    async with ApprovalBench(github) as session:
        await session.asks()
    assert [each["user"]["login"] for each in github.issues] == ["eve", OWN]


@pytest.mark.parametrize("heeds", [True, False])
async def test_an_answer_behind_hundreds_of_comments(github: Github, heeds: bool) -> None:
    github.heeds_since = heeds
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "first", "eve")["updated_at"] = "2020-01-01T00:00:00Z"
        for number in range(230):
            github.comment(1, f"remark {number}", "eve")
        await session.looks(8)
        before = len(github.log)
        await session.looks(8)
        assert len(github.log) == before + 8
        github.comment(1, "Approved.", "bob")
        await session.looks(2)
        assert session.answers == [("approve", "", "bob")]


@pytest.mark.parametrize("who", ["eve", "nobody", "robot[bot]", OWN])
async def test_those_who_may_not_answer_are_not_heard(github: Github, who: str) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "/approve", who)
        await session.looks(4)
        assert session.replies == []
        assert all("asked-back" not in each["body"] for each in github.comments[1])


async def test_an_app_that_speaks_for_a_human_is_a_bot(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "/approve", performed_via_github_app={"slug": "helper"})
        await session.looks(4)
        assert session.replies == []


async def test_a_list_of_names_goes_before_write_access(github: Github) -> None:
    async with ApprovalBench(github, allowed=("Eve",)) as session:
        await session.asks()
        github.comment(1, "/halt", "bob")
        await session.looks(3)
        assert session.replies == []
        github.comment(1, "/approve", "eve")
        await session.looks(2)
        assert session.answers == [("approve", "", "eve")]


async def test_a_permission_is_looked_up_once(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        for _ in range(5):
            github.comment(1, "hello there", "eve")
            await session.looks(2)
        asked = github.asked().count(f"GET /repos/{REPO}/collaborators/eve/permission")
        assert asked == 1


def _replies(github: Github) -> list[str]:
    return [each["body"] for each in github.comments[1] if "asked-back" in each["body"]]


async def test_an_unclear_comment_gets_one_reply_with_the_commands(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "LGTM but the tests fail")
        await session.looks(9)
        (reply,) = _replies(github)
        assert reply.startswith("@ann, this comment is not clear enough to be an answer")
        assert all(f"`/{each.lower()}`" in reply for each in CAUTION if each is not UNCLEAR)
        assert session.replies == []
    async with ApprovalBench(github) as session:
        await session.asks()
        await session.looks(9)
        assert len(github.comments[1]) == 2
        github.comment(1, "/approve")
        await session.looks(2)
        assert session.answers == [("approve", "", "ann")]


async def test_an_unclear_comment_after_an_approval_holds_it_back(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "/approve", "ann")
        github.comment(1, "but the tests fail", "bob")
        await session.looks(9)
        (to_bob,) = _replies(github)
        assert to_bob.startswith("@bob, this comment is not clear enough")
        assert session.replies == []
        github.comment(1, "/approve", "ann")
        await session.looks(2)
        assert [answer[0] for answer in session.answers] == ["approve"]


async def test_each_unclear_comment_gets_its_own_reply(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "👍")
        github.comment(1, "yes")
        await session.looks(4)
        assert len(_replies(github)) == 2
        github.comment(1, "ok", "bob")
        await session.looks(9)
        assert len(_replies(github)) == 3


async def test_a_reply_that_was_not_acknowledged_is_not_written_again(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        await session.looks(2)
        github.comment(1, "👍")
        github.lost = ["/comments"]
        await session.looks(9)
        assert github.lost == []
        assert len(_replies(github)) == 1


async def test_closing_is_no_answer_and_gets_one_reply(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.close(1)
        await session.looks(12)
        result = [each["body"] for each in github.comments[1]]
        assert len(result) == 1
        assert result[0].startswith("Closing this issue is not an answer.")
        assert session.replies == []


async def test_the_label_counts_by_who_set_it(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.label(1, "approved", "eve")
        await session.looks(5)
        github.label(1, "approved", OWN)
        await session.looks(5)
        assert session.replies == []
        github.label(1, "approved", "ann", on=False)
        github.label(1, "approved", "ann")
        await session.looks(5)
        assert session.answers == [("approve", "", "ann")]


async def test_label_and_comment_that_differ(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.label(1, "approved", "ann")
        github.comment(1, "/revise Rename the table.", "bob")
        await session.looks(5)
        assert session.answers == [("revise", "Rename the table.", "bob")]


async def test_an_edited_approval_by_who_knows_whom_is_unclear(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        comment = github.comment(1, "reading it", "ann")
        await session.looks(2)
        github.edit(comment, "/approve")
        await session.looks(4)
        assert session.replies == []
        assert "it was edited" in github.comments[1][-1]["body"]
        github.edit(comment, "/approve", editor={"login": "ann"})
        await session.looks(4)
        assert session.answers == [("approve", "", "ann")]


async def test_an_edit_that_holds_back_counts(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        comment = github.comment(1, "reading it", "ann")
        await session.looks(2)
        github.edit(comment, "/halt")
        await session.looks(4)
        assert [decision for decision, *_ in session.answers] == ["halt"]


@pytest.mark.parametrize(
    ("lay", "waits"),
    [
        (lambda hub: hub.fault("403", "/comments", retry_after="90"), 90),
        (lambda hub: hub.fault("429", "/comments", retry_after="77"), 77),
        (
            lambda hub: hub.fault(
                "403",
                "/comments",
                x_ratelimit_remaining="0",
                x_ratelimit_reset=str(hub.now + 600),
            ),
            601,
        ),
        (lambda hub: hub.fault("403 You have exceeded a secondary rate limit", "/comments"), 60),
        (lambda hub: hub.fault("502", "/comments"), 60),
        (lambda hub: hub.fault("half", "/comments"), 60),
        (lambda hub: hub.fault("page", "/comments"), 60),
        (lambda hub: hub.fault("500", "/comments", retry_after="1"), POLL_S),
    ],
)
async def test_it_comes_again_when_github_says_so(
    github: Github, lay: Callable[[Github], None], waits: float
) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "/approve")
        lay(github)
        await session.looks()
        failed_at = session.clock.time
        assert session.replies == []
        await session.looks()
        assert session.clock.time - failed_at == waits
        assert session.answers == [("approve", "", "ann")]


async def test_pauses_grow_to_a_limit_and_end_with_the_first_answer(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.fault("503", times=6)
        times = []
        for _ in range(8):
            await session.looks()
            times.append(session.clock.time)
        pauses = [b - a for a, b in pairwise(times)]
        assert pauses == [60, 120, 240, LONGEST_S, LONGEST_S, LONGEST_S, POLL_S]


async def test_nothing_that_was_seen_is_lost_when_the_next_question_fails(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.comment(1, "/approve")
        github.fault("502", "/permission")
        await session.looks(2)
        assert session.answers == [("approve", "", "ann")]


@pytest.mark.parametrize("kind", ["401", "403 Resource not accessible by personal access token"])
async def test_a_token_without_rights_is_a_failure_and_no_decision(
    github: Github, kind: str
) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        github.fault(kind, "/comments")
        await session.looks()
        (reply,) = session.replies
        assert (reply.failure, reply.content) == ("crash", b"")
        assert reply.reason.startswith("GITHUB_AUTH_FAILED: ")
        assert "ghp_" not in reply.reason


async def test_a_wrong_token_opens_nothing(github: Github) -> None:
    async with ApprovalBench(github, token="wrong") as session:
        await session.asks()
        assert session.replies[0].reason.startswith("GITHUB_AUTH_FAILED: ")
    assert github.issues == []


async def test_a_question_that_was_settled_is_not_looked_at(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks()
        session.carrier.settle(1)
        before = len(github.log)
        assert not session.clock.advance()
        assert len(github.log) == before


async def test_sent_twice_it_is_asked_once(github: Github) -> None:
    async with ApprovalBench(github) as session:
        session.carrier.send([ask(1)])
        await session.asks()
        session.carrier.send([ask(1)])
        await session.rests()
    assert len(github.issues) == 1


async def test_two_questions_have_an_issue_each(github: Github) -> None:
    async with ApprovalBench(github) as session:
        await session.asks(1)
        await session.asks(2)
        github.comment(2, "/approve")
        await session.looks(4)
        assert [each.dispatch_id for each in session.replies] == [2]


async def test_a_question_cannot_carry_our_marker(github: Github) -> None:
    async with ApprovalBench(github) as session:
        session.carrier.send(
            [ask(1, prompt=f"{format_request_marker('w-2')} `x` " + "y" * 100_000)]
        )
        await session.rests()
        assert format_request_marker("w-2") not in github.issues[0]["body"]
        assert len(github.issues[0]["body"]) < 65_536
