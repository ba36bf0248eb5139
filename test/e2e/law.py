# SPDX-License-Identifier: MIT
"""The sampling law, as a test must know it.

An object of s bytes is sampled with p = 1 - exp(-max(s, 1) / T), T being the interval, and then
stands for 1/p objects of s bytes. So for n objects the estimate of their number has the variance
n (1 - p) / p, and that of their bytes s² times as much; objects are independent of each other.
"""
import math
from dataclasses import dataclass


@dataclass
class Figure:
    truth: int
    variance: float

    def errors_off(self, estimate):
        """How many standard errors the estimate is off; infinite if it had to be exact."""
        off = estimate - self.truth
        # Each record is rounded to a whole number when written: half a unit is no error.
        if self.variance < 1:
            return 0.0 if abs(off) <= 1 else math.copysign(math.inf, off)
        return off / math.sqrt(self.variance)


def figure(sizes, interval, in_bytes):
    """sizes: {bytes of an object: number of such objects}."""
    truth = variance = 0
    for size, n in sizes.items():
        scale = size if in_bytes else 1
        p = 1.0 if interval == 1 else -math.expm1(-max(size, 1) / interval)
        truth += n * scale
        variance += n * scale * scale * (1 - p) / p
    return Figure(truth, variance)


def figures(made, live, interval):
    """The four figures of the heap profile for one group of objects."""
    return {"alloc_objects": figure(made, interval, False),
            "alloc_space": figure(made, interval, True),
            "inuse_objects": figure(live, interval, False),
            "inuse_space": figure(live, interval, True)}
