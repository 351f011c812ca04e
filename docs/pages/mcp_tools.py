"""The tools of `interlock mcp` as a page, made from the table that the server itself shows."""

from collections.abc import Collection, Iterable

from interlock.carriers.pull.messages import RESOURCE_TEMPLATES, TOOLS, Tool


def tools_page() -> str:
    """The tools as a page of the docs."""
    rows = "\n".join(map(_row, TOOLS))
    texts = "\n".join(f"- `{tool.name}`: {tool.description}" for tool in TOOLS)
    resources = "\n".join(
        f"| `{one['uriTemplate']}` | {one['description']} |" for one in RESOURCE_TEMPLATES
    )
    return (
        "# The tools of `interlock mcp`\n\nMade by `make docs` from the table of tools.\n\n"
        "| tool | takes (bold: needed) | gives | only reads |\n|---|---|---|---|\n"
        f"{rows}\n\n{texts}\n\n"
        f"| resource | what it is |\n|---|---|\n{resources}\n"
    )


def _row(tool: Tool) -> str:
    takes = _fields(tool.input_schema["properties"], tool.input_schema.get("required", ()))
    gives = _fields(tool.output_schema["properties"])
    return f"| `{tool.name}` | {takes} | {gives} | {'yes' if tool.only_reads else 'no'} |"


def _fields(names: Iterable[str], bold: Collection[str] = ()) -> str:
    return ", ".join(f"**`{name}`**" if name in bold else f"`{name}`" for name in names)
