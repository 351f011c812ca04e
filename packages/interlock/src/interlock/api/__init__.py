"""The use cases: open a project, start, resume, stop, answer, explain, replay, verify."""
