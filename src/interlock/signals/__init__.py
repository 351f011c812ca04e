"""The languages agents answer in.

Files, batches, text signals, line signals, CLI streams. Pure.
"""
