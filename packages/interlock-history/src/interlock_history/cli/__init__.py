"""The verbs of interlock-history."""
