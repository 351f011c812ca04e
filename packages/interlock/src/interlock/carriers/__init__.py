"""Carriers ask agents: programs, functions, people, files, MCP and ACP workers, agent CLIs."""
