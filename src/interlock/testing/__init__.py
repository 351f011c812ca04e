"""For authors of circuits, applications and carriers.

Scripted agents, contract suites, lint, conform.
"""
