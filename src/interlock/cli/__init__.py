"""The door: one file per group of verbs. Heavy things are imported inside the verbs."""

from interlock.cli.door import main

__all__ = ["main"]
