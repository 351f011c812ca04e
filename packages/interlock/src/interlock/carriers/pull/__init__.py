"""Agents that fetch their work over the Model Context Protocol."""
