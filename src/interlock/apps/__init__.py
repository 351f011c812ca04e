"""Applications: circuits with their prompts. Tables, not code; strangers to each other."""
