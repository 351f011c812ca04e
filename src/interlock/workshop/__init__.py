"""The workshop: where tasks are worked on, and where their work is checked and brought together."""
