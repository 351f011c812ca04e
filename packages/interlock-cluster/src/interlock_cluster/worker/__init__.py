"""Agents on other hosts: what the coordinator offers, and the host that works on it."""
