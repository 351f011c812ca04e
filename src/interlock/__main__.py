"""`python -m interlock`, and where the installed commands begin.

Until the command line is loaded there is nothing to tidy up: Ctrl-C just ends the process.
"""

import os
import signal
from importlib import import_module
from types import FrameType
from typing import Any

INTERRUPTED = 130


def main() -> None:
    """The command `interlock`."""
    _load("interlock.cli.app").main()


def asterisk() -> None:
    """The command `asterisk`."""
    _load("interlock.cli.by_hand")
    _load("interlock.cli.app").asterisk()


def _load(module: str) -> Any:
    before = signal.signal(signal.SIGINT, _leave)
    try:
        return import_module(module)
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
