# SPDX-License-Identifier: MIT
"""Threads: their names, start routines and ids as labels; small stacks, short lives."""
from victim import EXACT, Case


class Names(Case):
    WANTED = {"in_main": "thread_names", "in_renamed_main": "captain",
              "in_self_named": "self-named", "in_other_named": "other-named",
              "in_prctl_named": "prctl-named", "in_std_started": "thread_names",
              "in_inheritor": "captain"}
    STARTS = {"in_self_named": "self_named_start", "in_other_named": "other_named_start",
              "in_prctl_named": "prctl_named_start", "in_std_started": "std_start",
              "in_inheritor": "inheritor_start"}

    def of(self, function):
        (sample,) = [sample for sample in self.profile.samples if sample.stack[0] == function]
        return sample

    def test_thread_name_initial_renamed_by_self_by_other_by_prctl(self):
        _, self.profile = self.run_profiled("thread_names", **EXACT)
        for function, name in self.WANTED.items():
            self.assertEqual(self.of(function).labels.get("thread_name"), name, function)

    def test_new_threads_inherit_their_creators_api_labels(self):
        _, self.profile = self.run_profiled("thread_names", **EXACT)
        for function in self.WANTED:
            team = "red" if function in ("in_prctl_named", "in_std_started") else None
            self.assertEqual(self.of(function).labels.get("team"), team, function)

    def test_thread_start_is_the_start_routines_symbol(self):
        _, self.profile = self.run_profiled("thread_names", THREAD_LABELS="start", **EXACT)
        for function, start in self.STARTS.items():
            labels = self.of(function).labels
            self.assertEqual(labels.get("thread_start"), start, function)
            self.assertNotIn("thread_name", labels)

    def test_thread_id_is_a_number_of_its_own(self):
        _, self.profile = self.run_profiled("thread_names", THREAD_LABELS="id,name", **EXACT)
        ids = {function: self.of(function).numbers["thread_id"][0] for function in self.WANTED}
        self.assertEqual(ids["in_main"], ids["in_renamed_main"])
        self.assertTrue(all(number > 0 for number in ids.values()))
        self.assertNotEqual(ids["in_main"], ids["in_self_named"])

    def test_thread_labels_none(self):
        _, self.profile = self.run_profiled("thread_names", THREAD_LABELS="none", **EXACT)
        self.assertEqual(self.of("in_self_named").labels, {})

    def test_stacks_of_threads_show_the_start_routine_and_no_frame_of_ours(self):
        _, self.profile = self.run_profiled("thread_names", **EXACT)
        for function, start in self.STARTS.items():
            stack = self.of(function).stack
            self.assertEqual(stack[:2], [function, start])
            self.assertNotIn("[truncated]", stack)


class Lives(Case):
    def test_a_thousand_short_threads_some_on_the_smallest_stack(self):
        _, profile = self.run_profiled("short_threads", **EXACT)
        self.assertEqual(profile.flat("inuse_objects")["in_short_thread"], 900)
        self.assertEqual(profile.flat("inuse_objects")["in_tiny_stack"], 100)
        self.assertEqual(profile.flat("inuse_objects")["churn"], 0)
        self.assertEqual(profile.flat("alloc_objects")["churn"], 50000)
        self.assertEqual((profile.comment("refused"), profile.comment("lost")), ("0", "0"))

    def test_short_threads_at_the_default_interval(self):
        self.run_ok("short_threads")

    def test_a_program_without_threads_gets_none_and_no_fd(self):
        bare = self.run_bare("single_threaded")
        self.assertEqual(self.run_ok("single_threaded").text, bare.text)
        self.assertEqual(self.run_ok("single_threaded", **EXACT).text, bare.text)
