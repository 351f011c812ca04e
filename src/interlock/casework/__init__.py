"""Casework: gathers what the steps of an analysis need, and carries out what they decide.

Stands between the pure tables of `apps/rca` and the world: store, git, analyst.
"""
