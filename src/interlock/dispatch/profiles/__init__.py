"""Profiles: what is known of each agent CLI, as data. One TOML file for each, read by `profile.py`.

Knows how a CLI is started, spoken to and judged. Refuses to start anything.
"""
