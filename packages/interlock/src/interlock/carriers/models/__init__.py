"""Model endpoints as agents, over HTTP."""
