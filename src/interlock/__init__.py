"""Interlock: a deterministic, durable coordinator for AI agents."""

__version__ = "0.1.0"
