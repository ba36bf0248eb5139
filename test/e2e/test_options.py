# SPDX-License-Identifier: MIT
"""Every LABELPROF_ variable: what it does, and what becomes of a bad value."""
import os
import socket

from victim import EXACT, Case, program

BAD = {
    "OUT": ["x" * 5000],
    "PROFILES": ["goats", "heap,goats", "threads"],
    "SAMPLE_BYTES": ["0", "-1", "1.5m", "2t", "abc", "12q", "0x10", " 1", "1 ",
                     "99999999999999999999"],
    "DUMP_INTERVAL_S": ["-1", "soon", "1.5"],
    "DUMP_SIGNAL": ["NOPE", "KILL", "0", "99", "usr"],
    "EXIT_SIGNALS": ["TERM,NOPE", "KILL", "WINCH"],
    "CYCLE_MS": ["fast", "-5"],
    "LABELS": ["novalue", "=v", "k=%zz", "pprof::x=1"],
    "THREAD_LABELS": ["colour", "name,colour"],
    "LABEL_SOURCES": ["magic"],
    "RULES": ["rules.txt", "/"],
    "MAX_LABEL_SETS": ["many", "0"],
    "MAX_MEMORY": ["lots", "0"],
    "STACK_DEPTH": ["deep", "0", "-1"],
    "CHILDREN": ["2", "yes"],
    "VERBOSE": ["loud"],
    "DISABLE": ["maybe"],
    "NOT_A_VARIABLE": ["1"],
    # Not built in this version: asking for it is no better than a bad value.
    "HTTP": ["127.0.0.1:0"],
    "HTTP_PUBLIC": ["1"],
    "LOG": ["log.bin"],
    "SPOOL": ["spool.bin"],
}


class BadValues(Case):
    def check_bad(self, name):
        for value in BAD[name]:
            ended = self.run_under(["/bin/sh", "-c", "echo out; exit 5"], **{name: value})
            self.assertEqual((ended.status, ended.text, ended.paths), (5, "out\n", []), value)
            lines = ended.errors.splitlines()
            # One line for each program that met it; the shell may run nothing else here.
            self.assertEqual(len(lines), 1, (value, ended.errors))
            self.assertTrue(lines[0].startswith("labelprof:"), lines[0])
            self.assertIn(f"LABELPROF_{name}", lines[0])
            self.assertIn(value[:100], lines[0])
            rest = lines[0].split(value[:100], 1)[1]
            self.assertGreater(len(rest), 15, f"does not say what is accepted: {lines[0]}")
            self.assertEqual(list(self.dir.iterdir()), [])


for bad_name in BAD:
    setattr(BadValues, f"test_bad_{bad_name.lower()}",
            lambda self, name=bad_name: self.check_bad(name))


class GoodValues(Case):
    def only_name(self, ended):
        return [path.relative_to(self.dir).as_posix() for path in
                sorted(self.dir.rglob("*.pb.gz"))]

    def test_empty_values_are_the_default(self):
        _, profile = self.run_profiled(["leak", 10, 1000000], SAMPLE_BYTES="", OUT="", MAX_MEMORY="",
                                       DUMP_SIGNAL="", LABELS="")
        self.assertEqual(profile.period, 512 * 1024)

    def test_sizes_take_units_in_either_case(self):
        for text, number in ("1", 1), ("4k", 4096), ("4K", 4096), ("1m", 1 << 20), ("1M", 1 << 20):
            _, profile = self.run_profiled(["leak", 10, 10000000], SAMPLE_BYTES=text,
                                           OUT=f"{self.dir}/u.pb.gz")
            self.assertEqual(profile.period, number)
            self.assertEqual(profile.comment("sample_bytes"), str(number))

    def test_default_name(self):
        child = self.start(["leak", 10, 1000], **EXACT)
        self.finish(child)
        self.assertEqual(self.only_name(None), [f"labelprof.leak.{child.pid}.heap.pb.gz"])

    def test_template(self):
        child = self.start(["leak", 10, 1000, "dump", "heap", "-"], OUT="%e-%p-%t-%n-%h-%%.pb.gz",
                           **EXACT)
        self.assertEqual(self.finish(child).errors, "")
        host = socket.gethostname()
        self.assertEqual(self.only_name(None),
                         [f"leak-{child.pid}-heap-{n}-{host}-%.pb.gz" for n in (1, 2)])

    def test_unknown_escape_in_the_template_is_a_bad_value(self):
        ended = self.run_under(["leak", 10, 1000], OUT="%q.pb.gz", **EXACT)
        self.assertEqual((ended.status, ended.text, ended.paths), (0, "done\n", []))
        self.assertTrue(ended.errors.startswith("labelprof:"), ended.errors)

    def test_without_a_sequence_number_a_later_dump_replaces_an_earlier(self):
        _, profile = self.run_profiled(["leak", 10, 1000, "dump", "heap", "-", "more", 7, 1000],
                                       **EXACT)
        self.assertEqual(profile.flat("inuse_objects")["leak_more"], 7)

    def test_relative_path_counts_from_the_directory_at_start(self):
        (self.dir / "sub").mkdir()
        (self.dir / "out").mkdir()
        self.run_ok(["leak", 10, 1000, "chdir", "sub", "dump", "heap", "-"],
                    OUT="out/%n.pb.gz", **EXACT)
        self.assertEqual(self.only_name(None), ["out/1.pb.gz", "out/2.pb.gz"])

    def test_no_file_when_there_is_no_sample(self):
        ended = self.run_ok(["leak", 10, 10], SAMPLE_BYTES="1t")
        self.assertEqual((ended.text, list(self.dir.iterdir())), ("done\n", []))

    def test_verbose_says_what_was_written_and_why_not(self):
        ended = self.run_under(["leak", 10, 1000], VERBOSE=1, **EXACT)
        self.assertEqual(ended.text, "done\n")
        self.assertIn(ended.paths[0].name, ended.errors)
        for line in ended.errors.splitlines():
            self.assertTrue(line.startswith("labelprof:"), line)
        ended.paths[0].unlink()
        ended = self.run_under(["leak", 10, 10], VERBOSE=1, SAMPLE_BYTES="1t")
        self.assertIn("no sample", ended.errors)
        self.assertEqual(ended.paths, [])

    def test_profiles_heap_and_allocs(self):
        ended = self.run_ok(["leak", 10, 1000], PROFILES="heap,allocs", **EXACT)
        types = {path.name.split(".")[3]: self.checked(path) for path in ended.paths}
        self.assertEqual(set(types), {"heap", "allocs"})
        self.assertEqual(types["heap"].default_type, "inuse_space")
        self.assertEqual(types["allocs"].default_type, "alloc_space")
        for profile in types.values():
            self.assertEqual(profile.flat("inuse_objects")["leak_here"], 10)

    def test_off_a_cxx_program_still_finds_its_operator_new(self):
        """Off from the start, in each of the ways: the doors only forward, and know where to."""
        bare = self.run_bare("new_all")
        for options in ({"DISABLE": 1}, {"SAMPLE_BYTES": "many"}):
            ended = self.run_under(["new_all"], 20, **options)
            self.assertEqual((ended.status, ended.text), (bare.status, bare.text), options)

    def test_disable(self):
        ended = self.run_ok(["leak", 10, 1000], DISABLE=1, **EXACT)
        self.assertEqual((ended.text, list(self.dir.iterdir())), ("done\n", []))

    def test_comments_tell_how_the_profile_was_made(self):
        _, profile = self.run_profiled(["leak", 10, 1000], **EXACT)
        self.assertEqual(profile.comment("labelprof_version"), "0.1.0")
        self.assertEqual(profile.comment("sample_bytes"), "1")
        self.assertTrue(profile.comment("command").startswith(program("leak")))
        self.assertIn("10 1000", profile.comment("command"))
        for key in "cycle", "samples", "refused", "lost":
            self.assertTrue(profile.comment(key).isdigit(), key)
        self.assertGreaterEqual(int(profile.comment("samples")), 10)

    def test_command_with_odd_bytes_is_still_utf8(self):
        ended = self.run_under([program("leak"), "10", "1000", "chdir", os.fsdecode(b".\xff\x01")],
                               **EXACT)
        self.assertEqual(ended.status, 99)
        self.assertEqual(len(ended.paths), 1)
        self.checked(ended.paths[0])


class Failures(Case):
    """A profile that can't be written: one line, nothing left behind, the program unharmed."""

    def check_failure(self, ended, what):
        self.assertEqual((ended.status, ended.text), (0, "done\n"))
        lines = ended.errors.splitlines()
        self.assertEqual(len(lines), 1, ended.errors)
        self.assertTrue(lines[0].startswith("labelprof:"), lines[0])
        self.assertIn(what, lines[0])

    def test_directory_that_does_not_exist(self):
        self.check_failure(self.run_under(["leak", 10, 1000], OUT="no/where.pb.gz", **EXACT),
                           "no/where.pb.gz")
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_directory_that_is_a_file(self):
        (self.dir / "file").write_text("mine")
        self.check_failure(self.run_under(["leak", 10, 1000], OUT="file/x.pb.gz", **EXACT),
                           "file/x.pb.gz")
        self.assertEqual((self.dir / "file").read_text(), "mine")

    def test_directory_that_may_not_be_written(self):
        self.check_failure(self.run_under(["leak", 10, 1000], OUT="/proc/x.pb.gz", **EXACT),
                           "/proc/x.pb.gz")

    def test_a_full_disk_leaves_nothing(self):
        """As a full disk: the kernel refuses the write half-way."""
        ended = self.run_under(["leak", 10, 1000, "rlimit_fsize", 100], OUT="x.pb.gz", **EXACT)
        self.check_failure(ended, "x.pb.gz")
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_an_earlier_profile_survives_a_failed_one(self):
        ended = self.run_under(["leak", 10, 1000, "dump", "heap", "-", "rlimit_fsize", 100],
                               OUT="x.pb.gz", **EXACT)
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.checked(self.dir / "x.pb.gz").flat("inuse_objects")["leak_here"], 10)

    def test_no_fd_left_to_open(self):
        ended = self.run_under(["leak", 10, 1000, "rlimit_nofile", 3], OUT="x.pb.gz", **EXACT)
        self.check_failure(ended, "x.pb.gz")
        self.assertEqual(list(self.dir.iterdir()), [])
