"""Measure the ranking of culprits on real fixes that were undone in real histories.

    python -m bench.regressions mine     find cases; clones and test runs go below --work
    python -m bench.regressions rows     compute the clues of every candidate of every case
    python -m bench.regressions fit      fit the weights on the development projects
    python -m bench.regressions choose   tell which clues do not pay on these projects
    python -m bench.regressions report   judge them and rewrite docs/analyst-eval.md

Rows and recipes are data: commit hashes, labels and numbers. `fit` and `report` need nothing else.
"""
