"""The door: one file per group of verbs. Heavy things are imported inside the verbs."""

from interlock.cli.app import main

__all__ = ["main"]
