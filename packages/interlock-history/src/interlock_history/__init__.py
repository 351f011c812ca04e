"""The memory of test results: which runs they came from, how they are kept, what they show."""
