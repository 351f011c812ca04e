"""Hosts as network namespaces with addresses of their own, joined by a switch of ours.

Each host has a TUN device; the switch, a thread of this process, carries packets between them. So
links can be cut, lose packets or be slow on any kernel: queueing disciplines such as netem are
often missing where tests run. Needs root and /dev/net/tun.
"""

import ctypes
import fcntl
import heapq
import os
import random
import selectors
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

_NEW_NETWORK = 0x40000000
_SET_DEVICE, _TUN, _BARE = 0x400454CA, 0x0001, 0x1000
_LARGEST = 2048
_MTU = "1400"
_NETWORK = "10.77.0"
T = TypeVar("T")


class CannotRunError(Exception):
    """A cluster cannot be built on this machine."""


class Link:
    """A host's way to the others, and what is wrong with it."""

    def __init__(self, name: str, namespace: str, address: str) -> None:
        self.name = name
        self.namespace = namespace
        self.address = address
        self.is_cut = False
        self.is_held = False
        """Whether packets wait until it is not, instead of being lost."""
        self.loss = 0.0
        self.delay = 0.0
        self.device = _open_device(namespace)
        _run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
        _run("ip", "-n", namespace, "link", "set", "eth0", "mtu", _MTU, "up")
        _run("ip", "-n", namespace, "link", "set", "lo", "up")

    def enter(self, words: Sequence[str]) -> list[str]:
        """The words of a command that runs on this host, which has a name of its own, too."""
        script = 'hostname "$1"; shift; exec "$@"'
        inside = ("unshare", "--uts", "sh", "-c", script, "sh", self.name, *words)
        return ["ip", "netns", "exec", self.namespace, *inside]

    def call_inside(self, act: Callable[[], T]) -> T:
        """What a function of this process returns; sockets that it makes belong to this host."""
        return _call_inside(self.namespace, act)

    def set_up(self, *, up: bool) -> None:
        """Switch the interface itself on or off, which the host notices."""
        _run("ip", "-n", self.namespace, "link", "set", "eth0", "up" if up else "down")

    def list_processes(self) -> list[int]:
        found = _run("ip", "netns", "pids", self.namespace)
        return [int(word) for word in found.split()]

    def remove(self) -> None:
        os.close(self.device)
        _run("ip", "netns", "delete", self.namespace)


def _open_device(namespace: str) -> int:
    """Make the host's device, and hold its other end. It belongs to the namespace of whoever opens
    it."""

    def make() -> int:
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(device, _SET_DEVICE, struct.pack("16sH", b"eth0", _TUN | _BARE))
        return device

    try:
        return _call_inside(namespace, make)
    except OSError as error:
        raise CannotRunError(f"no network device can be made: {error}") from None


def _call_inside(namespace: str, act: Callable[[], T]) -> T:
    """In a thread of its own, which goes there and does not come back."""

    def work() -> T:
        with Path("/run/netns", namespace).open("rb") as place:
            if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
        return act()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


class Network:
    """All links, and the switch between them."""

    def __init__(self, seed: int) -> None:
        if os.getuid() != 0:
            raise CannotRunError("network namespaces need root")
        self._chance = random.Random(seed)
        self._links: dict[bytes, Link] = {}
        self._late: list[tuple[float, int, int, bytes]] = []
        self._held: list[tuple[Link, Link, bytes]] = []
        self._count = 0
        self._selector = selectors.DefaultSelector()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._carry, name="switch", daemon=True)

    def add(self, name: str) -> Link:
        """A new host; before `start`."""
        namespace = f"interlock-{os.getpid()}-{name}"
        number = len(self._links) + 10
        try:
            _run("ip", "netns", "add", namespace)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CannotRunError(f"no network namespace can be made: {error}") from None
        link = Link(name, namespace, f"{_NETWORK}.{number}")
        self._links[bytes(int(part) for part in link.address.split("."))] = link
        self._selector.register(link.device, selectors.EVENT_READ, link)
        return link

    def start(self) -> None:
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        for link in self._links.values():
            with suppress(OSError, subprocess.CalledProcessError):
                link.remove()

    def _carry(self) -> None:
        while not self._over.is_set():
            wait = max(0.0, self._late[0][0] - time.monotonic()) if self._late else 0.2
            for key, _ in self._selector.select(min(wait, 0.2)):
                with suppress(OSError):  # nothing there any more, or the interface is down
                    while True:
                        self._take(key.data, os.read(key.data.device, _LARGEST))
            held, self._held = self._held, []
            for source, target, packet in held:
                self._pass(source, target, packet)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(self._late)
                with suppress(OSError):
                    os.write(device, packet)

    def _take(self, source: Link, packet: bytes) -> None:
        target = self._links.get(packet[16:20]) if packet[0] >> 4 == 4 else None
        if target is None or source.is_cut or target.is_cut:
            return
        self._pass(source, target, packet)

    def _pass(self, source: Link, target: Link, packet: bytes) -> None:
        if source.is_held or target.is_held:
            self._held.append((source, target, packet))
            return
        if any(link.loss and self._chance.random() < link.loss for link in (source, target)):
            return
        delay = source.delay + target.delay
        if not delay:
            with suppress(OSError):
                os.write(target.device, packet)
            return
        self._count += 1
        due = time.monotonic() + delay
        heapq.heappush(self._late, (due, self._count, target.device, packet))


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
