# SPDX-License-Identifier: MIT
"""The programs of examples/ run with and without the library, and are labelled as they say."""
import os
import shutil
import subprocess

from victim import EXACT, PYTHON, TOP, Case

EXAMPLES = TOP / "examples"
NODE = "/usr/bin/node"
RUSTC = shutil.which("rustc")


class Examples(Case):
    def compile(self, *argv):
        done = subprocess.run(list(map(str, argv)), cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def by_tenant(self, argv, **options):
        """Bytes allocated by tenant, after a run without the library that says the same."""
        bare = self.run_bare(argv)
        self.assertEqual((bare.status, bare.text, bare.errors), (0, "done\n", ""))
        ended, profile = self.run_profiled(argv, **{**EXACT, **options})
        self.assertEqual(ended.text, "done\n")
        self.profile = profile
        return profile.by_label("tenant", "alloc_space")

    def test_cxx(self):
        self.compile("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{TOP}/include",
                     EXAMPLES / "labels.cc", "-o", "labels", "-pthread")
        self.by_tenant([self.dir / "labels"])
        sizes = self.profile.totals("inuse_space", lambda sample: [
            (sample.labels.get("tenant"), sample.labels.get("route"))
        ] if any("handle" in name for name in sample.stack) else [])
        self.assertEqual(sizes["acme", None], 200000)
        self.assertEqual(sizes["globex", None], 100000)
        self.assertEqual(sizes["acme", "/cart"], 2000)
        self.assertEqual(sizes[None, None], 10)

    def test_python(self):
        tenants = self.by_tenant([PYTHON, EXAMPLES / "labels.py"])
        for tenant, n_bytes in {"acme": 8000000, "globex": 1000000, "initech": 1200000,
                                "hooli": 400000}.items():
            self.assertGreaterEqual(tenants[tenant], n_bytes)
            self.assertLess(tenants[tenant], n_bytes + 50000)

    def test_rust(self):
        if not RUSTC:
            self.skipTest("no rustc on the PATH")
        self.compile(RUSTC, "-O", EXAMPLES / "labels.rs", "-o", "labels")
        tenants = self.by_tenant([self.dir / "labels"])
        for tenant, n_bytes in {"acme": 200000, "globex": 50000}.items():
            self.assertGreaterEqual(tenants[tenant], n_bytes)
            self.assertLess(tenants[tenant], n_bytes + 1000)

    def test_node(self):
        if not os.access(NODE, os.X_OK):
            self.skipTest("no Node")
        self.compile("gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{TOP}/include",
                     EXAMPLES / "labels_node.c", "-o", "labels.node")
        tenants = self.by_tenant([NODE, EXAMPLES / "labels_node.js", self.dir / "labels.node"],
                                 SAMPLE_BYTES="4k", MAX_MEMORY="64m")
        # The buffers, each a sample for certain (a miss: once in e^73), and a little of Node's own.
        self.assertGreater(tenants["acme"], 4000000)
        self.assertLess(tenants["acme"], 5000000)
        self.assertGreater(tenants["globex"], 1200000)
        self.assertLess(tenants["globex"], 2200000)
