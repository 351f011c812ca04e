"""Proof by running: a user's command at single commits, until one fails whose parent passes."""
