"""Agents that answer in files: signal.json, the batch manifest, and prompts answered by hand."""
