"""The memory of test results: which run they came from, how they are kept, what they say."""
