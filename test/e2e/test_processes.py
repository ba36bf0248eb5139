# SPDX-License-Identifier: MIT
"""Processes: children, daemons, ends, signals, dumps while it runs."""
import os
import signal
import stat
import subprocess
import time

import pprof
from victim import EXACT, LIBRARY, Case, program


class Children(Case):
    def by_pid(self, ended):
        """{pid: profile} of labelprof.%e.%p.%t.pb.gz."""
        return {int(path.name.split(".")[2]): self.checked(path) for path in ended.paths}

    def split(self, profiles):
        """(the parent's profile, the others): the parent's has parent_leaks."""
        parents = [p for p in profiles.values() if p.with_function("parent_leaks")]
        self.assertEqual(len(parents), 1)
        return parents[0], [p for p in profiles.values() if p is not parents[0]]

    def check_fork(self, mode, n_children, leaks):
        parent, children = self.split(self.by_pid(self.run_ok(["fork_children", mode], **EXACT)))
        self.assertEqual(parent.flat("inuse_objects")["parent_leaks"], 100)
        self.assertEqual(parent.flat("inuse_objects")["inherited_leaks"], 1)
        self.assertFalse(parent.with_function("child_leaks"))
        self.assertEqual(len(children), n_children)
        for child in children:
            self.assertFalse(child.with_function("inherited_leaks"))
            self.assertIn(child.flat("inuse_objects")["child_leaks"], leaks)
            labels = {s.labels.get("family") for s in child.with_function("child_leaks")}
            self.assertEqual(labels, {"smith"})

    def test_child_of_fork_has_its_own_profile_and_its_creators_labels(self):
        self.check_fork("alloc", 1, [50])

    def test_child_that_ends_by__exit_has_its_profile(self):
        self.check_fork("exit", 1, [50])

    def test_grandchild_has_its_own(self):
        self.check_fork("deep", 2, [50, 25])

    def test_child_that_allocates_nothing_writes_no_file(self):
        parent, children = self.split(self.by_pid(self.run_ok(["fork_children", "idle"], **EXACT)))
        self.assertEqual(children, [])
        self.assertEqual(parent.flat("inuse_objects")["parent_leaks"], 100)

    def test_fork_while_threads_allocate_and_the_child_makes_threads(self):
        self.check_fork("storm", 64, [50])

    def test_fork_storm_at_the_default_interval(self):
        for _ in range(3):
            self.run_ok(["fork_children", "storm"])

    def test_vfork_posix_spawn_system_popen(self):
        ended = self.run_under(["spawn_children", 10], **EXACT)
        self.assertEqual((ended.status, ended.text, ended.errors), (0, "done\n", ""))
        parents = [p for p in self.by_pid(ended).values() if p.with_function("parent_leaks")]
        self.assertEqual([p.flat("inuse_objects")["parent_leaks"] for p in parents], [100])

    def test_children_0_takes_our_entry_alone_out_of_ld_preload(self):
        other = self.dir / "other.so"
        subprocess.run(["gcc", "-shared", "-o", other, "-x", "c", "/dev/null"], check=True)
        script = "echo $LD_PRELOAD; /bin/true; exec sh -c 'echo $LD_PRELOAD'"
        ended = self.run_under(["/bin/sh", "-c", script], behind=[str(other)], CHILDREN=0, **EXACT)
        self.assertEqual(ended.errors, "")
        last = ended.text.splitlines()[-1]
        self.assertNotIn("liblabelprof", last)
        self.assertIn(str(other), last)
        names = {path.name.split(".")[1] for path in ended.paths}
        self.assertLessEqual(len(ended.paths), 1, names)

    def test_children_1_profiles_what_is_executed(self):
        ended = self.run_under(["/bin/sh", "-c", f"{program('leak')} 10 1000; exit 4"], **EXACT)
        self.assertEqual((ended.status, ended.text, ended.errors), (4, "done\n", ""))
        profiles = [self.checked(path) for path in ended.paths if ".leak." in path.name]
        self.assertEqual([p.flat("inuse_objects")["leak_here"] for p in profiles], [10])

    def test_daemon_that_closes_every_fd(self):
        fine = self.dir / "fine"
        ended = self.run_under(["daemon_closefrom", fine], **EXACT)
        self.assertEqual((ended.status, ended.errors), (0, ""))

        def daemons():
            # Sleeps are the daemon's to take: its profile appears when it is done.
            return [p for p in map(self.checked, self.profile_paths())
                    if p.with_function("daemon_leaks")]
        self.wait_until(lambda: daemons(), "the daemon's profile")
        self.assertEqual(fine.read_text(), "fine")
        self.assertEqual(daemons()[0].flat("inuse_objects")["daemon_leaks"], 100)

    def test_unshare_user_needs_a_single_threaded_process(self):
        bare = self.run_bare(["/usr/bin/unshare", "-Ur", "true"])
        ended = self.run_under(["/usr/bin/unshare", "-Ur", "true"], SAMPLE_BYTES=1)
        self.assertEqual((ended.status, ended.out, ended.errors),
                         (bare.status, bare.out, bare.errors))
        if bare.status:
            self.skipTest(f"no user namespaces here: {bare.errors.strip()}")

    def test_static_program_is_unaffected(self):
        ended = self.run_under("static_program", **EXACT)
        self.assertEqual((ended.status, ended.text, ended.errors, ended.paths),
                         (0, "static\n", "", []))


class Ends(Case):
    """Every way to end that runs code of ours leaves a profile; the others leave nothing."""

    def check_end(self, way, status, at_exit, **options):
        ended = self.run_under(["exits", way], **EXACT, **options)
        self.assertEqual((ended.status, ended.errors), (status, ""), way)
        self.assertEqual(len(ended.paths), 1, way)
        profile = self.checked(ended.paths[0])
        self.assertEqual(profile.flat("inuse_objects")["leak_before_end"], 10, way)
        self.assertEqual(profile.flat("inuse_objects")["leak_at_exit"], at_exit, way)

    def test_return_from_main_after_atexit_handlers(self):
        self.check_end("return", 3, 5)

    def test_exit_after_atexit_handlers(self):
        self.check_end("exit", 3, 5)

    def test__exit(self):
        self.check_end("_exit", 3, 0)

    def test__Exit(self):
        self.check_end("_Exit", 3, 0)

    def test_quick_exit(self):
        self.check_end("quick_exit", 3, 0)

    def test_exit_from_a_thread(self):
        self.check_end("exit_from_thread", 3, 5)

    def test_pthread_exit_from_main_with_a_thread_running_on(self):
        self.check_end("pthread_exit", 0, 5)

    def test_abort_on_the_list_of_exit_signals(self):
        self.check_end("abort", -signal.SIGABRT, 0, EXIT_SIGNALS="ABRT")

    def check_nothing_left(self, way, status, **options):
        ended = self.run_under(["exits", way], **EXACT, **options)
        self.assertEqual((ended.status, ended.errors, ended.paths), (status, "", []))
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_abort_segv_and_the_bare_system_call_leave_nothing(self):
        self.check_nothing_left("abort", -signal.SIGABRT)
        self.check_nothing_left("segv", -signal.SIGSEGV)
        self.check_nothing_left("syscall", 3)

    def wait_and_term(self, way, **options):
        child = self.start(["exits", way], **EXACT, **options)
        self.assertEqual(child.stdout.readline(), b"waiting\n",
                         child.stderr.read() if child.poll() is not None else "")
        child.send_signal(signal.SIGTERM)
        return self.finish(child)

    def test_exit_signal_dumps_and_the_program_is_seen_to_die_by_it(self):
        """The program checks itself that sigaction and signal say SIG_DFL."""
        ended = self.wait_and_term("wait", EXIT_SIGNALS="TERM,INT")
        self.assertEqual((ended.status, ended.errors), (-signal.SIGTERM, ""))
        (path,) = ended.paths
        self.assertEqual(self.checked(path).flat("inuse_objects")["leak_before_end"], 10)

    def test_without_exit_signals_it_dies_as_ever(self):
        ended = self.wait_and_term("wait")
        self.assertEqual((ended.status, ended.errors, ended.paths), (-signal.SIGTERM, "", []))

    def test_the_programs_own_handler_wins(self):
        ended = self.wait_and_term("wait_with_handler", EXIT_SIGNALS="TERM")
        self.assertEqual((ended.status, ended.text, ended.errors), (42, "mine\n", ""))
        self.assertEqual(len(ended.paths), 1)  # by _exit in the handler

    def test_ignored_then_default_again(self):
        self.check_end("wait_ignoring", -signal.SIGTERM, 0, EXIT_SIGNALS="TERM")

    def test_exit_signal_is_default_in_what_is_executed(self):
        """SIG_DFL survives exec; a handler of ours must not turn into SIG_IGN or anything else."""
        ended = self.run_under(["/bin/sh", "-c", "grep SigIgn /proc/self/status"],
                               EXIT_SIGNALS="TERM,HUP")
        bare = self.run_bare(["/bin/sh", "-c", "grep SigIgn /proc/self/status"])
        self.assertEqual(ended.text, bare.text)

    def test_a_signal_ignored_from_the_start_stays_ignored(self):
        """nohup: HUP is ignored when the program starts, and must not end it."""
        child = self.start(["/bin/sh", "-c", f"trap '' TERM; exec {program('leak')} 10 100 "
                            f"raise {int(signal.SIGTERM)}"], EXIT_SIGNALS="TERM", **EXACT)
        ended = self.finish(child)
        self.assertEqual((ended.status, ended.text, ended.errors), (0, "done\n", ""))


class Dumps(Case):
    def ready(self, mode="", **options):
        child = self.start(["dump_signal", mode], stdin=subprocess.PIPE,
                           OUT=f"{self.dir}/s.%n.pb.gz", **options)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        return child

    def dumped(self, number):
        path = self.dir / f"s.{number}.pb.gz"
        self.wait_until(path.exists, f"dump {number}")
        return self.checked(path)

    def check_signal(self, name, number, mode=""):
        child = self.ready(mode, DUMP_SIGNAL=name, **EXACT)
        for sequence in 1, 2, 3:
            child.send_signal(number)
            self.assertEqual(self.dumped(sequence).flat("inuse_objects")["leak_here"], 100)
        ended = self.finish(child)
        self.assertEqual((ended.status, ended.out, ended.errors), (0, b"", ""))
        self.assertEqual(len(ended.paths), 4)

    def test_dump_signal_in_a_program_without_threads(self):
        self.check_signal("USR2", signal.SIGUSR2)

    def test_dump_signal_in_a_program_with_threads(self):
        self.check_signal("RTMIN+3", signal.SIGRTMIN + 3, "threads")

    def test_a_handler_of_the_programs_own_wins(self):
        child = self.ready("own", DUMP_SIGNAL="USR2", **EXACT)
        child.send_signal(signal.SIGUSR2)
        self.assertEqual(child.stdout.readline(), b"mine\n")
        ended = self.finish(child)
        self.assertEqual((ended.status, ended.errors, len(ended.paths)), (0, "", 1))

    def test_dump_interval(self):
        child = self.ready(DUMP_INTERVAL_S=1, **EXACT)
        for number in 1, 2:
            self.assertEqual(self.dumped(number).flat("inuse_objects")["leak_here"], 100)
        ended = self.finish(child)
        self.assertEqual((ended.status, ended.errors), (0, ""))

    def test_dump_interval_reaches_a_daemon(self):
        """The thread that keeps the interval doesn't survive fork: the child's samples keep it."""
        fine = self.dir / "fine"
        code = ("import os, time\n"
                "if os.fork(): os._exit(0)\n"
                "x = []\n"
                "for _ in range(70): x.append(bytearray(1000000)); time.sleep(0.05)\n"
                f"open('{fine}', 'w').close()\n")
        child = self.start(["/usr/bin/python3", "-c", code], OUT=f"{self.dir}/%p.%n.pb.gz",
                           DUMP_INTERVAL_S=1)
        self.wait_until(fine.exists, "the daemon's end", 20)
        self.finish(child)
        counts = {}
        for path in self.profile_paths():
            counts.setdefault(path.name.split(".")[0], []).append(path)
        self.assertGreaterEqual(max(map(len, counts.values())), 3, counts)

    def test_dump_by_call_to_a_path_of_either_type(self):
        ended = self.run_ok(["leak", 10, 1000, "dump", "heap", "one.pb.gz", "more", 5, 500,
                             "dump", "allocs", "two.pb.gz"], OUT=f"{self.dir}/end.pb.gz", **EXACT)
        self.assertEqual(ended.text, "dump 0\ndump 0\ndone\n")
        one, two, end = (self.checked(self.dir / f"{name}.pb.gz") for name in
                         ("one", "two", "end"))
        self.assertEqual(one.flat("inuse_objects")["leak_here"], 10)
        self.assertEqual(one.flat("inuse_objects")["leak_more"], 0)
        self.assertEqual(two.flat("inuse_objects")["leak_more"], 5)
        self.assertEqual((one.default_type, two.default_type), ("inuse_space", "alloc_space"))
        self.assertEqual(end.flat("inuse_objects")["leak_here"], 10)

    def test_dump_of_an_unknown_type_or_to_an_impossible_path_is_refused(self):
        ended = self.run_under(["leak", 10, 1000, "dump", "goats", "one.pb.gz",
                                "dump", "heap", "no/such/folder.pb.gz"], **EXACT)
        self.assertEqual((ended.status, ended.text), (0, "dump -1\ndump -1\ndone\n"))
        self.assertFalse((self.dir / "one.pb.gz").exists())

    def test_a_dump_that_was_asked_for_may_be_empty(self):
        ended = self.run_ok(["leak", 0, 1, "dump", "heap", "empty.pb.gz"], SAMPLE_BYTES="1t")
        profile = self.checked(self.dir / "empty.pb.gz")
        self.assertEqual(profile.samples, [])
        self.assertEqual([path.name for path in ended.paths], ["empty.pb.gz"])

    def test_a_reader_never_sees_half_a_profile(self):
        child = self.start(["token", 2, 400], OUT=f"{self.dir}/same.pb.gz", **EXACT)
        path, n_read = self.dir / "same.pb.gz", 0
        while child.poll() is None:
            if path.exists():
                pprof.read(path)
                n_read += 1
        self.assertEqual(self.finish(child).status, 0)
        self.assertGreater(n_read, 5)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["same.pb.gz"])


class Confined(Case):
    """Rights given up after the start: at worst no profile and one line, never a changed program."""

    def run_confined(self, *argv, **options):
        if os.geteuid():
            self.skipTest("needs root")
        ended = self.run_under(["confined", *argv], **EXACT, **options)
        self.assertEqual((ended.status, ended.text), (3, "done\n"), ended.errors)
        return ended

    def assert_one_line(self, ended):
        lines = ended.errors.splitlines()
        self.assertEqual(len(lines), 1, ended.errors)
        self.assertTrue(lines[0].startswith("labelprof:"), lines[0])
        self.assertEqual(ended.paths, [])

    def test_chroot_away_from_the_directory(self):
        (self.dir / "jail").mkdir()
        self.assert_one_line(self.run_confined("chroot", str(self.dir / "jail")))
        self.assertEqual(list((self.dir / "jail").iterdir()), [])

    def test_chroot_that_has_the_directory(self):
        self.run_confined("chroot", "/")
        self.assertEqual(self.checked(self.profile_paths()[0]).flat(
            "inuse_objects")["leak_confined"], 10)

    def test_setuid_away_from_the_directorys_owner(self):
        self.assert_one_line(self.run_confined("setuid"))

    def test_setuid_to_one_who_may_write_there(self):
        os.chmod(self.dir, 0o777)
        ended = self.run_confined("setuid")
        self.assertEqual(ended.errors, "")
        self.assertEqual(os.stat(ended.paths[0]).st_uid, 65534)
        self.checked(ended.paths[0])

    def test_seccomp_that_refuses_to_open(self):
        self.assert_one_line(self.run_confined("seccomp"))


class Guest(Case):
    def test_nothing_but_the_profile_is_left_and_its_mode_is_a_files(self):
        ended, _ = self.run_profiled(["leak", 10, 1000], **EXACT)
        self.assertEqual([path.name for path in self.dir.iterdir()], [ended.paths[0].name])
        mode = stat.S_IMODE(os.stat(ended.paths[0]).st_mode)
        self.assertEqual(mode & 0o111, 0)
        self.assertEqual(mode & 0o600, 0o600)

    def test_the_librarys_own_file_may_be_given_relative(self):
        """ld.so takes a relative path from the current directory."""
        ended = self.finish(self.start(
            [program("leak"), "10", "1000"], cwd=LIBRARY.parent, library=False,
            extra={"LD_PRELOAD": f"./{LIBRARY.name}", "LABELPROF_SAMPLE_BYTES": "1",
                   "LABELPROF_OUT": f"{self.dir}/r.pb.gz"}))
        self.assertEqual((ended.status, ended.errors), (0, ""))
        self.assertTrue((self.dir / "r.pb.gz").exists())

    def test_duration_and_time_are_the_runs(self):
        before = time.time_ns()
        _, profile = self.run_profiled(["leak", 10, 1000, "sleep", 300], **EXACT)
        after = time.time_ns()
        self.assertTrue(before <= profile.time_nanos <= after)
        self.assertTrue(300_000_000 <= profile.duration_nanos <= after - before)
