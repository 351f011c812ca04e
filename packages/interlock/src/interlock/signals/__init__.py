"""The languages that agents answer in: files, batches, text signals, line signals, CLI streams.

Pure: bytes and text in, records out. Carriers read and write the files.
"""
