"""The verbs of interlock-rca."""
