# SPDX-License-Identifier: MIT
"""The profile tells the truth: known programs, by function and by label."""
import json

from law import figures
from victim import EXACT, Case

N_RUNS = 30


class Truth(Case):
    limit_s = 600

    def groups(self, text, interval):
        """From what the program printed: [(function or label, how to read it, its figures)]."""
        for function, group in json.loads(text).items():
            sizes = {int(size): counts for size, counts in group["sizes"].items()}
            wanted = figures({size: made for size, (made, _) in sizes.items()},
                             {size: live for size, (_, live) in sizes.items()}, interval)
            yield function, lambda profile, t, f=function: profile.flat(t)[f], wanted
            if group["label"]:
                yield (f"tenant={group['label']}",
                       lambda profile, t, v=group["label"]: profile.by_label("tenant", t)[v],
                       wanted)

    def run_truth(self, interval, arguments=()):
        ended, profile = self.run_profiled(["truth", *arguments], timeout=120,
                                           SAMPLE_BYTES=interval)
        for path in ended.paths:
            path.unlink()
        self.assertEqual((profile.comment("refused"), profile.comment("lost")), ("0", "0"))
        self.assertEqual(profile.period, interval)
        return {(name, type_name): (read(profile, type_name), wanted)
                for name, read, all_wanted in self.groups(ended.text, interval)
                for type_name, wanted in all_wanted.items()}

    def check_law(self, interval, arguments=()):
        """Over 30 runs, each with its own random numbers: every mean within 4 standard errors of
        the mean (a bias of a fraction of one run's error shows), every single figure within 5.5.

        About 10 of the 36 figures are independent of each other (bytes follow objects, labels
        follow functions). The false-alarm rate is below 10 x 2 x 3.4e-4 + 10 x 30 x 2 x 2.7e-7,
        0.7 % a call by Chernoff's bound; where the law is normal (law.py) it is 0.07 %.
        """
        runs = [self.run_truth(interval, arguments) for _ in range(N_RUNS)]
        faults = []
        for key, (_, wanted) in runs[0].items():
            estimates = [run[key][0] for run in runs]
            mean_off = wanted.errors_off(sum(estimates), N_RUNS)
            worst = max((wanted.errors_off(estimate) for estimate in estimates), key=abs)
            if abs(mean_off) > 4 or abs(worst) > 5.5:
                faults.append(f"{key}: mean off by {mean_off:.1f} of its errors, worst single "
                              f"{worst:.1f}; mean {sum(estimates) / N_RUNS:.0f}, "
                              f"truth {wanted.truth:.0f}")
        self.assertFalse(faults, "\n".join(faults))

    def check_spread(self, interval, arguments=()):
        """The errors are as large as the law says, no smaller: the sum of 30 squares of leak_in_b's
        error is chi-square distributed; it is below 6.5 or above 78 in 7 runs of a million."""
        square_sum = 0
        for _ in range(N_RUNS):
            estimate, wanted = self.run_truth(interval, arguments)["leak_in_b", "inuse_objects"]
            square_sum += (estimate - wanted.truth) ** 2 / wanted.variance()
        self.assertGreater(square_sum, 6.5)
        self.assertLess(square_sum, 78)

    def test_law_at_the_default_interval(self):
        self.check_law(512 * 1024)

    def test_law_at_a_small_interval(self):
        self.check_law(16 * 1024, ["a_mib=60", "b_mib=20", "c_mib=2048"])

    def test_law_for_objects_larger_and_smaller_than_the_interval(self):
        self.check_law(3000, ["a_mib=10", "b_mib=2", "c_mib=100", "b_bytes=1", "d_objects=4000"])

    def test_spread_is_the_laws(self):
        self.check_spread(512 * 1024, ["a_mib=1", "c_mib=1", "e=0", "d_objects=1000"])

    def test_exact_at_interval_1(self):
        ended, profile = self.run_profiled("truth", timeout=300, **EXACT)
        self.assertEqual((profile.comment("refused"), profile.comment("lost")), ("0", "0"))
        self.assertEqual(profile.comment("sample_bytes"), "1")
        for name, read, all_wanted in self.groups(ended.text, 1):
            for type_name, wanted in all_wanted.items():
                self.assertEqual(read(profile, type_name), round(wanted.truth), (name, type_name))

    def test_total_alloc_and_inuse_of_a_run_without_a_label(self):
        """The unlabelled rest is there too: the sum over the values of a label is the total."""
        _, profile = self.run_profiled(["truth", "a_mib=10", "b_mib=10", "c_mib=10"],
                                       SAMPLE_BYTES=4096)
        for type_name, _ in profile.types:
            self.assertEqual(sum(profile.by_label("tenant", type_name).values()),
                             profile.total(type_name))
