"""Supervision: agents as processes, started, watched by their clocks, and ended as a tree. Asyncio.

Knows processes, streams and time. Refuses to know what an agent is asked or what its words mean.
"""
