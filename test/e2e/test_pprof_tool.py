# SPDX-License-Identifier: MIT
"""Go's own pprof is the judge: it opens the file and answers with functions, labels and lines."""
import re

from victim import EXACT, TOP, Case


class Judge(Case):
    def setUp(self):
        super().setUp()
        ended, _ = self.run_profiled(["truth", "a_mib=30", "b_mib=10", "c_mib=100"], **EXACT)
        self.profile = ended.paths[0]

    def ask(self, *options):
        return self.go_pprof(*options, self.profile)

    def test_top_opens_with_in_use_space(self):
        text = self.ask("-top", "-unit=B", "-nodefraction=0")
        self.assertIn("Type: inuse_space", text)
        self.assertRegex(text, r"31457280B\s.*leak_in_a")
        self.assertRegex(text, r"10485744B\s.*leak_in_b")
        self.assertNotRegex(text, r"[1-9]\d*B\s.*churn_in_c")

    def test_each_sample_type(self):
        self.assertRegex(self.ask("-top", "-unit=B", "-sample_index=alloc_space"),
                         r"\d+B\s.*churn_in_c")
        self.assertRegex(self.ask("-top", "-sample_index=inuse_objects"), r"218453\s.*leak_in_b")
        self.assertRegex(self.ask("-top", "-sample_index=alloc_objects"), r"\d+\s.*make_in_d")

    def test_tags(self):
        text = self.ask("-tags", "-unit=B")
        self.assertIn("tenant: Total", text)
        self.assertRegex(text, r"31457280\.0B \(.*%\): acme")
        self.assertRegex(text, r"10485744\.0B \(.*%\): globex")
        self.assertRegex(text, r"bytes: Total")

    def test_traces_show_stacks_with_labels(self):
        text = self.ask("-traces")
        block = next(part for part in text.split("-----------+") if "leak_in_b" in part)
        self.assertRegex(block, r"tenant:\s+globex")
        self.assertRegex(block, r"bytes:\s+48B")
        self.assertRegex(block, r"leak_in_b\s+leak_b\s+main")

    def test_tagfocus_by_text_and_by_size(self):
        text = self.ask("-top", "-unit=B", "-tagfocus=tenant=acme")
        self.assertIn("leak_in_a", text)
        self.assertNotIn("leak_in_b", text)
        text = self.ask("-top", "-unit=B", "-tagfocus=bytes=48b:48b")
        self.assertIn("leak_in_b", text)
        self.assertNotIn("leak_in_a", text)

    def test_tagroot_makes_a_label_a_frame(self):
        self.assertRegex(self.ask("-top", "-cum", "-unit=B", "-tagroot=tenant"),
                         r"31457280B\s.*acme")

    def test_lines_of_a_program_with_debug_information(self):
        text = self.ask("-list=^leak_in_b$", f"-source_path={TOP}")
        self.assertIn("truth.c", text)
        self.assertRegex(text, r"10MB.*malloc\(size\)")
        self.assertRegex(self.ask("-top", "-lines", "-nodefraction=0"), r"leak_in_b .*truth\.c:\d+")

    def test_peek_and_raw(self):
        self.assertRegex(self.ask("-peek=^leak_in_a$"), r"leak_a\n")
        text = self.ask("-raw")
        self.assertIn("PeriodType: space bytes", text)
        self.assertIn("Period: 1", text)
        self.assertRegex(text, r"inuse_space/bytes\[dflt\]")

    def test_no_complaint_on_opening(self):
        self.assertEqual(self.go_pprof("-top", self.profile, ask_for="stderr"), "")


class Difference(Case):
    def test_diff_base_between_two_dumps(self):
        self.run_ok(["leak", 100, 1000, "dump", "heap", "a.pb.gz", "more", 50, 2000,
                     "dump", "heap", "b.pb.gz"], **EXACT)
        text = self.go_pprof("-top", "-unit=B", f"-diff_base={self.dir}/a.pb.gz",
                             f"{self.dir}/b.pb.gz")
        self.assertRegex(text, r"100000B\s.*leak_more")
        self.assertNotRegex(text, r"[1-9]\d*B\s.*leak_here")

    def test_sampled_profiles_open_too(self):
        ended, _ = self.run_profiled(["truth", "a_mib=100", "b_mib=30", "c_mib=1000"])
        text = self.go_pprof("-top", ended.paths[0])
        for function in "leak_in_a", "leak_in_b":
            self.assertIn(function, text)
        found = re.search(r"([\d.]+)[MG]B total", text)
        self.assertTrue(found, text)
