"""The MCP server an agent's client starts: it takes work from a coordinator and brings answers."""
