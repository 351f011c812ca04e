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
    load_patiently("interlock.cli.app").main()


def load_patiently(module: str) -> Any:
    """Import a module; Ctrl-C meanwhile ends the process without a traceback."""
    before = signal.signal(signal.SIGINT, _leave)
    try:
        return import_module(module)
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
