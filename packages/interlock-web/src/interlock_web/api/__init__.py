"""The HTTP API: what the pages show, answers, and an agent's work, as JSON below /api/v1."""
