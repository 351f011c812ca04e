"""The web server: pages for people, an HTTP API for programs, MCP for agents."""
