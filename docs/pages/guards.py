"""The page about the guards of root-cause analysis, from the table that prompts are filled from."""

from interlock_rca.prompt_data.instructions import read_instructions


def render_guards_page() -> str:
    table = read_instructions()
    lines = (
        f"| {guard.mark} | {guard.name} | {' '.join(guard.families)} "
        f"| {table.conditions[guard.condition]} | {guard.sentence} |"
        for guard in table.guards
    )
    return (
        "# The guards of root-cause analysis\n\n"
        "Made by `make docs` from `interlock_rca/prompt_data/instructions.toml`. The prompts of a\n"
        "guard's families contain it, marked with its number, whenever its condition holds.\n\n"
        "| guard | name | families | when | sentence |\n|---|---|---|---|---|\n"
        + "\n".join(lines)
        + "\n"
    )
