"""What a pipeline shows of its test results: one digest, rendered for each place people look at."""
