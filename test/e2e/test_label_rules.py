# SPDX-License-Identifier: MIT
"""LABELPROF_RULES: labels by the frames of a stack, on binaries with and without symbols; and
labelprof rules check, which must say the same."""
import gzip
import os
import re
import subprocess
import unittest

from test_command import Profile
from victim import EXACT, TOP, Case, program

LABELPROF = TOP / "build" / "labelprof"
# Bytes rule_frames leaks in one `run`, by what it was doing.
TEXT, FILL, CACHED, HIDDEN = 1000, 2000, 3000, 4000


class Rules(Case):
    def rules(self, text, name="x.rules"):
        path = self.dir / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def stripped(self, name="rule_frames"):
        path = self.dir / name
        subprocess.run(["strip", "-o", path, program(name)], check=True)
        return str(path)

    def profile(self, text, *arguments, binary="rule_frames", **options):
        _, profile = self.run_profiled([binary, *(arguments or ["run"])], RULES=self.rules(text),
                                       **EXACT, **options)
        return profile

    def assert_shares(self, profile, key, expected):
        """Bytes by the label's value, of the objects of rule_frames alone."""
        index, shares = profile.index("alloc_space"), {}
        for sample in profile.samples:
            if sample.numbers["bytes"][0] in (100, 200, 300, 400) and "main" in sample.stack:
                value = sample.labels.get(key)
                shares[value] = shares.get(value, 0) + sample.values[index]
        self.assertEqual(shares, expected)


class Labels(Rules):
    RULES = """
        # what for
        component=parser  function parse_text parse_cach??
        component=cache   function fill_cache
    """

    def test_a_stripped_binary_gets_labels(self):
        profile = self.profile(self.RULES, binary=self.stripped())
        self.assert_shares(profile, "component", {"parser": TEXT, "cache": FILL + CACHED,
                                                  None: HIDDEN})
        self.assertIn("component: Total",
                      self.go_pprof("-tags", "-sample_index=alloc_space", self.profile_paths()[0]))

    def test_the_frame_nearest_the_leaf_wins_whatever_the_order_in_the_file(self):
        lines = self.RULES.splitlines()
        profile = self.profile("\n".join(reversed(lines)))
        self.assert_shares(profile, "component", {"parser": TEXT, "cache": FILL + CACHED,
                                                  None: HIDDEN})

    def test_of_two_rules_for_one_frame_the_first_wins(self):
        profile = self.profile("a=first function fill_*\na=second function *_cache\n"
                               "b=second function *_cache\nb=first function fill_*\n"
                               "a=outer function main\n")
        self.assert_shares(profile, "a", {"first": FILL + CACHED, "outer": TEXT + HIDDEN})
        self.assert_shares(profile, "b", {"second": FILL + CACHED, None: TEXT + HIDDEN})

    def test_each_key_finds_its_own_frame(self):
        profile = self.profile("near=buffer function grow_buffer\nfar=parse function parse_*\n")
        self.assert_shares(profile, "near", {"buffer": TEXT + FILL + CACHED + HIDDEN})
        self.assert_shares(profile, "far", {"parse": TEXT + CACHED, None: FILL + HIDDEN})

    def test_functions_that_are_not_exported_need_a_symbol_table(self):
        rules = "component=hidden function hidden_step\n"
        self.assert_shares(self.profile(rules), "component",
                           {"hidden": HIDDEN, None: TEXT + FILL + CACHED})
        for path in self.profile_paths():
            path.unlink()
        self.assert_shares(self.profile(rules, binary=self.stripped()), "component",
                           {None: TEXT + FILL + CACHED + HIDDEN})

    def test_modules_by_base_name(self):
        profile = self.profile("file=ours module rule_fr*\nfile=libc module libc.so.6\n"
                               "file=no module /*\n".replace("/*", "usr*"))
        self.assert_shares(profile, "file", {"ours": TEXT + FILL + CACHED + HIDDEN})
        self.assertLessEqual(profile.label_values("file"), {"ours", "libc"})

    def test_function_and_module_on_one_line_must_both_match(self):
        profile = self.profile("a=yes function parse_* module rule_frames other\n"
                               "a=no function fill_* module libc.so.6\n")
        self.assert_shares(profile, "a", {"yes": TEXT + CACHED, None: FILL + HIDDEN})

    def test_values_are_decoded_and_written_as_all_labels_are(self):
        profile = self.profile("row%20cache=a%2Cb%3D%25 function fill_cache\n"
                               "bytes%FF=%C3%A4%FE function parse_text\n")
        self.assertIn("a,b=%", profile.label_values("row cache"))
        self.assertEqual(profile.label_values("bytes\\xff"), {"ä\\xfe"})

    def test_no_rules_in_the_file_is_no_error(self):
        profile = self.profile("# none yet\n\n")
        self.assert_shares(profile, "component", {None: TEXT + FILL + CACHED + HIDDEN})

    def test_a_relative_path_counts_from_the_directory_at_start(self):
        self.rules(self.RULES)
        _, profile = self.run_profiled(["rule_frames", "chdir", "/", "run"], RULES="x.rules",
                                       **EXACT)
        self.assertIn("cache", profile.label_values("component"))


class Precedence(Rules):
    RULE = "component=rule function parse_text\n"

    def test_a_rule_goes_before_process_labels(self):
        profile = self.profile(self.RULE, LABELS="component=process,service=shop")
        self.assert_shares(profile, "component", {"rule": TEXT, "process": FILL + CACHED + HIDDEN})
        self.assert_shares(profile, "service", {"shop": TEXT + FILL + CACHED + HIDDEN})

    def test_a_rule_goes_before_thread_labels(self):
        profile = self.profile("thread_name=rule function parse_text\n")
        self.assert_shares(profile, "thread_name",
                           {"rule": TEXT, "rule_frames": FILL + CACHED + HIDDEN})

    def test_the_api_goes_before_a_rule(self):
        profile = self.profile(self.RULE, "run", "set", "component=api", "run")
        self.assert_shares(profile, "component",
                           {"rule": TEXT, "api": TEXT + FILL + CACHED + HIDDEN,
                            None: FILL + CACHED + HIDDEN})

    def test_only_keys_asked_for(self):
        profile = self.profile("a=1 function parse_text\nb=2 function parse_text\n", LABEL_KEYS="b")
        self.assertEqual((profile.label_values("a"), profile.label_values("b")), (set(), {"2"}))

    def test_rule_labels_stay_in_other_sets_and_take_no_place(self):
        profile = self.profile(self.RULE, "requests", "50", "run", MAX_LABEL_SETS=10)
        self.assert_shares(profile, "component", {"rule": 51 * TEXT, None: FILL + CACHED + HIDDEN})
        index = profile.index("alloc_space")
        other = [s for s in profile.samples if s.labels.get("request") == "(other)"]
        self.assertEqual(sum(s.values[index] for s in other), 42 * TEXT)  # 8 places, 2 to earn
        self.assertEqual({s.labels["component"] for s in other}, {"rule"})

    def test_process_labels_give_way_where_there_would_be_more_than_32(self):
        labels = ",".join(f"k{i:02}=v" for i in range(32))
        profile = self.profile(self.RULE, LABELS=labels, THREAD_LABELS="none")
        (sample,) = [s for s in profile.samples if "parse_text" in s.stack]
        self.assertEqual(sample.labels["component"], "rule")
        self.assertEqual(len(sample.labels), 32)


class Processes(Rules):
    RULES = "component=parser function parse_*\ncomponent=plug function plugin_entry\n"

    def test_children_of_fork_and_exec(self):
        self.run_ok(["/bin/sh", "-c", f"{program('rule_frames')} run fork; echo"],
                    RULES=self.rules(self.RULES), **EXACT)
        profiles = [self.checked(path) for path in self.profile_paths()
                    if ".rule_frames." in path.name]
        self.assertEqual(len(profiles), 2)
        for profile in profiles:
            self.assertIn("parser", profile.label_values("component"))

    def test_libraries_loaded_and_unloaded_go_by_what_they_export(self):
        plugins = [program("plugin_a.so"), program("plugin_b.so")]
        text = ("plugin=a function plugin_entry module plugin_a.so\n"
                "plugin=b function plugin_entry module plugin_b.so\n"
                "static=seen function alpha_allocates beta_allocates\n")
        _, profile = self.run_profiled(["dlopen_plugins", "5", *plugins], RULES=self.rules(text),
                                       **EXACT)
        hundred = [s for s in profile.samples if s.numbers["bytes"][0] == 100]
        index = profile.index("alloc_space")
        for name in "a", "b":
            of_plugin = [s for s in hundred if s.labels.get("plugin") == name]
            self.assertEqual(sum(s.values[index] for s in of_plugin), 5 * 10 * 100)
        for sample in hundred:
            files = {place.mapping.file for place in sample.locations if place.mapping}
            for name in "a", "b":
                self.assertEqual(sample.labels.get("plugin") == name,
                                 program(f"plugin_{name}.so") in files)
        self.assertEqual(profile.label_values("static"), set())

    def test_code_without_a_file_is_left_alone(self):
        _, profile = self.run_profiled(["jit"], RULES=self.rules("a=b module jit\n"), **EXACT)
        self.assertEqual(profile.label_values("a"), {"b"})

    def test_a_debug_file_is_no_part_of_the_program(self):
        """Reading symbol tables leaves no fd open and no mapping behind."""
        script = "ls -l /proc/$$/fd; grep -c 'debug\\|rules' /proc/$$/maps"
        bare = self.run_bare(["/bin/bash", "-c", script])
        ended = self.run_under(["/bin/bash", "-c", script], RULES=self.rules(self.RULES))
        count = lambda text: len(re.findall(r" -> ", text))
        self.assertEqual(count(ended.text), count(bare.text))
        self.assertEqual(ended.text.split()[-1], bare.text.split()[-1])


class Errors(Rules):
    def assert_off(self, value, place):
        ended = self.run_under(["/bin/sh", "-c", "echo out; exit 5"], RULES=value)
        self.assertEqual((ended.status, ended.text, ended.paths), (5, "out\n", []))
        (line,) = ended.errors.splitlines()
        self.assertTrue(line.startswith(f"labelprof: LABELPROF_RULES={place}"), line)
        self.assertTrue(line.endswith("profiling is off"), line)

    def test_a_bad_line_is_named_with_file_line_and_column(self):
        for text, place in (("component", "1:1"), ("a=b function f\n\na=b fnuction g", "3:5"),
                            ("# x\n a=b module", "2:12"), ("a=%4 module m", "1:3"),
                            (b"a=b function \x00", "1:14"), (b"a=b function f\x1b[2J", "1:15")):
            path = self.rules(text)
            self.assert_off(path, f"{path}:{place}: ")

    def test_what_is_no_file_of_rules(self):
        os.mkfifo(self.dir / "fifo")
        for path in f"{self.dir}/missing", str(self.dir), f"{self.dir}/fifo", "/dev/zero":
            self.assert_off(path, f"{path}: ")
        path = self.rules("#" * 1000 + "\n" + "\n" * (256 << 10))
        self.assert_off(path, f"{path}:1:1: ")


class Check(Rules):
    def check(self, *arguments, status=0):
        done = subprocess.run([LABELPROF, "rules", "check", *map(str, arguments)], cwd=self.dir,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done.stdout if status == 0 else done.stderr

    def lines_of(self, output):
        """What is given, by line of the file: (flat, objects, stacks)."""
        found = re.findall(r"^ *(\S+) +\S+% +(\d+) +(\d+) +(\d+)  \S+=", output, re.M)
        return {int(line): (flat, int(objects), int(stacks))
                for flat, objects, stacks, line in found}

    def synthetic(self):
        profile = Profile()
        for request in "1", "2":
            profile.add_values(["grow", "parse", "main"], [4, 4096, 2, 2048], {"request": request})
        profile.add_values(["grow", "cache", "parse", "main"], [1, 1024, 1, 1024])
        profile.add_values(["other", "main"], [1, 1024, 1, 1024])
        path = self.dir / "p.pb.gz"
        path.write_bytes(gzip.compress(profile.bytes()))
        return path

    def test_rules_of_a_known_profile(self):
        rules = self.rules("a=parse function parse\n"
                           "a=cache function cache\n"
                           "a=late  function pars?\n"
                           "b=none  function nonesuch\n"
                           "c=app   module app\n")
        output = self.check(rules, self.synthetic())
        self.assertEqual(self.lines_of(output), {1: ("4KiB", 4, 1), 2: ("1KiB", 1, 1),
                                                 5: ("6KiB", 6, 3)})
        self.assertRegex(output, r"another rule wins:\n +3  a=late function pars\?\n")
        self.assertRegex(output, r"match nothing:\n +4  b=none function nonesuch\n")
        self.assertRegex(output, r"\na: 5KiB labelled, 83.33% of the total\n")
        self.assertRegex(output, r"\nb: 0B labelled, 0.00% of the total\n")
        self.assertRegex(output, r"\nc: 6KiB labelled, 100.00% of the total\n")
        self.assertNotIn("No rule labels", output)

    def test_what_no_rule_labels_is_shown_by_function(self):
        output = self.check("--type", "alloc_space", self.rules("a=b function parse\n"),
                            self.synthetic())
        self.assertEqual(self.lines_of(output), {1: ("9KiB", 9, 2)})
        self.assertRegex(output, r"No rule labels .*\n +1KiB +10.00%  other\n")

    def test_it_says_what_the_library_did(self):
        text = Labels.RULES + "\nfile=libc module libc.so.6\nfile=ours module rule_frames\n"
        profile = self.profile(text)
        output = self.check("--type", "alloc_objects", self.dir / "x.rules",
                            self.profile_paths()[0])
        for key in "component", "file":
            given = profile.by_label(key, "alloc_objects")
            for value, objects in given.items():
                if value is not None:
                    self.assertRegex(output, rf" {objects} +\d+ +\d+  {key}={value} ")

    def test_without_a_profile_the_file_alone_is_checked(self):
        self.assertIn("2 rules for 1 keys", self.check(self.rules(Labels.RULES)))

    def test_errors(self):
        path = self.rules("a=b\n")
        self.assertEqual(self.check(path, status=1),
                         f"labelprof: {path}:1:4: a label is followed by 'function' or 'module'\n")
        self.assertIn("missing", self.check("missing", status=1))
        self.assertIn("can't read", self.check(self.dir, status=1))
        self.assertIn("no.pb.gz", self.check(self.rules("a=b module m"), "no.pb.gz", status=1))
        self.assertIn("give a file of rules", self.check(status=2))
        done = subprocess.run([LABELPROF, "rules", "verify", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'verify' is not 'check'", done.stderr)


if __name__ == "__main__":
    unittest.main()
