"""What is different in processes that stand for a host, before anything else is loaded.

CLUSTER_CLOCK names a file with the seconds that this host's clock is ahead of the real one: the
kernel has only one clock. Only `time.time` is changed; monotonic clocks do not step on a real host
either. CLUSTER_SABOTAGE takes the check of epochs out, for the checker to notice; a coordinator
still ends its work on a run as soon as it learns that it has lost it.
"""

import mmap
import os
import struct
import time

_name = os.environ.get("CLUSTER_CLOCK")
if _name:
    with open(_name, "rb") as _file:  # noqa: PTH123 - nothing more is loaded than must be
        _ahead = mmap.mmap(_file.fileno(), 8, prot=mmap.PROT_READ)
    _real = time.time
    _read = struct.Struct("<d").unpack_from

    def _now() -> float:
        return _real() + float(_read(_ahead)[0])

    time.time = _now

if os.environ.get("CLUSTER_SABOTAGE"):
    from interlock.journal.ownership import Ownership

    def _believe(*_given: object) -> None:
        """It is ours, whatever the row says."""

    Ownership.check = _believe  # type: ignore[assignment,method-assign]
