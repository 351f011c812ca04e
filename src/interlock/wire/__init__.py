"""The languages agents speak, and the one catalogue of every signal in them.

Knows text, lines, files and streams as data. Refuses to know disks, clocks and processes.
"""
