"""The command line: one file per group of verbs. Heavy modules are imported inside the verbs."""

from interlock.cli.app import main

__all__ = ["main"]
