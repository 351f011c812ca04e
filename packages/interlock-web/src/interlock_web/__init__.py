"""The web server: applications at their paths, behind one access guard. MCP workers are one."""
