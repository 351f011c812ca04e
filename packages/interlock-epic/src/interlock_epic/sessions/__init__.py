"""Run one agent session of an epic: its process, its signals, its record."""
