"""The window: one ASGI application on a socket, with a guard before it and parts inside it.

A part is a path and an application of its own; workers over MCP are the first. The parts know
nothing of each other.
"""
