"""The page on agent CLIs: what each is started with, and its truth table. All from the profiles."""

import msgspec

from interlock.carriers.cli.profiles import OutcomeRule, Profile, list_profiles

_HEAD = """# Agent CLIs

Made by `make docs` from the profiles in `packages/interlock/src/interlock/carriers/cli/profiles/`.
How to use them: [drive-agents.md](../howto/drive-agents.md).

"""


def render_agents_page() -> str:
    """Return the whole page."""
    rows = "".join(_line(profile) for profile in list_profiles())
    table = (
        "| agent | program | prompt by | resumes | works in | mode by default |\n"
        f"|---|---|---|---|---|---|\n{rows}\n"
    )
    return _HEAD + table + "\n".join(_section(profile) for profile in list_profiles())


def _line(known: Profile) -> str:
    where = {"same-folder": "in the same folder", "any-folder": "yes"}[known.resume_in]
    cells = (
        f"`{known.name}`",
        " or ".join(f"`{name}`" for name in known.commands),
        known.prompt,
        where if known.can_resume else "no",
        {"own": "its own folder", "project": "the project"}[known.folder],
        f"`{known.mode}`: {known.modes[known.mode].means}",
    )
    return f"| {' | '.join(cells)} |\n"


def _section(known: Profile) -> str:
    seen = {"run": "seen by running it", "documented": "known from its documentation"}[known.seen]
    settings = [name for name in known.options if name != "directories"]
    modes = "; ".join(
        f"`{name}`: {mode.means}{' (skips permissions)' if mode.unsafe else ''}"
        for name, mode in known.modes.items()
    )
    traps = "".join(f"- {trap}\n" for trap in known.traps)
    rows = "".join(_row(row) for row in known.outcome)
    resumed = f"{known.commands[0]} {' '.join(known.resume)}\n" if known.can_resume else ""
    return (
        f"## {known.title}\n\n"
        f"Its events are {seen}. Settings beside the common ones: "
        f"{', '.join(f'`{name}`' for name in settings)}.\n\n"
        f"```\n{known.commands[0]} {' '.join(known.argv)}\n{resumed}```\n\n"
        f"Variables it may see: {', '.join(f'`{name}`' for name in known.let_in)}.\n\n"
        f"Permission modes: {modes}.\n\nTraps:\n\n{traps}\n"
        f"| when | then | why |\n|---|---|---|\n{rows}"
    )


def _row(row: OutcomeRule) -> str:
    named = msgspec.structs.asdict(row.when)
    condition = ", ".join(
        f"{name} = {msgspec.json.encode(value).decode()}"
        for name, value in named.items()
        if value is not None
    )
    return f"| {f'`{condition}`' if condition else 'else'} | {row.then} | {row.why} |\n"
