"""Export every stored result, and find results old enough to be forgotten."""

from collections.abc import Iterator

import msgspec

from interlock.system.errors import SourceError
from interlock.system.time import format_timestamp
from interlock_history.segment import decode_duration
from interlock_history.store import HistoryStore
from interlock_history.verdicts import judge

_encode = msgspec.json.Encoder().encode


def iterate_results(store: HistoryStore, wanted: str = "") -> Iterator[str]:
    """Yield each result as a JSON object, segment by segment, for tests with `wanted` in their
    id."""
    for each in store.list_segments():
        packed = store.read(each)
        names = store.read_names(packed.table) if packed else None
        if packed is None or names is None:
            continue
        try:
            segment = packed.unpack(names)
        except SourceError as error:
            store.problems.append(str(error))
            continue
        run = msgspec.to_builtins(segment.run)
        run |= {"variant": dict(segment.run.variant), "at": format_timestamp(segment.run.at)}
        failures = {failure.test: failure for failure in segment.failures}
        for test, bits, code in zip(segment.tests, segment.bits, segment.durations, strict=True):
            if wanted not in test:
                continue
            row = {**run, "test": test, "status": judge(bits), "seconds": decode_duration(code)}
            if failure := failures.get(test):
                row |= {"tries": failure.tries, "fingerprint": failure.fingerprint}
                row["excerpt"] = failure.excerpt
            yield _encode(row).decode()


def find_old_segments(store: HistoryStore, age: float, scope: str = "") -> list[str]:
    """Return the segments that are at least `age` seconds older than the newest. Unreadable ones
    stay."""
    times: dict[str, float] = {}
    wanted: list[str] = []
    for each in store.list_segments():
        packed = store.read(each)
        if packed is not None:
            times[each] = packed.run.at
            wanted += [each] if scope in ("", packed.run.scope) else []
    newest = max(times.values(), default=0.0)
    return [each for each in wanted if times[each] < newest - age]
