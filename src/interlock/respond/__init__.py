"""The agent's side of the file protocol: find what waits, have it answered, write the answer."""
