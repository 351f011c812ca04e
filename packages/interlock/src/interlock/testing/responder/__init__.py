"""The agent's side of the file protocol, as a reference."""
