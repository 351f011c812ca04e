"""The table of tools: schemas that hold, hints that are true, and what a client sees of it."""

import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from docs.pages.mcp_tools import tools_page
from interlock.carriers.pull.messages import RESOURCE_TEMPLATES, TOOLS, Tool, list_tool_specs
from tests.world.command_line import LIMIT, World
from tests.world.pulling import BEFORE, NOW, worker


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_well_described(tool: Tool) -> None:
    spec = tool.build_spec()
    assert re.fullmatch(r"interlock_[a-z]+", tool.name)
    assert set(tool.input_schema.get("required", ())) <= set(tool.input_schema["properties"])
    for schema in (spec["inputSchema"], spec["outputSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert not spec["annotations"]["destructiveHint"]
    assert f"`{tool.name}`" in tools_page()


def test_only_looks_are_called_looks() -> None:
    looks = [tool.name for tool in TOOLS if tool.only_reads]
    assert looks == ["interlock_status", "interlock_report"]


@pytest.mark.parametrize("mode", [BEFORE, NOW, "auto"])
async def test_a_client_sees_the_table(tmp_path: Path, mode: str) -> None:
    async with worker(World(tmp_path), mode) as client:
        tools = (await client.list_tools()).tools
        visible = [each.model_dump(by_alias=True, exclude_none=True) for each in tools]
        assert visible == list_tool_specs()
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            one["uriTemplate"] for one in RESOURCE_TEMPLATES
        ]
        if mode != NOW:
            assert client.server_info is not None
            assert client.server_info.name == "interlock"
        with pytest.raises(Exception, match="there is no 'run://1/briefing'"):
            await client.read_resource("run://1/briefing")
        with pytest.raises(Exception, match="there is no 'file:///etc/passwd'"):
            await client.read_resource("file:///etc/passwd")


def test_the_verb_shows_the_tools_without_serving(tmp_path: Path) -> None:
    assert World(tmp_path).say("mcp", "--json").json == {"tools": list_tool_specs()}


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    alone = "import sys; sys.modules['mcp'] = None; sys.argv = ['interlock', 'mcp']; "
    done = subprocess.run(
        [sys.executable, "-c", f"{alone}from interlock.cli.app import main; main()"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    wanted = "interlock: this needs the MCP SDK: pip install 'interlock[mcp]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", wanted)
