"""The small world of `interlock demo`: repositories with planted faults, and a red night."""
