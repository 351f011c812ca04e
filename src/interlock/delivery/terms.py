"""Where installations made before the move to `config` look for the tables of interlock.toml."""

from interlock.delivery.config import DeliveryTables

__all__ = ["DeliveryTables"]
