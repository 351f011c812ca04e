"""Needs what is not installed."""

raise RuntimeError("the licence has run out")
