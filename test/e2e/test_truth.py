# SPDX-License-Identifier: MIT
"""The profile tells the truth: known programs, by function and by label."""
import json
import math

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
        return {(name, type_name): (wanted.errors_off(read(profile, type_name)),
                                    read(profile, type_name), wanted)
                for name, read, all_wanted in self.groups(ended.text, interval)
                for type_name, wanted in all_wanted.items()}

    def check_law(self, interval, arguments=()):
        """Over 30 runs, each with its own random numbers.

        Every mean within 4 standard errors of the mean: it shows a bias of a fraction of one run's
        error. Every single figure within 5, and not more than 3 of a figure's 30 beyond 3. About
        10 of the 36 figures are independent of each other (bytes follow objects, labels follow
        functions), so the false-alarm rate is 10 x 6e-5 + 10 x 30 x 6e-7 + 10 x 4e-5, about 0.12 %
        a call.
        """
        runs = [self.run_truth(interval, arguments) for _ in range(N_RUNS)]
        faults = []
        for key in runs[0]:
            errors = [run[key][0] for run in runs]
            mean_off = sum(errors) / math.sqrt(N_RUNS)
            n_far = sum(abs(error) > 3 for error in errors)
            if abs(mean_off) > 4 or max(map(abs, errors)) > 5 or n_far > 3:
                faults.append(f"{key}: mean off by {mean_off:.1f} of its errors, worst single "
                              f"{max(errors, key=abs):.1f}, beyond 3: {n_far}; first run says "
                              f"{runs[0][key][1]}, truth {runs[0][key][2].truth}")
        self.assertFalse(faults, "\n".join(faults))

    def check_spread(self, interval, arguments=()):
        """The errors are as large as the law says, no smaller: the sum of 30 squares of leak_in_b's
        error is chi-square distributed; 6.5 and 78 are passed by 1 in a million each."""
        square_sum = sum(self.run_truth(interval, arguments)["leak_in_b", "inuse_objects"][0] ** 2
                         for _ in range(N_RUNS))
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
                self.assertEqual(read(profile, type_name), wanted.truth, (name, type_name))

    def test_total_alloc_and_inuse_of_a_run_without_a_label(self):
        """The unlabelled rest is there too: the sum over the values of a label is the total."""
        _, profile = self.run_profiled(["truth", "a_mib=10", "b_mib=10", "c_mib=10"],
                                       SAMPLE_BYTES=4096)
        for type_name, _ in profile.types:
            self.assertEqual(sum(profile.by_label("tenant", type_name).values()),
                             profile.total(type_name))
