"""Interlock on many machines: PostgreSQL, coordinators and workers."""
