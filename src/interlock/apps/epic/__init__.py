"""Epics: long work over many sessions. Checkpoints, statuses and what git may look like. Pure."""
