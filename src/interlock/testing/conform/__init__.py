"""Tries somebody else's watcher against the file protocol."""
