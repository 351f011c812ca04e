"""Calibration.

Agents measured against known answers, with statistics, scorecards and comparisons.
"""
