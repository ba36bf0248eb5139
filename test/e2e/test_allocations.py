# SPDX-License-Identifier: MIT
"""Every door: each allocation counted once, each free, with every allocator behind us."""
from pathlib import Path

from victim import EXACT, PROGRAMS, Case

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
JEMALLOC = LIBRARIES / "libjemalloc.so.2"
TCMALLOC = LIBRARIES / "libtcmalloc_minimal.so.4"
OWN = PROGRAMS / "own_allocator.so"


def mimalloc():
    return next(iter(sorted(LIBRARIES.glob("libmimalloc.so.*"))))


# Every realloc that succeeds is a free and an allocation by its caller.
REALLOC = {
    "first": (100 * 3 + 10 * 2 + 3, 100 * (100 + 104 + 100) + 10 * (10000 + 40) + 200 + (1 << 20),
              1, 100),
    "in_place": (100, 11000, 100, 11000),
    "to_zero": (0, 0, 0, 0),
    "failed": (0, 0, 0, 0),
    "failed_by_limit": (0, 0, 0, 0),
    "from_null": (10, 3000, 10, 3000),
    "grown": (6, sum(1 << lg for lg in range(21, 27)), 1, 64 << 20),
    "shrunk": (10, 500, 10, 500),
    "array": (10, 8000, 10, 8000),
    "moved": (200, 100 * (16 + 5000), 200, 100 * (16 + 5000)),
}


class Exact(Case):
    def profile_of(self, *argv, **options):
        return self.run_profiled(list(argv), **{**EXACT, **options})[1]

    def assert_counts(self, profile, wanted, find="flat"):
        """wanted: {function: (made, bytes made, live, bytes live)}."""
        for function, counts in wanted.items():
            found = tuple(getattr(profile, find)(type_name)[function]
                          for type_name, _ in profile.types)
            self.assertEqual(found, counts, function)
        self.assertEqual((profile.comment("refused"), profile.comment("lost")), ("0", "0"))


class Doors(Exact):
    def test_realloc_moved_in_place_failed_to_zero_from_null(self):
        self.assert_counts(self.profile_of("realloc_cases"), REALLOC)

    def test_realloc_content_and_errno_at_the_default_interval(self):
        self.same_bare_and_under(["realloc_cases"])
        self.same_bare_and_under(["realloc_cases"], SAMPLE_BYTES=1)

    def test_realloc_content_when_some_are_sampled(self):
        self.run_ok("realloc_cases", SAMPLE_BYTES=2000)

    def test_calloc_zeroes_small_and_leaves_large_untouched(self):
        profile = self.profile_of("calloc_cases")
        self.assert_counts(profile, {"large": (4, 1 << 30, 4, 1 << 30)})
        self.assertEqual(profile.flat("inuse_objects")["small"], 100)
        self.assertEqual(profile.flat("alloc_objects")["small"], 200)
        self.assertEqual(profile.flat("inuse_space")["small"], 30000)

    def test_calloc_when_some_are_sampled(self):
        self.run_ok("calloc_cases", SAMPLE_BYTES=1000)

    def test_aligned_family(self):
        names = ["by_memalign", "by_aligned_alloc", "by_posix_memalign", "by_huge_alignment",
                 "by_valloc", "by_pvalloc"]
        self.assert_counts(self.profile_of("memalign_cases"),
                           {name: (20, 2000, 10, 1000) for name in names})

    def test_every_operator_new_and_delete(self):
        two, one = (40, 4000, 20, 2000), (20, 2000, 10, 1000)
        self.assert_counts(self.profile_of("new_all"), {
            "by_new": two, "by_new_array": two, "by_new_nothrow": one, "by_new_array_nothrow": one,
            "by_new_aligned": two, "by_new_array_aligned": two, "by_new_aligned_nothrow": one,
            "by_new_array_aligned_nothrow": one})

    def test_objects_of_size_zero(self):
        self.assert_counts(self.profile_of("zero_size"), {
            "nothing": (70, 0, 50, 0), "nothing_times_five": (30, 0, 30, 0)})

    def test_free_in_another_thread_keeps_the_labels_of_birth(self):
        profile = self.profile_of("free_in_other_thread")
        self.assert_counts(profile, {"make_one": (1000, 100000, 100, 10000)})
        makers = [s for s in profile.samples if s.stack[0] == "make_one"]
        self.assertEqual({s.labels.get("owner") for s in makers}, {"maker"})

    def test_handlers_that_allocate_interrupt_the_profiler(self):
        """A free lost in a handler would stay as a live object for ever."""
        ended, profile = self.run_profiled(["signal_storm", 3000, 2], behind=[str(OWN)], **EXACT)
        n_handled = int(ended.text)
        self.assertGreater(n_handled, 1000)
        made = profile.flat("alloc_objects")["in_handler"]
        refused = int(profile.comment("refused"))
        self.assertLessEqual(made, n_handled)
        self.assertGreaterEqual(made + refused, n_handled)
        self.assertEqual(profile.comment("lost"), "0")
        self.assertLessEqual(profile.flat("inuse_objects")["in_handler"], 2)
        self.assertEqual(profile.flat("inuse_objects")["in_thread"], 0)
        self.assertEqual(profile.flat("inuse_objects")["allocate"], 0)

    def test_handlers_that_allocate_at_the_default_interval(self):
        self.run_ok(["signal_storm", 1000, 2], behind=[str(OWN)])


class Behind(Exact):
    """Another allocator preloaded behind the library: exactly N objects, none twice, none missed."""
    N = 3000

    def exact(self, library):
        profile = self.profile_of("exact_new", str(self.N), behind=[str(library)])
        n, half = self.N, self.N // 2
        once = (n, 48 * n, half, 48 * half)
        wanted = {"exact_new": once, "exact_new_array": once, "exact_new_aligned": once,
                  "exact_calloc": once, "exact_malloc": (2 * n, 96 * n, half, 48 * half),
                  "exact_realloc": (n, 96 * n, half, 96 * half)}
        self.assert_counts(profile, wanted)

    def check_behind(self, library):
        self.assertTrue(Path(library).exists(), library)
        self.exact(library)
        options = dict(EXACT, behind=[str(library)])
        for name in "zero_size", "free_in_other_thread", "short_threads", "exceptions":
            self.assertEqual(self.run_under(name, **options).status, 0, name)
        self.assertEqual(self.run_under(["spawn_children", 2], **options).status, 0)
        self.assertEqual(self.run_under(["fork_children", "storm"], **options).status, 0)

    def test_glibc(self):
        profile = self.profile_of("exact_new", str(self.N))
        self.assertEqual(profile.total("alloc_objects", lambda s: "exact_" in s.stack[0]),
                         7 * self.N)

    def test_jemalloc(self):
        self.check_behind(JEMALLOC)

    def test_tcmalloc(self):
        self.check_behind(TCMALLOC)

    def test_mimalloc(self):
        self.check_behind(mimalloc())

    def test_one_of_the_programs_own(self):
        self.check_behind(OWN)

    def test_jemalloc_family_in_a_program_linked_with_it(self):
        self.assert_counts(self.profile_of("mallocx_cases"), {
            "by_mallocx": (40, 4000, 10, 1000), "by_rallocx": (10, 5000, 10, 5000)})

    def test_realloc_cases_on_jemalloc(self):
        self.assert_counts(self.profile_of("realloc_cases", behind=[str(JEMALLOC)]), REALLOC)

    def test_jemalloc_mixed_with_sampling(self):
        self.run_ok(["exact_new", "200000"], behind=[str(JEMALLOC)], SAMPLE_BYTES=1000)

