"""The note of the README: write, judge, ask a person, send. For tests of the door for Python."""

import threading
from collections.abc import Callable
from typing import Any

from interlock.api.project import Project
from interlock.api.run import Run
from interlock.carriers.function import Dispatch

NOTE = """\
circuit: note
start: write
ends: {sent: healthy, dropped: unhealthy}
thresholds: {good_enough: 0.8}
loops: {rework: 2, again: 1}
steps:
  write:  {role: author, timeout: 5m, prompt: "Write about {{ case.topic }}.", answer: text}
  judge:
    role: critic
    judges: write
    timeout: 5m
    answer: {type: object, required: [score], properties: {score: {type: number}}}
  allow:  {gate: true, timeout: 7d, answer: approval}
  send:   {role: mailer, timeout: 1m, writes: true}
rules:
  - {at: write, to: judge}
  - {at: write, on: crash, loop: again, to: write, why: Once more.}
  - {at: judge, when: score >= good_enough, to: allow}
  - {at: judge, loop: rework, to: write, why: Try again with the remarks.}
  - {at: allow, when: decision == "approve", to: send}
  - {at: send, to: sent}
otherwise: {to: dropped, why: Nothing good came of it.}
"""
PATIENCE = 180
"""Seconds after which a run that does not settle has failed."""
RAIN = [{"id": "C1", "topic": "rain"}]


def author(dispatch: Dispatch) -> str:
    return f"About {dispatch.case['topic']}."


def judge(dispatch: Dispatch) -> dict[str, float]:
    return {"score": 0.9}


async def mailer(dispatch: Dispatch) -> dict[str, Any]:
    return {}


AGENTS: dict[str, Any] = {"author": author, "critic": judge, "mailer": mailer}


def approve(project: Project, run: Run) -> None:
    """Say yes to everything that waits."""
    for question in project.inbox(run):
        project.answer(question, "approve", by="reviewer")


def until(going: threading.Event) -> Callable[[Dispatch], str]:
    """An author who answers when the test lets him."""

    def wait(dispatch: Dispatch) -> str:
        going.wait(PATIENCE)
        return author(dispatch)

    return wait
