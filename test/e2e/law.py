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
from dataclasses import dataclass


@dataclass
class Figure:
    truth: float
    parts: list  # (n objects, p, what a sampled one adds to the estimate)

    def variance(self):
        return sum(n * p * (1 - p) * weight * weight for n, p, weight in self.parts)

    def log_bound(self, estimate, theta):
        """log of E exp(theta X) exp(-theta estimate), X being the estimate's law."""
        return sum(n * math.log1p(p * math.expm1(theta * weight))
                   for n, p, weight in self.parts) - theta * estimate

    def errors_off(self, estimate, n_runs=1):
        """z of one run's estimate, or of the sum of n_runs of them; its sign tells the side."""
        scaled = Figure(self.truth * n_runs, [(n * n_runs, p, w) for n, p, w in self.parts])
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
        heaviest = max(weight for _, _, weight in self.parts)
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
        p = 1.0 if interval == 1 else -math.expm1(-max(size, 1) / interval)
        parts.append((n, p, (size if in_bytes else 1) / p))
    return Figure(sum(n * p * weight for n, p, weight in parts),
                  [part for part in parts if part[0]])


def figures(made, live, interval):
    """The four figures of the heap profile for one group of objects."""
    return {"alloc_objects": figure(made, interval, False),
            "alloc_space": figure(made, interval, True),
            "inuse_objects": figure(live, interval, False),
            "inuse_space": figure(live, interval, True)}
