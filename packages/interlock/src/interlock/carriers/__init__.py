"""Who answers a dispatch.

Programs, scripts, functions, people, files, MCP and ACP workers, agent CLIs.
"""
