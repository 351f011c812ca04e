"""Rewrite the generated pages: circuits, guards, protocols, schemas and the references.

`make docs` runs it; a test keeps what is committed equal to what it would write.
"""

from pathlib import Path

import msgspec

from docs.pages.agents import render_agents_page
from docs.pages.cli import render_cli_page, render_exit_codes_page
from docs.pages.guards import render_guards_page
from docs.pages.mcp_tools import tools_page
from docs.pages.protocols import render_pages, render_schemas
from docs.pages.python import render_python_page
from docs.pages.settings import render_settings_page
from interlock.engine.circuit import ANY, Circuit, Step
from interlock.engine.circuit_file import build_circuit_schema
from interlock.engine.verify import verify
from interlock.runtime.circuits import list_installed_circuits, load_bundle
from interlock_rca.report.document import build_schema

DOCS = Path(__file__).parent


def pages() -> dict[str, str]:
    """Return every generated file under docs/, by its path."""
    schemas = {"circuit": build_circuit_schema(), "report": build_schema()}
    found = {f"{name}.schema.json": _json(schema) for name, schema in schemas.items()}
    for name, file in list_installed_circuits().items():
        found[f"circuits/{name}.md"] = circuit_page(name, file)
    found["circuits/rca-guards.md"] = render_guards_page()
    found["reference/agents.md"] = render_agents_page()
    found["reference/cli.md"] = render_cli_page()
    found["reference/exit-codes.md"] = render_exit_codes_page()
    found["reference/mcp-tools.md"] = tools_page()
    found["reference/python.md"] = render_python_page()
    found["reference/settings.md"] = render_settings_page()
    found |= {f"protocols/{name}": text for name, text in render_pages().items()}
    found |= {f"protocols/schemas/{name}": text for name, text in render_schemas().items()}
    return found


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def circuit_page(name: str, file: Path) -> str:
    """Return a page with the steps of a circuit, who answers there and where each may lead."""
    written = load_bundle(file).open()
    circuit = written.circuit
    rows = [
        f"| {_show_step(step)} | {_show_targets(circuit, step)} |"
        for step in circuit.steps.values()
    ]
    ends = [
        f"`{end}`" + ("" if healthy else " (unhealthy)") for end, healthy in circuit.ends.items()
    ]
    thresholds = [f"`{key}` = {value}" for key, value in circuit.thresholds.items()]
    return (
        f"# Circuit `{name}`\n\n"
        f"Made by `make docs` from [circuit.yaml](../../{file.relative_to(DOCS.parent)}). "
        f"`interlock circuit show {name}`\nprints every rule with its reason, "
        f"`interlock circuit draw {name}` draws them.\n\n"
        "| step | who answers | leads to |\n|---|---|---|\n" + "\n".join(rows) + "\n\n"
        f"- Ends: {', '.join(ends)}.\n- Thresholds: {', '.join(thresholds)}.\n"
        f"- A case costs at most {verify(written).worst_case.dispatches} dispatches.\n"
    )


def _show_step(step: Step) -> str:
    kind = ", a gate" if step.gate else ", writes outside" if step.writes else ""
    return f"`{step.name}` | {step.role}{kind}"


def _show_targets(circuit: Circuit, step: Step) -> str:
    """Return where the rules of a step lead, in their order, each once with the rules' ids."""
    targets: dict[str, list[str]] = {}
    for rule in circuit.rules:
        if rule.to and (step.name in rule.at or ANY in rule.at):
            targets.setdefault(rule.to, []).append(rule.id)
    return "; ".join(f"{to} ({', '.join(rules)})" for to, rules in targets.items())


def main() -> None:
    for name, text in pages().items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
