"""Interlock beside its peers and beside plain SQLite, measured in one interleaved run.

`python -m bench` is the door. `programs/` holds what is measured, one process each; this
package starts them, checks what they did, and writes docs/benchmarks.md and docs/benchmarks.svg.
"""
