"""The law: circuits as data, and pure functions that decide where a case goes. No I/O, no time."""
