"""A group of verbs of which one need not be named: `deliver PLAN` stands for `deliver run PLAN`."""

from typing import Any, ClassVar

from typer.core import TyperGroup


class DefaultVerb(TyperGroup):
    """Words that begin with no verb of the group belong to its first one, `run`."""

    default: ClassVar[str] = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [self.default, *args]
        return super().parse_args(ctx, args)
