"""Test a watcher of the file protocol against scenarios of a scripted coordinator."""
