# SPDX-License-Identifier: MIT
"""The sampling law, as a test must know it.

An object of s bytes is sampled with p = 1 - exp(-max(s, 1) / T), T being the interval, and then
stands for 1/p objects of s bytes. So for n objects the estimate of their number has the variance
n (1 - p) / p, and that of their bytes s² times as much; objects are independent of each other.

How far off is an estimate? In standard errors, as long as many samples make it up. Where a few do
(an 8-byte object at 512 KiB stands for 65,536), the normal law is no guide, so the distance is
measured by Chernoff's bound on the chance to be as far off: P ≤ exp(-z²/2), z being the number of
standard errors wherever the normal law holds. A limit on z thus has a false-alarm rate below
exp(-z²/2) for every mix of sizes: 3.4e-4 at 4 (3e-5 where the law is normal), 3.7e-6 at 5.
"""
import math
from dataclasses import dataclass, replace


@dataclass
class Part:
    n: int         # objects of one size
    p: float       # the chance of each to be sampled
    log_q: float   # log of 1 - p, exact where p rounds to 1
    weight: float  # what a sampled one adds to the estimate

    def log_moment(self, theta):
        """log of E exp(theta x), x being what one object adds."""
        growth = self.p * math.expm1(theta * self.weight)
        if growth > -0.5:
            return math.log1p(growth)
        sampled = math.log(self.p) + theta * self.weight
        high, low = max(sampled, self.log_q), min(sampled, self.log_q)
        return high + math.log1p(math.exp(low - high))


@dataclass
class Figure:
    truth: float
    parts: list

    def variance(self):
        return sum(part.n * part.p * math.exp(part.log_q) * part.weight ** 2
                   for part in self.parts)

    def log_bound(self, estimate, theta):
        """log of E exp(theta X) exp(-theta estimate), X being the estimate's law."""
        return sum(part.n * part.log_moment(theta) for part in self.parts) - theta * estimate

    def errors_off(self, estimate, n_runs=1):
        """z of one run's estimate, or of the sum of n_runs of them; its sign tells the side."""
        scaled = Figure(self.truth * n_runs, [replace(part, n=part.n * n_runs)
                                              for part in self.parts])
        off = estimate - scaled.truth
        # Each record is rounded to a whole number when written: that much is no error.
        off = math.copysign(max(abs(off) - n_runs * len(self.parts), 0), off)
        if not off:
            return 0.0
        if scaled.variance() < 1e-9:
            return math.copysign(math.inf, off)
        return math.copysign(math.sqrt(-2 * min(scaled.least_log_bound(off), 0)), off)

    def least_log_bound(self, off):
        """The bound is convex in theta: shrink an interval around its lowest point."""
        heaviest = max(part.weight for part in self.parts)
        far = min(60 / math.sqrt(self.variance()), 500 / heaviest)
        low, high = (0.0, far) if off > 0 else (-far, 0.0)
        for _ in range(60):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            if self.log_bound(self.truth + off, left) < self.log_bound(self.truth + off, right):
                high = right
            else:
                low = left
        return self.log_bound(self.truth + off, low)


def figure(sizes, interval, in_bytes):
    """sizes: {bytes of an object: number of such objects}."""
    parts = []
    for size, n in sizes.items():
        log_q = -math.inf if interval == 1 else -max(size, 1) / interval
        p = -math.expm1(log_q)
        parts.append(Part(n, p, log_q, (size if in_bytes else 1) / p))
    parts = [part for part in parts if part.n]
    return Figure(sum(part.n * part.p * part.weight for part in parts), parts)


def figures(made, live, interval):
    """The four figures of the heap profile for one group of objects."""
    return {"alloc_objects": figure(made, interval, False),
            "alloc_space": figure(made, interval, True),
            "inuse_objects": figure(live, interval, False),
            "inuse_space": figure(live, interval, True)}
