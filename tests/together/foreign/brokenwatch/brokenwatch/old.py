"""Written for an interface that is gone; and something that is no application."""

from interlock import Application


class Oldwatch(Application):
    api = 0


class Strange:
    def __init__(self, name: str) -> None:
        self.name = name
