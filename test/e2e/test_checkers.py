# SPDX-License-Identifier: MIT
"""The checkers go red when what they guard is broken: each on a made-up violation."""
import shutil
import subprocess

from victim import TOP, Case


class Checkers(Case):
    def check(self, name, *arguments):
        done = subprocess.run([TOP / "scripts" / name, *map(str, arguments)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
        return done.returncode, done.stdout

    def tree(self, **files):
        """A made-up project: path → text, with / written as __ and . as _dot_."""
        root = self.dir / "tree"
        for name, text in files.items():
            path = root / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    def test_layers_accept_the_arrow(self):
        root = self.tree(preload__base__lock_dot_h="", preload__record__book_dot_h="",
                         preload__sample__sample_dot_c='#include "base/lock.h"\n'
                                                       '#include "record/book.h"\n')
        self.assertEqual(self.check("check-layers", root), (0, ""))

    def test_layers_refuse_upstream(self):
        root = self.tree(preload__sample__sample_dot_h="",
                         preload__record__book_dot_c='#include "sample/sample.h"\n')
        status, text = self.check("check-layers", root)
        self.assertEqual(status, 1)
        self.assertIn("record/book.c:1: record must not include sample/sample.h", text)

    def test_layers_refuse_the_encoder_knowing_the_program(self):
        root = self.tree(preload__unwind__walk_dot_h="",
                         encoder__gzip_dot_c='#include "unwind/walk.h"\n')
        self.assertEqual(self.check("check-layers", root)[0], 1)

    def test_layers_refuse_relative_paths_upstream(self):
        root = self.tree(preload__sample__sample_dot_h="",
                         preload__base__sys_dot_c='#include "../sample/sample.h"\n')
        self.assertEqual(self.check("check-layers", root)[0], 1)

    def test_layers_refuse_a_library_in_two_files(self):
        root = self.tree(encoder__gzip_dot_c="#include <zlib.h>\n",
                         encoder__file_dot_c="#include <zlib.h>\n")
        status, text = self.check("check-layers", root)
        self.assertEqual(status, 1)
        self.assertIn("zlib is included by more than one file", text)

    def test_layers_allow_the_command_its_own_reader(self):
        root = self.tree(encoder__gzip_dot_c="#include <zlib.h>\n",
                         encoder__reader_dot_c="#include <zlib.h>\n")
        self.assertEqual(self.check("check-layers", root), (0, ""))

    def test_layers_refuse_a_library_in_a_header(self):
        root = self.tree(preload__unwind__rule_dot_h="#include <libunwind.h>\n")
        self.assertEqual(self.check("check-layers", root)[0], 1)

    def test_layers_refuse_a_circle(self):
        root = self.tree(preload__base__a_dot_h='#include "base/b.h"\n',
                         preload__base__b_dot_h='#include "base/a.h"\n')
        status, text = self.check("check-layers", root)
        self.assertEqual(status, 1)
        self.assertIn("a circle", text)

    def library(self, source, *options):
        (self.dir / "x.c").write_text(source)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.dir / "x.so", self.dir / "x.c",
                        *options], check=True)
        (self.dir / "x.map").write_text("/* global: not_this; */ { global: one; two; local: *; };")
        return self.check("check-exports", self.dir / "x.so", self.dir / "x.map")

    BOTH = "void one(void){} void two(void){}"

    def test_exports_accept_what_the_map_lists(self):
        self.assertEqual(self.library(self.BOTH), (0, ""))

    def test_exports_refuse_one_too_many(self):
        self.assertEqual(self.library(self.BOTH + "void three(void){}"),
                         (1, "exported, but not in exports.map: three\n"))

    def test_exports_refuse_one_too_few(self):
        self.assertEqual(self.library("void one(void){}"),
                         (1, "in exports.map, but not exported: two\n"))

    def test_exports_refuse_another_library(self):
        status, text = self.library(self.BOTH, "-Wl,--no-as-needed", "-lm")
        self.assertEqual((status, text), (1, "needs libm.so.6\n"))

    def test_exports_refuse_a_large_thread_block(self):
        status, text = self.library(self.BOTH + "static __thread char c[200]; char *three(void);"
                                    "__attribute__((visibility(\"hidden\"))) char *three(void)"
                                    "{return c;}")
        self.assertEqual(status, 1)
        self.assertIn("thread-local block of 200 bytes", text)

    def test_exports_refuse_a_newer_libc(self):
        status, text = self.library(
            "#include <dlfcn.h>\nstruct dl_find_object; int _dl_find_object(void *, void *);"
            "void one(void){} void two(void){_dl_find_object(0, 0);}")
        self.assertEqual(status, 1)
        self.assertIn("_dl_find_object@GLIBC_2.35", text)

    def headers(self, text, name="include/labelprof.h"):
        root = self.dir / "tree"
        (root / "include").mkdir(parents=True)
        for folder in "preload", "encoder", "cli":
            (root / folder).mkdir()
        shutil.copy(TOP / "include" / "labelprof.h", root / "include")
        path = root / name
        path.write_text(text(path.read_text()) if callable(text) else text)
        return self.check("check-headers", root)

    def test_headers_refuse_one_that_needs_another_first(self):
        status, text = self.headers("struct x { size_t n; };\n", "preload/x.h")
        self.assertEqual(status, 1)
        self.assertIn("size_t", text)

    def test_headers_refuse_what_c89_does(self):
        status, text = self.headers(lambda good: good + "\n// no comment of c89\n")
        self.assertEqual(status, 1)
        self.assertIn("-std=c89", text)

    def test_headers_refuse_what_does_not_link_without_the_library(self):
        status, text = self.headers(
            lambda good: good + "\nextern int nowhere;\n#define labelprof_unset(k) nowhere\n")
        self.assertEqual(status, 1)
        self.assertIn("undefined reference", text)


class InstallDeps(Case):
    SCRIPT = TOP / "scripts" / "install-deps"

    def run_script(self, *arguments, path="/usr/sbin:/usr/bin:/sbin:/bin"):
        done = subprocess.run([self.SCRIPT, *arguments], env={"PATH": path}, capture_output=True,
                              text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_says_and_does_nothing_when_all_is_there(self):
        self.assertEqual(self.run_script("--dry-run"), (0, "", ""))
        self.assertEqual(self.run_script(), (0, "", ""))

    def test_dry_run_names_what_is_missing_and_installs_nothing(self):
        for name, text in ("dpkg-query", "echo 'installed gcc'"), ("apt-get", "touch $0.was-run"):
            (self.dir / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.dir / name).chmod(0o755)
        status, out, err = self.run_script("--dry-run", path=f"{self.dir}:/usr/bin:/bin")
        self.assertEqual((status, err), (0, ""))
        packages = out.split()
        self.assertIn("libunwind-dev", packages)
        self.assertIn("golang-go", packages)
        self.assertNotIn("gcc", packages)
        self.assertNotIn("|", out)
        self.assertFalse((self.dir / "apt-get.was-run").exists())

    def test_wrong_usage(self):
        status, out, err = self.run_script("--everything")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("usage", err)
