"""Checks and environments as they are written in YAML plans and in interlock.toml.

Knows the two tables a project or a plan may have, and which of them counts where both name the
same. Refuses to know Markdown, and where interlock.toml lies.
"""

from collections.abc import Iterable

import msgspec

from interlock.delivery.checks.records import CHECK_TIMEOUT, Check, Environment
from interlock.delivery.plan.plan import Plan
from interlock.delivery.plan.plan_commands import code, exit_code, prefix, timeout, words
from interlock.delivery.plan.plan_tables import place_name, spread
from interlock.delivery.plan.plan_words import one_line, plain_title
from interlock.system.errors import SourceError


class CheckText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A check as a user writes it: `[[check]]` in interlock.toml, `checks:` in a YAML plan."""

    name: str
    command: str | list[str]
    environment: str | list[str] = ""
    exit_code: int | str = ""
    timeout: float | str = ""
    purpose: str = ""


class EnvironmentText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An environment as a user writes it: `[[environment]]`, or `environments:` in a YAML plan."""

    name: str
    prefix: str | list[str] = ""
    description: str = ""


def checks_of(text: CheckText, line: int = 0) -> list[Check]:
    """The checks that are written there: one for each environment named, or one for all."""
    name = plain_title(code(text.name))
    if not name:
        raise SourceError("a check has no name; give it one")
    named = text.environment
    check = Check(
        name=name,
        command=words(text.command),
        exit_code=exit_code(text.exit_code),
        timeout=timeout(text.timeout, CHECK_TIMEOUT),
        purpose=one_line(text.purpose),
        line=line,
    )
    return spread(check, named if isinstance(named, str) else ",".join(named))


def environment_of(text: EnvironmentText, line: int = 0) -> Environment:
    """The environment that is written there."""
    before = prefix(text.prefix) if isinstance(text.prefix, str) else _taken(text.prefix)
    return Environment(place_name(text.name), before, one_line(text.description), line)


def _taken(given: list[str]) -> tuple[str, ...]:
    return words(given) if given else ()


def with_project(
    plan: Plan, checks: Iterable[CheckText], environments: Iterable[EnvironmentText]
) -> Plan:
    """The plan with the project's checks and environments; of two with one name, the plan's."""
    own = {check.name for check in plan.checks}
    places = {environment.name for environment in plan.environments}
    try:
        usual = [check for text in checks for check in checks_of(text)]
        around = [environment_of(text) for text in environments]
    except SourceError as error:
        raise SourceError(f"interlock.toml: {error}") from None
    return msgspec.structs.replace(
        plan,
        checks=(*(check for check in usual if check.name not in own), *plan.checks),
        environments=(
            *(place for place in around if place.name not in places),
            *plan.environments,
        ),
    )
