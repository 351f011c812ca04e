"""`python -m tests.world.unprivileged read|write DB`: opens a database without root's powers.

Prints what went wrong. Tests run as root in some places, and root may write to read-only files.
"""

import ctypes
import sys
from pathlib import Path

from interlock.journal.connection import transaction
from interlock.journal.database import open_reader, open_writer
from interlock.system.errors import StoreError

_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def give_up_powers() -> None:
    """Drop every capability of this process; harmless where there are none."""
    header = _Header(_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None).capset(ctypes.byref(header), ctypes.byref(nothing)) != 0:
        raise OSError("capabilities cannot be dropped")


def main(how: str, db: Path) -> None:
    give_up_powers()
    try:
        if how == "read":
            with open_reader(db):
                pass
        else:
            with open_writer(db) as connection, transaction(connection) as raw:
                raw.execute("insert into blobs values (1, x'00', 0, x'00')")
    except StoreError as error:
        sys.stdout.write(f"{error}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
