"""A small package that brings an application, an agent and a settings table."""
