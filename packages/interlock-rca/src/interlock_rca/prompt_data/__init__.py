"""The values that the prompts of root-cause analysis show."""
