"""The built-in analyst: answers every step of root-cause analysis without a model."""
