# SPDX-License-Identifier: MIT
"""What every end-to-end test stands on: run a program under the library in a directory of its
own, and get back what it printed, how it ended and which profiles it left.

Options are given by their name without the prefix: SAMPLE_BYTES=1 is LABELPROF_SAMPLE_BYTES=1.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

import pprof

TOP = Path(__file__).resolve().parent.parent.parent
LIBRARY = TOP / "build" / "liblabelprof.so"
PROGRAMS = TOP / "build" / "programs"
GO = "/usr/bin/go" if os.access("/usr/bin/go", os.X_OK) else shutil.which("go")
PYTHON = "/usr/bin/python3"  # Debian's, whatever else is on PATH
EXACT = {"SAMPLE_BYTES": "1", "MAX_MEMORY": "2g"}


def program(name):
    return str(PROGRAMS / name)


@dataclass
class Ended:
    status: int      # as subprocess says it: -N when killed by signal N
    out: bytes
    err: bytes
    paths: list      # the profiles left in the directory, by name

    @property
    def text(self):
        return self.out.decode("utf-8", "backslashreplace")

    @property
    def errors(self):
        return self.err.decode("utf-8", "backslashreplace")

    def profiles(self):
        return [pprof.read(path) for path in self.paths]


class Case(unittest.TestCase):
    """A test with a directory of its own (self.dir), removed at its end."""
    maxDiff = 4000

    def setUp(self):
        self.assertTrue(LIBRARY.exists(), "build/liblabelprof.so does not exist: make it first")
        # Short: a unix socket's path must fit in 107 bytes.
        self.dir = Path(tempfile.mkdtemp(prefix="lp-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def environment(self, library=True, behind=(), extra=None, **options):
        """The caller's environment without anything of ours, plus what is asked for."""
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("LABELPROF_", "LD_"))}
        env.update(LC_ALL="C.UTF-8", HOME=str(self.dir))
        if library:
            env["LD_PRELOAD"] = ":".join([str(LIBRARY), *behind])
        elif behind:
            env["LD_PRELOAD"] = ":".join(behind)
        env.update({f"LABELPROF_{name}": str(value) for name, value in options.items()})
        env.update(extra or {})
        return env

    def start(self, argv, cwd=None, stdin=subprocess.DEVNULL, library=True, behind=(), extra=None,
              **options):
        """Popen with pipes; ended at the end of the test if it still runs."""
        argv = [argv] if isinstance(argv, str) else list(map(str, argv))
        if "/" not in argv[0] and (PROGRAMS / argv[0]).exists():
            argv[0] = program(argv[0])
        child = subprocess.Popen(
            argv, cwd=cwd or self.dir, stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            env=self.environment(library, behind, extra, **options))
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in child.stdin, child.stdout, child.stderr:
            if pipe:
                pipe.close()

    def finish(self, child, timeout=60, input=None, cwd=None):
        try:
            out, err = child.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGABRT)
            time.sleep(0.2)
            self.end(child)
            self.fail(f"{child.args} still ran after {timeout} s")
        return Ended(child.returncode, out, err, self.profile_paths(cwd))

    def profile_paths(self, cwd=None):
        return sorted(Path(cwd or self.dir).glob("*.pb.gz"))

    def run_under(self, argv, timeout=60, cwd=None, input=None, **options):
        """Run to the end under the library; the library itself must have said nothing."""
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        child = self.start(argv, cwd=cwd, stdin=stdin, **options)
        return self.finish(child, timeout, input, cwd)

    def run_bare(self, argv, timeout=60, cwd=None, input=None, behind=(), extra=None):
        return self.run_under(argv, timeout, cwd, input, library=False, behind=behind, extra=extra)

    def run_ok(self, argv, timeout=60, **options):
        """As run_under; exit status 0 and a silent stderr are part of the test."""
        ended = self.run_under(argv, timeout, **options)
        self.assertEqual((ended.status, ended.errors), (0, ""), f"{argv}: {ended.text[-2000:]}")
        return ended

    def run_profiled(self, argv, timeout=60, **options):
        """As run_ok, and exactly one profile: (what the program printed, the profile)."""
        ended = self.run_ok(argv, timeout, **options)
        self.assertEqual(len(ended.paths), 1, f"{argv}: profiles {ended.paths}")
        return ended, self.checked(ended.paths[0])

    def checked(self, path):
        """The profile, once what must be true of every profile of ours has been looked at."""
        profile = pprof.read(path)
        if profile.types and profile.types[0][0] == "alloc_objects":
            self.assert_heap(profile)
        return profile

    def assert_heap(self, profile):
        self.assertEqual(profile.types, [("alloc_objects", "count"), ("alloc_space", "bytes"),
                                         ("inuse_objects", "count"), ("inuse_space", "bytes")])
        self.assertEqual(profile.period_type, ("space", "bytes"))
        self.assertGreater(profile.period, 0)
        self.assertGreater(profile.time_nanos, 0)
        self.assertGreater(profile.duration_nanos, 0)
        for sample in profile.samples:
            self.assertTrue(sample.stack, "a sample without a stack")
            self.assertGreaterEqual(min(sample.values), 0, f"negative: {sample.stack}")
            self.assertEqual(sample.numbers["bytes"][1], "bytes")
            for place in sample.locations:
                if place.mapping:
                    self.assertNotIn("liblabelprof", place.mapping.file, sample.stack)
        per_stack = {}
        for sample in profile.samples:
            key = tuple(place.address for place in sample.locations)
            sums = per_stack.setdefault(key, [0, 0, 0, 0])
            for index, value in enumerate(sample.values):
                sums[index] += value
        for sums in per_stack.values():
            self.assertGreaterEqual(sums[0], sums[2], "in use > allocated, objects")
            self.assertGreaterEqual(sums[1], sums[3], "in use > allocated, bytes")

    def same_bare_and_under(self, argv, timeout=120, strip=None, input=None, cwd=None, **options):
        """Output and exit status with the library are those without it; returns the profiled run.
        strip: a regex for what differs from run to run (times, pids)."""
        clean = (lambda data: re.sub(strip, b"", data)) if strip else (lambda data: data)
        bare = self.run_bare(argv, timeout, cwd=cwd, input=input, extra=options.get("extra"))
        ended = self.run_under(argv, timeout, cwd=cwd, input=input, **options)
        self.assertEqual((ended.status, clean(ended.out), clean(ended.err)),
                         (bare.status, clean(bare.out), clean(bare.err)))
        return ended

    def go_pprof(self, *arguments, timeout=60, ask_for="stdout"):
        """`go tool pprof` with these arguments: what it printed. GO: Debian's, whose pprof is a
        program and not built at first use."""
        env = dict(os.environ, PPROF_TMPDIR=str(self.dir), GOTOOLCHAIN="local", GO111MODULE="off",
                   GOFLAGS="")
        env.pop("LD_PRELOAD", None)
        done = subprocess.run([GO, "tool", "pprof", *map(str, arguments)], cwd=self.dir, env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout)
        self.assertEqual(done.returncode, 0, f"go tool pprof {arguments}: {done.stderr}")
        return getattr(done, ask_for)

    def wait_until(self, condition, what, limit_s=30):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.02)
        self.fail(f"{what}: not within {limit_s} s")
