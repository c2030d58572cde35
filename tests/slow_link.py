"""A link with latency and bandwidth between two network namespaces, for ranks on one machine. Needs root, /dev/net/tun and `ip`.

The kernel's netem is not everywhere. So each namespace has a TUN device, and a process carries the packets from one to the other, each when
it would have arrived.
"""

import collections
import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import struct
import subprocess
import time

MTU = 65000
DEVICE = "ltc0"  # in each namespace
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000


def _ip(*words):
    subprocess.run(["ip", *words], check=True)


def _open_tun(namespace):
    """The calling process stays in that namespace."""
    with open(f"/run/netns/{namespace}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def _carry(tuns, delay_s, bytes_per_s):
    """For ever: packets between the two."""
    under_way = {tun: collections.deque() for tun in tuns}  # by destination: (time of arrival, packet)
    free_at = dict.fromkeys(tuns, 0.0)  # when the link is free, by destination
    other = dict(zip(tuns, reversed(tuns)))
    while True:
        now = time.monotonic()
        due = [queue[0][0] for queue in under_way.values() if queue]
        for tun in select.select(tuns, [], [], max(0.0, min(due) - now) if due else None)[0]:
            packet = os.read(tun, MTU + 100)
            to = other[tun]
            free_at[to] = max(free_at[to], time.monotonic()) + len(packet) / bytes_per_s
            under_way[to].append((free_at[to] + delay_s, packet))
        now = time.monotonic()
        for tun, queue in under_way.items():
            while queue and queue[0][0] <= now:
                with contextlib.suppress(OSError):  # a device that is down loses packets, as a link does
                    os.write(tun, queue.popleft()[1])


def can_make_links():
    return os.geteuid() == 0 and os.path.exists("/dev/net/tun") and shutil.which("ip") is not None


@contextlib.contextmanager
def slow_link(delay_ms, megabytes_per_s=float("inf")):
    """The commands to begin a rank's command with, two of them: each runs in its namespace, device ``ltc0``."""
    names = [f"ltc-{os.getpid()}-{rank}" for rank in range(2)]
    for name in names:
        _ip("netns", "add", name)
    child = 0
    try:
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                tuns = [_open_tun(name) for name in names]
                os.write(told, b"x")
                _carry(tuns, delay_ms / 1e3, megabytes_per_s * 1e6)
            finally:
                os._exit(1)
        os.close(told)
        if not os.read(ready, 1):
            raise RuntimeError("no TUN device")
        os.close(ready)
        for rank, name in enumerate(names):
            _ip("-n", name, "address", "add", f"10.77.0.{rank + 1}/24", "dev", DEVICE)
            _ip("-n", name, "link", "set", DEVICE, "up", "mtu", str(MTU))
            _ip("-n", name, "link", "set", "lo", "up")
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)
