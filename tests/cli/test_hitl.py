"""`interlock hitl read`: what recorded comments would be taken for, and lines that are none."""

import json

from tests.cli.world import CliResult, World


def record(number: int, comment: str, login: str = "ann", **news: object) -> dict[str, object]:
    author = {"login": login, "association": "MEMBER", "bot": False}
    known = {"created_after_request": True, "labels": []}
    return {"id": number, "author": author, "comment": comment, **known, **news}


def lines(*records: object) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records)


UNDATED = {"id": 3, "author": {"login": "ann", "association": "MEMBER"}, "comment": "LGTM"}
STRANGER = {"login": "eve", "association": "NONE", "bot": False}
ROBOT = {"login": "ci", "association": "MEMBER", "bot": True}


def test_each_comment_with_its_outcome_and_why(world: World) -> None:
    world.write(
        "comments.jsonl",
        lines(
            record(1, "LGTM, thanks!"),
            record(2, "LGTM but the tests fail"),
            record(3, "/approve", author=STRANGER),
            record(4, "/approve", author=ROBOT),
            record(5, "/approve", created_after_request=False),
            record(6, "", labels=["approved"]),
            record(7, "please rename it", labels=["approved"]),
            record(8, "<!-- interlock:request w-1 -->\napproved"),
            record(9, "> <!-- interlock:request w-1 -->\n\napproved"),
        ),
    )
    assert world.say("hitl", "read", "comments.jsonl") == CliResult(
        0,
        "1  ann: APPROVE, it says nothing but that it approves\n"
        "2  ann: UNCLEAR, it says more than one plain answer\n"
        "3  eve: IGNORED, eve may not answer\n"
        "4  ci: IGNORED, ci is a bot\n"
        "5  ann: IGNORED, it is older than the request\n"
        "6  ann: APPROVE, ann set the label approved\n"
        "7  ann: REVISE, it begins with a refusal or a change\n"
        "8  ann: IGNORED, it carries our own marker\n"
        "9  ann: APPROVE, it says nothing but that it approves\n",
        "",
    )


def test_as_one_object(world: World) -> None:
    world.write("comments.jsonl", lines(record(1, "Not approved.", login="bob")))
    result = world.say("hitl", "read", "comments.jsonl", "--json")
    assert result.code == 0
    assert json.loads(result.out) == {
        "schema_version": 1,
        "comments": [
            {
                "line": 1,
                "id": 1,
                "author": "bob",
                "outcome": "REVISE",
                "why": "it begins with a refusal or a change",
                "notes": "Not approved.",
                "evidence": [
                    {"start": 0, "end": 12, "kind": "refusal or change", "text": "Not approved"}
                ],
            }
        ],
    }


def test_who_may_answer_the_request_and_the_own_account(world: World) -> None:
    world.write(
        "comments.jsonl",
        lines(record(1, "/approve"), record(2, "/approve r-7", "Eve"), record(3, "/approve", "me")),
    )
    words = ("--allow", "eve", "--allow", "me", "--request-id", "R-7", "--own", "ME", "--json")
    result = world.say("hitl", "read", "comments.jsonl", *words)
    found = [each["outcome"] for each in json.loads(result.out)["comments"]]
    assert found == ["IGNORED", "APPROVE", "IGNORED"]


def test_bad_lines_are_told_beside_the_others(world: World) -> None:
    world.write(
        "comments.jsonl",
        lines(
            "{",
            "[]",
            '{"id": 1}',
            "[" * 5000,
            record(2, "LGTM", author={}),
            UNDATED,
            record(1, "LGTM"),
        ),
    )
    result = world.say("hitl", "read", "comments.jsonl", "--json")
    rows = json.loads(result.out)["comments"]
    assert result.code == 6
    assert ["error" in row for row in rows] == [True] * 6 + [False]
    assert rows[0]["line"] == 1
    text = world.say("hitl", "read", "comments.jsonl")
    assert (text.code, text.err) == (6, "")
    assert text.out.endswith("6 lines are no comment\n")


def test_nothing_and_no_file(world: World) -> None:
    world.write("comments.jsonl", "\n\n")
    assert world.say("hitl", "read", "comments.jsonl") == CliResult(0, "no comments\n", "")
    result = world.say("hitl", "read", "none.jsonl")
    assert (result.code, result.out) == (2, "")
    assert "none.jsonl does not exist" in result.err
