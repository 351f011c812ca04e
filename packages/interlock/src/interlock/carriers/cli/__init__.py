"""Agent CLIs as supervised processes: profiles, timeouts, health, what their end means."""
