"""Every error Interlock raises on purpose, sorted by whose fault it is.

InterlockError
├── CircuitError        the table is wrong: fix the circuit
│   └── ExpressionError an expression is wrong, or reads a missing value
├── StateError          valid, but not possible now
├── StoreError          the database cannot be used
│   ├── NoDatabaseError no database exists yet
│   ├── NoRightsError   the database user lacks rights: waiting does not help
│   └── NotFoundError   it has no such run, case or question
├── SourceError         a file or system outside cannot be read
└── UsageError          a flag, an argument or a setting is wrong: change it

A docstring is the default message. A user sees the message, never a traceback.
"""


class InterlockError(Exception):
    """Something went wrong."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class CircuitError(InterlockError):
    """The circuit is wrong."""

    def __init__(self, message: str = "", *, file: str = "", line: int = 0) -> None:
        self.problem = message
        self.file = file
        self.line = line
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(f"{place}{message}" if message else "")


class ExpressionError(CircuitError):
    """The expression is wrong."""


class StateError(InterlockError):
    """This is not possible in the present state."""


class StoreError(InterlockError):
    """The database cannot be used."""


class NoDatabaseError(StoreError):
    """There is no database yet."""


class NoRightsError(StoreError):
    """This user may not use the database."""


class NotFoundError(StoreError):
    """There is no such run, case or question."""


class SourceError(InterlockError):
    """The file or system cannot be read."""


class UsageError(InterlockError):
    """This request is not valid."""
