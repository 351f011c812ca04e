"""Where installations made before the move to `config` look for the tables of interlock.toml."""

from interlock.epic.config import EpicTables

__all__ = ["EpicTables"]
