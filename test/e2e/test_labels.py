# SPDX-License-Identifier: MIT
"""Labels: what the API sets is what the profile says, within its limits and the program's."""
import os

from victim import EXACT, Case


def labels_of(profile, function):
    """The labels of the one sample whose leaf is this function, without the thread's name."""
    (sample,) = [sample for sample in profile.samples if sample.stack[0] == function]
    texts = {key: value for key, value in sample.labels.items() if key != "thread_name"}
    numbers = {key: value for key, value in sample.numbers.items() if key != "bytes"}
    return {**texts, **numbers}


class Api(Case):
    def profile_of(self, *argv, **options):
        return self.run_profiled(list(argv), **{**EXACT, **options})[1]

    def assert_labels(self, profile, wanted):
        for function, labels in wanted.items():
            self.assertEqual(labels_of(profile, function), labels, function)

    def test_set_replace_number_unset(self):
        self.assert_labels(self.profile_of("labels_api"), {
            "no_labels": {},
            "one_label": {"tenant": "acme"},
            "replaced": {"tenant": "globex"},
            "number": {"tenant": "globex", "rows": (12345, "rows")},
            "number_over_text": {"tenant": (-7, ""), "rows": (12345, "rows")},
            "text_over_number": {"tenant": (-7, ""), "rows": "many"},
            "after_unset": {},
            "empty_value": {},
        })

    def test_scope_brings_back_the_value_before(self):
        self.assert_labels(self.profile_of("labels_api"), {
            "in_scope": {"phase": "scope"},
            "in_inner_scope": {"phase": "inner", "step": "one"},
            "after_inner_scope": {"phase": "scope"},
            "after_scope": {"phase": "outer"},
        })

    def test_capture_attach_release(self):
        self.assert_labels(self.profile_of("labels_api"), {
            "captured_elsewhere": {"b": (2, "widgets"), "c": "3"},
            "after_attach": {"a": "1", "b": (2, "widgets")},
            "after_attach_null": {},
        })

    def test_limits_of_keys_values_and_count(self):
        profile = self.profile_of("labels_api")
        self.assert_labels(profile, {
            "key_64": {"k" * 64: "v"},
            "long_value": {"long": "€" * 85},
            "thirty_two": {f"k{i:02}": "w" if i == 31 else "v" for i in range(32)},
        })
        self.assertEqual(labels_of(profile, "bad_utf8")["bad"].lower(),
                         r"ok\xff\xc3(\xed\xa0\x80.")

    def test_without_the_library_every_call_says_so(self):
        ended = self.run_bare(["labels_api", "absent"])
        self.assertEqual((ended.status, ended.text, ended.errors), (0, "absent\n", ""))

    def test_disabled_every_call_is_refused_and_harmless(self):
        ended = self.run_under(["leak", 10, 100, "dump", "heap", "-"], DISABLE=1)
        self.assertEqual((ended.status, ended.text, ended.errors, ended.paths),
                         (0, "dump -1\ndone\n", "", []))

    def test_labels_travel_with_tasks_through_a_pool(self):
        profile = self.profile_of("label_pool")
        live = profile.totals("inuse_objects", lambda s: [(s.stack[0], s.labels.get("tenant"))])
        for tenant in range(8):
            self.assertEqual(live["run_task", f"tenant-{tenant}"], 50)
        self.assertEqual(live["between_tasks", None], 400)

    def test_python_sets_labels_through_ctypes(self):
        program = ("import ctypes; l = ctypes.CDLL(None); "
                   "assert l.labelprof_set(b'lang', b'python') == 0; x = ['y' * 1000000]; "
                   "b = [bytearray(2000000) for _ in range(20)]")
        _, profile = self.run_profiled(["/usr/bin/python3", "-c", program])
        self.assertGreater(profile.by_label("lang", "alloc_space")["python"], 20000000)


class Process(Case):
    def profile_of(self, *argv, **options):
        return self.run_profiled(["set_labels", *argv], **{**EXACT, **options})[1]

    def test_labels_of_the_whole_process_are_percent_decoded(self):
        profile = self.profile_of(LABELS="service=pay%2Cments,zone=a%3Db,pct=100%25")
        self.assertEqual(labels_of(profile, "leak_here"),
                         {"service": "pay,ments", "zone": "a=b", "pct": "100%"})

    def test_api_beats_thread_beats_process(self):
        profile = self.profile_of("service=api", LABELS="service=process,thread_name=process,z=9")
        (sample,) = profile.with_function("leak_here")
        self.assertEqual(sample.labels,
                         {"service": "api", "thread_name": "set_labels", "z": "9"})
        for path in self.dir.glob("*.pb.gz"):
            path.unlink()
        (sample,) = self.profile_of("thread_name=api").with_function("leak_here")
        self.assertEqual(sample.labels["thread_name"], "api")

    def test_label_keys_is_an_allow_list_of_string_labels(self):
        profile = self.profile_of("tenant=acme", "request=77", "n:=5", LABEL_KEYS="tenant,zone",
                                  LABELS="zone=x,other=y")
        (sample,) = profile.with_function("leak_here")
        self.assertEqual(sample.labels, {"tenant": "acme", "zone": "x"})
        self.assertEqual(sample.numbers["n"], (5, ""))

    def test_trace_and_span_ids_are_left_out_unless_asked_for(self):
        profile = self.profile_of("trace_id=abc", "span_id=def", "tenant=acme")
        self.assertEqual(labels_of(profile, "leak_here"), {"tenant": "acme"})
        for path in self.dir.glob("*.pb.gz"):
            path.unlink()
        profile = self.profile_of("trace_id=abc", "span_id=def", "tenant=acme",
                                  LABEL_KEYS="trace_id")
        self.assertEqual(labels_of(profile, "leak_here"), {"trace_id": "abc"})

    def test_label_sources_none(self):
        profile = self.profile_of("tenant=acme", LABEL_SOURCES="none")
        self.assertEqual(labels_of(profile, "leak_here"), {})


class Bounded(Case):
    limit_s = 300

    def test_a_million_label_values_through_one_thread(self):
        """Memory within its budget, totals exact, what lives shown under its own label."""
        bare_kib = int(self.run_bare("labels_million").text)
        ended, profile = self.run_profiled("labels_million", timeout=200, SAMPLE_BYTES=1)
        self.assertLess(int(ended.text) - bare_kib, (64 + 8) * 1024)
        self.assertEqual((profile.comment("refused"), profile.comment("lost")), ("0", "0"))

        def by_request(type_name):
            return {key: value for key, value in profile.totals(
                type_name, lambda s: [s.labels.get("request")] if "serve_request" in s.stack
                else []).items() if value}
        made, live = by_request("alloc_objects"), by_request("inuse_objects")
        self.assertEqual(sum(made.values()), 1000000)
        self.assertEqual(live, {f"req-{i}": 1 for i in range(999000, 1000000)})
        self.assertGreater(made["(other)"], 1000000 - 4096 - 1)
        self.assertLessEqual(len(made), 4096 + 1)

    def test_label_sets_beyond_their_places_are_other(self):
        """16 places for totals and 16 sets alive beside them; the totals are all there."""
        _, profile = self.run_profiled(["labels_million", 200, 200], MAX_LABEL_SETS=16, **EXACT)
        live = profile.totals("inuse_objects", lambda s: [s.labels.get("request")]
                              if "serve_request" in s.stack else [])
        self.assertEqual(sum(live.values()), 200)
        named = [key for key, value in live.items() if value and key != "(other)"]
        self.assertLessEqual(len(named), 32)
        self.assertGreaterEqual(len(named), 16)
        self.assertEqual(live["(other)"], 200 - len(named))
        others = [s for s in profile.samples if s.labels.get("request") == "(other)"]
        self.assertEqual({s.labels["thread_name"] for s in others}, {"labels_million"})

    def test_totals_of_a_label_never_shrink(self):
        """Between two dumps a set may get a place or live objects; no total goes back."""
        ended = self.run_ok(["labels_dumps", 40], OUT=f"{self.dir}/d.%n.pb.gz", MAX_LABEL_SETS=16,
                            **EXACT)
        before = {}
        for number in range(1, 41):
            profile = self.checked(self.dir / f"d.{number}.pb.gz")
            totals = profile.totals("alloc_objects", lambda s: [s.labels.get("request")]
                                    if "serve_request" in s.stack else [])
            for key, value in before.items():
                self.assertGreaterEqual(totals[key], value, f"{key} in dump {number}")
            self.assertEqual(sum(totals.values()), number * 1000)
            before = totals
        self.assertEqual(ended.status, 0)

    def test_memory_limit_doubles_the_interval_and_says_so(self):
        """A megabyte for records, a hundred thousand live objects: figures stay within the law.

        The interval is not known beforehand: the largest in force, which the comments tell, bounds
        the error. 6 of its standard errors: false alarms 2e-9 a figure."""
        ended = self.run_ok(["leak", 400000, 100], MAX_MEMORY="2m", SAMPLE_BYTES=1, timeout=120)
        profile = self.checked(ended.paths[0])
        interval = int(profile.comment("interval_bytes_now") or 0)
        self.assertGreater(interval, 1, f"comments do not tell the interval: {profile.comments}")
        error = (400000 * interval / 100) ** 0.5
        for type_name in "inuse_objects", "alloc_objects":
            self.assertAlmostEqual(profile.flat(type_name)["leak_here"], 400000, delta=6 * error)
        self.assertEqual(profile.period, 1)
