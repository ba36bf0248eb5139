#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Labels from Python: no package, only ctypes. Runs the same without the library.

    labelprof run -- python3 examples/labels.py
    labelprof top --by tenant labelprof.*.pb.gz
"""
import asyncio
import contextlib
import ctypes
from concurrent.futures import ThreadPoolExecutor

_library = ctypes.CDLL(None)
_set = getattr(_library, "labelprof_set", lambda key, value: -1)
_unset = getattr(_library, "labelprof_unset", lambda key: -1)


@contextlib.contextmanager
def labels(**wanted):
    """The calling thread's labels, until the end of the block."""
    for key, value in wanted.items():
        _set(key.encode(), str(value).encode())
    try:
        yield
    finally:
        for key in wanted:
            _unset(key.encode())


class labelled:
    """await labelled(coroutine, tenant="acme"): labels of a task, set while it runs and taken away
    while it waits, so that tasks which share the event loop's thread keep their own."""

    def __init__(self, coroutine, **wanted):
        self.coroutine, self.wanted = coroutine, wanted

    def __await__(self):
        result, error = None, None
        while True:
            try:
                with labels(**self.wanted):
                    waits_for = (self.coroutine.throw(error) if error
                                 else self.coroutine.send(result))
            except StopIteration as done:
                return done.value
            result = error = None
            try:
                result = yield waits_for
            except BaseException as thrown:  # CancelledError too: the task's own to handle
                error = thrown


kept = []


def work(tenant, n_bytes):
    with labels(tenant=tenant):
        kept.append(bytearray(n_bytes))


async def request(n_bytes):
    for _ in range(4):
        kept.append(bytearray(n_bytes))
        await asyncio.sleep(0)  # others run now


async def serve():
    await asyncio.gather(labelled(request(300_000), tenant="initech"),
                         labelled(request(100_000), tenant="hooli"))


if __name__ == "__main__":
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["acme", "globex", "acme"], [4_000_000, 1_000_000, 4_000_000]))
    asyncio.run(serve())
    print("done")
