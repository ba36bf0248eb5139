# SPDX-License-Identifier: MIT
"""Every snapshot is an exact cut: what lived at one instant, taken while threads allocate."""
import pprof
from victim import EXACT, Case


class Cut(Case):
    limit_s = 500

    def check_tokens(self, n_threads, n_dumps, token_bytes=64, **options):
        """N threads, each holding one token or two: a snapshot with fewer than N or more than 2N
        is no instant. Totals only grow from dump to dump, frees as well as allocations."""
        ended = self.run_ok(["token", n_threads, n_dumps, token_bytes], timeout=400,
                            OUT=f"{self.dir}/cut.%n.pb.gz", **EXACT, **options)
        self.assertEqual(len(ended.paths), n_dumps + 1)
        made_before = freed_before = 0
        for number in range(1, n_dumps + 1):
            path = self.dir / f"cut.{number}.pb.gz"
            profile = pprof.read(path)
            made = profile.flat("alloc_objects")["new_token"]
            live = profile.flat("inuse_objects")["new_token"]
            self.assertTrue(n_threads <= live <= 2 * n_threads, f"dump {number}: {live} tokens")
            self.assertEqual(profile.flat("inuse_space")["new_token"], live * token_bytes)
            self.assertGreaterEqual(made, made_before, f"dump {number}")
            self.assertGreaterEqual(made - live, freed_before, f"dump {number}")
            for sample in profile.samples:
                self.assertGreaterEqual(min(sample.values), 0, (number, sample.stack))
            made_before, freed_before = made, made - live
        last = pprof.read(self.dir / f"cut.{n_dumps + 1}.pb.gz")
        self.assertEqual(last.flat("inuse_objects")["new_token"], 0)
        self.assertGreater(made_before, n_threads)

    def test_thousands_of_snapshots_under_load(self):
        self.check_tokens(4, 2000)

    def test_snapshots_while_short_cycles_run_beside_them(self):
        self.check_tokens(2, 500, CYCLE_MS=10)

    def test_snapshots_of_one_moving_thread(self):
        self.check_tokens(1, 300, token_bytes=100000)

    def test_snapshots_of_many_threads(self):
        self.check_tokens(32, 200)
