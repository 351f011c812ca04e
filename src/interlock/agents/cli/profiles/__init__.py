"""Agent CLIs as data: one file each."""
