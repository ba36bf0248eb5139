# SPDX-License-Identifier: MIT
"""Labels without a call of ours: OpenTelemetry thread context, custom-labels, the environment."""
from victim import EXACT, Case, program

OTEL = ["writer_otel.so", "writer_otel_desc.so", "writer_otel_static.so"]


def labels_at(profile, function):
    """The label sets of what this function leaked, without the threads' names: {as text: objects}."""
    found = {}
    for sample in profile.samples:
        if sample.stack[0] == function:
            labels = {k: v for k, v in sample.labels.items() if k != "thread_name"}
            text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
            found[text] = found.get(text, 0) + sample.values[2]
    return found


class Writers(Case):
    def profile_of(self, case, *libraries, **options):
        for path in self.dir.glob("*.pb.gz"):
            path.unlink()
        argv = ["label_sources", case, *map(program, libraries)]
        return self.run_profiled(argv, **{**EXACT, **options})[1]

    def assert_at(self, profile, wanted):
        self.assertEqual({function: labels_at(profile, function) for function in wanted}, wanted)


class OpenTelemetry(Writers):
    def test_states_of_a_record(self):
        for library in OTEL:
            with self.subTest(library):
                self.assert_at(self.profile_of("otel_states", library), {
                    "leak_none": {"": 1},
                    "leak_set": {"route=/cart,tenant=globex": 1},
                    "leak_invalid": {"": 2},
                    "leak_changed": {"late=known now,tenant=globex,user.id=7": 1},
                    "leak_api": {"late=known now,tenant=by hand,user.id=7": 1},
                })

    def test_ids_only_where_asked_for(self):
        profile = self.profile_of("otel_states", OTEL[0], LABEL_KEYS="trace_id,span_id,route")
        self.assert_at(profile, {"leak_set": {
            f"route=/cart,span_id={'cd' * 8},trace_id={'ab' * 16}": 1}})

    def test_not_read_unless_named_among_the_sources(self):
        self.assert_at(self.profile_of("otel_states", OTEL[0], LABEL_SOURCES="api,custom"),
                       {"leak_set": {"": 1}, "leak_api": {"tenant=by hand": 1}})

    def test_a_record_of_65535_bytes(self):
        self.assert_at(self.profile_of("otel_full", OTEL[0]), {
            "leak_set": {"route=ä\\xff,tenant=" + "0" * 250 + "254": 1}})

    def test_pointers_to_nowhere(self):
        self.assert_at(self.profile_of("otel_garbage", OTEL[0]),
                       {"leak_set": {"tenant=ok": 1}, "leak_garbage": {"": 8}})

    def test_threads_older_than_the_library(self):
        for library in OTEL:
            with self.subTest(library):
                self.assert_at(self.profile_of("otel_threads", library), {
                    "leak_thread": {"tenant=of the thread": 1},
                    "leak_set": {"tenant=of main": 1}, "leak_none": {"": 1}})

    def test_a_library_loaded_late_is_found_before_the_cycle_ends(self):
        """But for one whose variable lies where the threads have room for it from the start: no
        thread's own notes tell of that, so it takes the scan of the next cycle."""
        for library in OTEL:
            cycle_ms = 50 if "static" in library else 3600000
            with self.subTest(library):
                self.assert_at(self.profile_of("otel_woken", library, CYCLE_MS=cycle_ms), {
                    "leak_set": {"tenant=of main": 1},
                    "leak_thread": {"tenant=of the thread": 1}})

    def test_in_a_signal_handler(self):
        for library in OTEL:
            with self.subTest(library):
                self.assert_at(self.profile_of("otel_handler", library),
                               {"leak_set": {"tenant=acme": 1}, "leak_handler": {"tenant=acme": 1}})

    def test_library_unloaded_while_labels_are_set_and_loaded_again(self):
        for library in OTEL:
            with self.subTest(library):
                self.assert_at(self.profile_of("otel_unload", library), {
                    "leak_set": {"tenant=acme": 1}, "leak_unloaded": {"": 2},
                    "leak_again": {"tenant=again": 1}})


    def test_unloaded_under_threads_that_read(self):
        for library in OTEL:
            with self.subTest(library):
                for path in self.dir.glob("*.pb.gz"):
                    path.unlink()
                _, profile = self.run_profiled(["label_reload", 150, program(library)], **EXACT)
                labels = {sample.labels.get("tenant")
                          for sample in profile.with_function("allocate")}
                self.assertLessEqual(labels, {None, "acme"})
                self.assertIn("acme", labels)

    def test_a_child_of_fork_without_the_process_context(self):
        ended = self.run_ok(["label_sources", "otel_fork", program(OTEL[0])], **EXACT)
        self.assertEqual(len(ended.paths), 2)
        for path in ended.paths:
            self.assert_at(self.checked(path), {"leak_again": {"tenant=acme": 1}})


class CustomLabels(Writers):
    def test_states_of_a_set(self):
        for library in "writer_custom.so", "writer_custom_v0.so":
            with self.subTest(library):
                self.assert_at(self.profile_of("custom_states", library), {
                    "leak_none": {"": 2}, "leak_set": {"bad=a\\xffz,tenant=acme": 1},
                    "leak_changed": {"route=/": 1} if library == "writer_custom.so"
                    else {"bad=a\\xffz,tenant=acme": 1}})

    def test_only_known_versions_of_the_abi(self):
        for library in "writer_custom_v2.so", "writer_custom_odd.so":
            with self.subTest(library):
                self.assert_at(self.profile_of("one_label", library), {"leak_set": {"": 1}})

    def test_twenty_thousand_labels(self):
        (labels,) = labels_at(self.profile_of("custom_many", "writer_custom.so"), "leak_set")
        self.assertEqual(labels, ",".join(
            [f"k{i:05}=k{i:05}" for i in range(2, 33)] + ["long=" + "x" * 256]))

    def test_ten_thousand_labels_are_looked_at(self):
        profile = self.profile_of("custom_many", "writer_custom.so",
                                  LABEL_KEYS="k09998,nearly_last,beyond")
        self.assert_at(profile, {"leak_set": {"k09998=k09998,nearly_last=y": 1}})

    def test_pointers_to_nowhere(self):
        self.assert_at(self.profile_of("custom_garbage", "writer_custom.so"),
                       {"leak_set": {"tenant=ok": 1}, "leak_garbage": {"": 5}})

    def test_two_definers_the_first_with_labels_counts(self):
        self.assert_at(self.profile_of("custom_two", "writer_custom.so", "writer_custom_v0.so"),
                       {"leak_set": {"tenant=first": 1}, "leak_changed": {"tenant=second": 2}})

    def test_sets_swapped_at_each_poll_of_a_task(self):
        profile = self.profile_of("custom_polls", "writer_custom.so")
        self.assert_at(profile, {"leak_none": {"": 400},
                                 "leak_set": {f"tenant=task-{i}": 50 for i in range(8)}})


class Hops(Case):
    def test_tasks_that_share_a_thread_keep_their_labels(self):
        for how in "epoll", "coroutines":
            with self.subTest(how):
                for path in self.dir.glob("*.pb.gz"):
                    path.unlink()
                _, profile = self.run_profiled(["label_hops", how], **EXACT)
                self.assertEqual(labels_at(profile, "step"),
                                 {f"tenant=tenant-{i}": 50 for i in range(8)})
                self.assertEqual(labels_at(profile, "between_turns"), {"": 400})


class Exported(Case):
    def test_by_the_program_itself(self):
        _, profile = self.run_profiled(["label_exports"], **EXACT)
        self.assertEqual(labels_at(profile, "leak_here"), {"route=/cart,tenant=acme": 1})


class Environment(Case):
    def labels_of(self, extra, *argv, **options):
        for path in self.dir.glob("*.pb.gz"):
            path.unlink()
        _, profile = self.run_profiled(["set_labels", *argv], extra=extra, **{**EXACT, **options})
        (labels,) = labels_at(profile, "leak_here")
        return labels

    def test_service_attributes_and_baggage(self):
        self.assertEqual(self.labels_of({
            "OTEL_SERVICE_NAME": "cart 100%",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=loses, deployment.environment=pre%2Cprod",
            "BAGGAGE": "user.id = 7 ;ttl=3;private, deployment.environment=loses"}),
            "deployment_environment=pre,prod,service_name=cart 100%,user_id=7")

    def test_below_labels_of_the_process_and_of_threads(self):
        extra = {"OTEL_SERVICE_NAME": "env", "BAGGAGE": "thread_name=env,a=env,b=env"}
        self.assertEqual(self.labels_of(extra, "a=api", LABELS="service_name=process,b=process"),
                         "a=api,b=process,service_name=process")

    def test_trace_only_where_asked_for(self):
        extra = {"TRACEPARENT": "00-" + "1f" * 16 + "-" + "2e" * 8 + "-01"}
        self.assertEqual(self.labels_of(extra), "")
        self.assertEqual(self.labels_of(extra, LABEL_KEYS="trace_id"), "trace_id=" + "1f" * 16)

    def test_what_is_wrong_in_them_is_passed_over(self):
        self.assertEqual(self.labels_of({
            "OTEL_SERVICE_NAME": "",
            "OTEL_RESOURCE_ATTRIBUTES": ",,=x,novalue,bad%zz=1,a=%4,pprof::b=1,empty=,ok=1" +
                                        "," + "k" * 65 + "=1",
            "BAGGAGE": ";;;", "TRACEPARENT": "00-zz"}, LABEL_KEYS=""), "ok=1")

    def test_switched_off(self):
        extra = {"OTEL_SERVICE_NAME": "cart", "BAGGAGE": "a=1"}
        self.assertEqual(self.labels_of(extra, "k=v", LABEL_SOURCES="api,otel,custom"), "k=v")
