# SPDX-License-Identifier: MIT
"""Labels by the libraries that publish them for profilers, built from crates.io: custom-labels, and
libdatadog's OpenTelemetry thread context. Skipped where there is no cargo, one too old for the
crates (Debian 12's is), or no network."""
import os
import re
import shutil
import subprocess

from test_label_sources import labels_at
from victim import EXACT, TOP, Case

CARGO = shutil.which("cargo")
OFFLINE = re.compile(r"failed to (download|get|fetch|query)|Could not resolve|network|offline")


class RealWriter(Case):
    limit_s = 900  # the first build takes minutes

    def build(self, name):
        if not CARGO:
            self.skipTest("no cargo on the PATH")
        here = TOP / "build" / "writers" / name
        shutil.copytree(TOP / "test" / "writers" / name, here, dirs_exist_ok=True)
        env = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
        done = subprocess.run(
            [CARGO, "build", "--release", "--quiet"], cwd=here, env=env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            for why in r"requires rustc.*", r".*lock file version.*", r".*edition.*is required.*", \
                       r".*Unable to find libclang.*":
                found = re.search(why, done.stderr)
                if found:
                    self.skipTest(f"this machine can't build the crate: {found.group(0)[:200]}")
            if OFFLINE.search(done.stderr):
                self.skipTest("crates.io can't be reached")
            self.fail(f"cargo build: {done.stderr[-3000:]}")
        return str(here / "target" / "release" / f"{name}_writer")

    def assert_at(self, profile, wanted):
        self.assertEqual({function: labels_at(profile, function) for function in wanted}, wanted)


class CustomLabelsCrate(RealWriter):
    def test_scopes_threads_and_tasks(self):
        _, profile = self.run_profiled(self.build("custom_labels"), **EXACT)
        self.assert_at(profile, {
            "leak_outside": {"": 2},
            "leak_in_scope": {"tenant=acme": 1},
            "leak_in_inner_scope": {"route=/cart,tenant=acme": 1},
            "leak_in_thread": {"tenant=of the thread": 1},
            "leak_in_task": {f"task=task-{i}": 4 for i in range(8)},
            "leak_between": {"": 32},
        })


class OpenTelemetryCrate(RealWriter):
    WANTED = {
        "leak_outside": {"": 2},
        "leak_attached": {"route=/cart,tenant=acme": 1},
        "leak_updated": {"tenant=globex": 1},
        "leak_swapped": {"late=known now": 1},
        "leak_in_thread": {"tenant=of the thread": 1},
    }

    def test_contexts_attached_updated_swapped(self):
        _, profile = self.run_profiled(self.build("otel"), **EXACT)
        self.assert_at(profile, self.WANTED)

    def test_ids_where_asked_for(self):
        keys = "trace_id,span_id,datadog.local_root_span_id"
        _, profile = self.run_profiled(self.build("otel"), LABEL_KEYS=keys, **EXACT)
        self.assert_at(profile, {"leak_attached": {
            "datadog.local_root_span_id=" + "33" * 8 + ",span_id=" + "22" * 8 +
            ",trace_id=" + "11" * 16: 1}})
