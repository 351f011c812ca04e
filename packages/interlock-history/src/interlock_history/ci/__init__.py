"""The digest of a pipeline's test results, rendered for every place where people look."""
