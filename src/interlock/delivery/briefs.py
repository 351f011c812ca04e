"""Briefs: what an agent of a delivery is told about its task, gathered from where it is known.

Knows the plan, the task's story so far and the work as it was recorded last. Refuses to know the
words it is told in (`apps/delivery`), and who works where.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.agents.carrier import ExecutionContext
from interlock.delivery import history, steps
from interlock.delivery.brief import CheckCommand, CheckLocation, TaskContext
from interlock.delivery.checking import CheckHandler
from interlock.delivery.experts import Experts, asked_for
from interlock.delivery.history import PastDecision
from interlock.delivery.site import TaskEnvironment
from interlock.delivery.worktrees.diff import Diff
from interlock.engine.case import Case


class Briefs:
    """Briefs for the tasks of one plan."""

    def __init__(
        self,
        ground: TaskEnvironment,
        checking: CheckHandler,
        experts: Experts,
        fence: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._ground = ground
        self._checking = checking
        self._experts = experts
        self._fence = fence

    def brief(
        self, case: Case, story: Sequence[PastDecision], premises: ExecutionContext
    ) -> TaskContext:
        plan = self._ground.plan
        look = history.last_of(story, steps.CHECK, steps.PROVE)
        seen = self._seen(case, look)
        wanted = asked_for(case)
        made = case.step == steps.RECRUIT
        return TaskContext(
            task=self._ground.task(case.case_id),
            fence=self._fence(),
            plan=plan.overview,
            commands=tuple(
                CheckCommand(each.name, " ".join(each.command), each.environment, each.exit_code)
                for each in plan.checks
            ),
            places=tuple(
                CheckLocation(each.name, each.description, " ".join(each.prefix))
                for each in plan.environments
            ),
            experts=self._experts.all(),
            guidance=history.guidance(story),
            feedback=history.open_points(story),
            changed=seen.paths,
            diff=seen.patch,
            checks=tuple(map(_check_line, look.get("results", ()))),
            tells=tuple(look.get("tells", ())),
            claims=tuple(map(_claim_line, look.get("claims", ()))),
            expert=self._experts.text(wanted) if case.step == steps.CONSULT else "",
            expert_file=str(self._experts.place_for(wanted)) if made else "",
            request_id=premises.request_id,
            nonce=premises.nonce if premises.strict else "",
        )

    def _seen(self, case: Case, look: Mapping[str, Any]) -> Diff:
        """The work as it was recorded last; looked up anew after a restart."""
        known, sha = self._checking.seen, look.get("snapshot")
        if case.case_id not in known and sha:
            tree = self._ground.tree_of(case.case_id, steps.CHECK)
            known[case.case_id] = tree.diff(look.get("base") or tree.base, sha)
        return known.get(case.case_id, Diff())


def _check_line(row: Mapping[str, Any]) -> str:
    how = "passes" if row.get("passed") else f"exit code {row.get('exit_code')}"
    note = f" ({row['note']})" if row.get("note") else ""
    return f"{row.get('check')} ({row.get('environment')}): {how}{note}"


def _claim_line(claim: Mapping[str, Any]) -> str:
    where = f" ({claim['environment']})" if claim.get("environment") else ""
    return f"{claim.get('check')}{where}: {claim.get('found')}; {claim.get('sentence')}"
