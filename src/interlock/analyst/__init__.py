"""The analyst: answers the steps of a root cause analysis from logs, history and git, by rules.

No model, no key, no network. Synchronous. Its parts are commands too: `interlock analyst`.
"""
