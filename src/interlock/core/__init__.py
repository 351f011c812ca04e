"""The law: circuits, cases and the decisions that move them. Pure: no I/O, no clock, no chance."""
