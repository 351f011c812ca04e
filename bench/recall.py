"""How fast a failure is recalled among a million symptoms, and how fast families are found.

Makes its own failures and its own SQLite file, with the tables and indexes of the store: an exact
look-up by fingerprint, a fuzzy one by bands with scoring. Knows nothing of the report.
"""

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.analyst import KnownFailure, cluster_failures, recall_failure
from interlock_rca.analyst.masking import compute_fingerprint
from interlock_rca.analyst.similarity import (
    compute_bands,
    decode_traits,
    encode_traits,
    extract_traits,
)
from interlock_rca.records import Failure

SYMPTOMS = 1_000_000
CLUSTERED = 10_000
POOL = 2_000
"""Symptoms that are real failures; the others lend their features and share some of their bands."""
ASKED = 300
PER_BAND = 50
CANDIDATES = 20
_BANDS = 12
_SHARED = 3
_WORDS = (
    "account archive batch bucket cache channel cluster cursor device digest event filter folder "
    "gateway handle index invoice journal kernel ledger message network object packet policy queue "
    "record region report route schema session signal socket storage stream table token tunnel"
)
_TABLES = """
create table symptoms (symptom_id integer primary key, fingerprint text not null unique,
                       features text not null);
create table symptom_bands (band integer, symptom_id integer, primary key (band, symptom_id))
  without rowid;
create table staged (band integer, symptom_id integer);
"""


def speeds(workdir: Path, symptoms: int = SYMPTOMS, clustered: int = CLUSTERED) -> dict[str, float]:
    """Milliseconds of a look-up, exact and fuzzy, and seconds for the families of a large suite."""
    file = workdir / "symptoms.db"
    _fill(file, symptoms)
    with sqlite3.connect(file) as connection:
        found = {**_exact(connection), **_fuzzy(connection)}
    started = time.perf_counter()
    families = cluster_failures(
        [failure(cause % (clustered // 20), cause) for cause in range(clustered)]
    )
    found["cluster_s"] = time.perf_counter() - started
    found["families"] = len(set(families))
    if found["right_share"] < 0.9 or not clustered / 40 <= found["families"] <= clustered / 10:
        raise ValueError(f"the answers are wrong, so their speed tells nothing: {found}")
    return found


def failure(cause: int, run: int) -> Failure:
    """A failure of that cause, as this run shows it: other numbers, ids and test, same trouble."""
    words = _WORDS.split()
    noun, verb, place = (words[_draw(f"{cause} {part}") % len(words)] for part in "abc")
    owner = f"org.sample.{place}.{noun.title()}{verb.title()}{cause}"
    message = f"{noun} {cause} of the {verb} {place} is closed, request {_draw(f'r {run}') % 9999}"
    frames = "".join(
        f"\tat {owner}.{verb}{depth}({noun.title()}.java:{40 + cause % 400 + depth})\n"
        for depth in range(8)
    )
    return Failure(
        id=f"f{run}",
        test_name=f"test{verb.title()}{place.title()}{run % 7}",
        class_name=f"{owner}Test",
        type="java.lang.IllegalStateException",
        message=message,
        stack=f"java.lang.IllegalStateException: {message}\n{frames}",
    )


def _draw(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _fill(file: Path, symptoms: int) -> None:
    """As the store would have it after years, but made in a minute."""
    pool = [failure(cause, cause) for cause in range(min(POOL, symptoms))]
    known = [extract_traits(each) for each in pool]
    texts, real = [encode_traits(each) for each in known], [compute_bands(each) for each in known]
    connection = sqlite3.connect(file)
    connection.executescript("pragma journal_mode=off; pragma synchronous=off;" + _TABLES)
    rows = ((n, _name(n, pool), texts[n % len(pool)]) for n in range(symptoms))
    connection.executemany("insert into symptoms values (?, ?, ?)", rows)
    connection.executemany("insert into staged values (?, ?)", _all_bands(real, symptoms))
    connection.execute("insert or ignore into symptom_bands select * from staged order by 1, 2")
    connection.execute("drop table staged")
    connection.commit()
    connection.close()


def _name(number: int, pool: Sequence[Failure]) -> str:
    return (
        compute_fingerprint(pool[number]) if number < len(pool) else f"{_draw(f's {number}'):016x}"
    )


def _all_bands(real: Sequence[tuple[int, ...]], symptoms: int) -> Iterator[tuple[int, int]]:
    for number in range(symptoms):
        own = real[number % len(real)]
        if number < len(real):
            yield from ((band, number) for band in own)
            continue
        yield from ((band, number) for band in own[number % 5 : number % 5 + _SHARED])
        yield from ((_draw(f"{part} {number}"), number) for part in range(_BANDS - _SHARED))


def _exact(connection: sqlite3.Connection) -> dict[str, float]:
    names = [compute_fingerprint(failure(cause, cause)) for cause in range(0, POOL, POOL // ASKED)]

    def look(name: str) -> None:
        query = "select symptom_id, features from symptoms where fingerprint = ?"
        connection.execute(query, (name,)).fetchone()

    return _timed("exact", look, names)


def _fuzzy(connection: sqlite3.Connection) -> dict[str, float]:
    """Traits, bands, look-up and scoring: all that stands between a failure and its answer."""
    index = _Table(connection)
    right = 0

    def ask(cause: int) -> None:
        nonlocal right
        found = recall_failure(extract_traits(failure(cause, cause + 1)), index)
        right += found.match_id is not None and int(found.match_id) % POOL == cause

    causes = range(0, POOL, POOL // ASKED)
    return {**_timed("fuzzy", ask, causes), "right_share": right / len(causes)}


class _Table:
    """The index that `recall` asks, over the tables."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        shared: Counter[int] = Counter()
        query = (
            "select symptom_id from symptom_bands where band = ? order by symptom_id desc limit ?"
        )
        for band in bands:
            shared.update(row[0] for row in self._connection.execute(query, (band, PER_BAND)))
        likely = sorted(shared, key=lambda number: (-shared[number], -number))[:CANDIDATES]
        for number in likely:
            row = self._connection.execute(
                "select features from symptoms where symptom_id = ?", (number,)
            ).fetchone()
            yield KnownFailure(str(number), decode_traits(row[0]))


def _timed(name: str, work: Callable[[Any], None], items: Sequence[Any]) -> dict[str, float]:
    waits = []
    for item in items:
        started = time.perf_counter()
        work(item)
        waits.append((time.perf_counter() - started) * 1000)
    return {f"{name}_ms": median(waits), f"{name}_p95_ms": quantiles(waits, n=20)[-1]}
