"""The door: one file per group of verbs. Heavy things are imported inside the verbs."""

from interlock.cli.app import asterisk, main

__all__ = ["asterisk", "main"]
