"""Who may answer a question: by name, for all gates or for one step.

Knows names only. Who sits at the keyboard is the system's word (the user, the owner of a file); in
whose name they speak is their own, and another's only if they may speak for others.
"""

from collections.abc import Mapping

import msgspec


class AnswerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The project's policy, as interlock.toml has it under [inbox]. Without names everybody may."""

    answerers: tuple[str, ...] = ()
    """Who may answer."""
    proxies: tuple[str, ...] = ()
    """Who of them may answer in another's name."""
    step: Mapping[str, tuple[str, ...]] = {}
    """Who may answer at a step instead; `budget` is the question for more budget."""

    def problem(self, step: str, by: str, user: str) -> str:
        """Why an answer that `user` gives in the name of `by` does not count; empty if it does."""
        names = self.step.get(step, self.answerers)
        if not names:
            return ""
        allowed = ", ".join(names)
        if user not in names:
            return f"{user} may not answer at {step}; these may: {allowed}"
        if by != user and user not in self.proxies:
            return f"{user} may not answer in the name of {by}; [inbox] proxies says who may"
        if by not in names:
            return f"{by} may not answer at {step}; these may: {allowed}"
        return ""


EVERYBODY = AnswerPolicy()
