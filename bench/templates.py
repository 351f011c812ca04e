"""How fast log lines find their template: a million lines of many messages, and of harder kinds.

Makes its own lines, the same in every run. Runs in this process: mining is pure.
"""

import random
import re
import time
from collections.abc import Callable

from interlock.rca.analyst.templates import TemplateMiner

LINES = 1_000_000
MESSAGES = 5_000
_BLOCK = 10_000
_WORDS = [
    "cache",
    "worker",
    "session",
    "queue",
    "request",
    "reply",
    "packet",
    "volume",
    "index",
    "shard",
    "lease",
    "timer",
    "router",
    "buffer",
    "token",
    "thread",
    "stream",
    "cursor",
    "batch",
    "table",
    "mirror",
    "replica",
    "leader",
    "follower",
    "snapshot",
    "segment",
    "opened",
    "closed",
    "retried",
    "moved",
    "dropped",
    "sent",
    "received",
    "flushed",
    "merged",
    "split",
    "expired",
    "renewed",
    "for",
    "from",
    "to",
    "after",
    "before",
    "with",
    "without",
    "into",
    "under",
    "over",
    "while",
    "because",
    "until",
]
_DIGITS = re.compile(r"\d+")


def speeds() -> dict[str, float]:
    """Lines a second for each kind of line."""
    return {f"{name}_lines_s": _speed(make(), count) for name, (make, count) in KINDS.items()}


def _digits_redrawn() -> Callable[[random.Random], str]:
    chance = random.Random(1)
    messages = [_message(chance) for _ in range(MESSAGES)]

    def line(chance: random.Random) -> str:
        return _DIGITS.sub(lambda found: _number(chance, len(found[0])), chance.choice(messages))

    return line


def _ids_drawn() -> Callable[[random.Random], str]:
    made = _digits_redrawn()
    return lambda chance: f"{made(chance)} id={chance.getrandbits(128):032x}"


def _names_drawn() -> Callable[[random.Random], str]:
    made = _digits_redrawn()
    letters = "abcdefghijklmnopqrstuvwxyz"
    return lambda chance: f"user {''.join(chance.choices(letters, k=8))} {made(chance)}"


KINDS: dict[str, tuple[Callable[[], Callable[[random.Random], str]], int]] = {
    "digits": (_digits_redrawn, LINES),
    "ids": (_ids_drawn, LINES // 10),
    "names": (_names_drawn, LINES // 10),
}


def _message(chance: random.Random) -> str:
    words = chance.choices(_WORDS, k=chance.randint(4, 12))
    for _ in range(chance.randint(1, 4)):
        words.insert(chance.randrange(len(words) + 1), _number(chance, chance.randint(1, 8)))
    return " ".join(words)


def _number(chance: random.Random, length: int) -> str:
    return "".join(chance.choices("0123456789", k=length))


def _speed(line: Callable[[random.Random], str], count: int) -> float:
    chance, miner, spent = random.Random(7), TemplateMiner(), 0.0
    for _ in range(count // _BLOCK):
        block = "".join(f"{line(chance)}\n" for _ in range(_BLOCK)).encode()
        started = time.perf_counter()
        miner.add_block(block)
        spent += time.perf_counter() - started
    return count / spent
