"""Measure the ranking of culprits on real fixes that were undone in real histories.

    python -m bench.regressions mine     find cases; clones and test runs go below --work
    python -m bench.regressions rows     compute the clues of every candidate of every case

Rows and recipes are data: commit hashes, labels and numbers.
"""
