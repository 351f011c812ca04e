"""Carriers: how a dispatch travels to whoever answers it, and how the answer comes back."""
