"""Epics: long work over many agent sessions, with checkpoints, recovery and approval."""
