"""The floor.

Files, locks, git, strict JSON, processes, text, time, HTTP. Knows nothing of Interlock.
"""
