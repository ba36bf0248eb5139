# SPDX-License-Identifier: MIT
"""Stacks: right through plugins that come and go, exceptions, generated code, odd stacks."""
import re
import subprocess

from victim import EXACT, Case, program


class Plugins(Case):
    def test_plugins_that_take_each_others_place(self):
        """Live objects of unloaded plugins keep their names; the second's stack isn't walked by
        the first's rules."""
        ended, profile = self.run_profiled(
            ["dlopen_plugins", 20, program("plugin_a.so"), program("plugin_b.so")], **EXACT)
        pages = {int(line, 16) >> 12 for line in ended.text.split()}
        self.assertEqual(len(pages), 1, "the loader didn't reuse the address: nothing was tested")
        wanted = {
            ("alpha_allocates", "alpha_middle", "plugin_entry", "call_plugin", "load_and_call"),
            ("beta_allocates", "beta_outer", "plugin_entry", "call_plugin", "load_and_call")}
        found = {}
        for sample in profile.samples:
            if "call_plugin" in sample.stack:
                key = tuple(sample.stack[:5])
                found[key] = found.get(key, 0) + sample.values[2]
                self.assertEqual(sample.stack[5], "main")
        self.assertEqual(found, {key: 200 for key in wanted})
        for name in "plugin_a.so", "plugin_b.so":  # however often it is loaded: one mapping
            self.assertEqual(sum(m.file.endswith(name) for m in profile.mappings), 1)
        for sample in profile.samples:
            if "call_plugin" in sample.stack:
                name = "plugin_a.so" if sample.stack[0].startswith("alpha") else "plugin_b.so"
                self.assertTrue(sample.locations[0].mapping.file.endswith(name))

    def test_plugins_at_the_default_interval(self):
        self.run_ok(["dlopen_plugins", 200, program("plugin_a.so"), program("plugin_b.so")])

    def test_cxx_plugin_of_a_c_program_allocates_and_throws(self):
        ended, profile = self.run_profiled(["dlopen_cxx", program("plugin_cxx.so")], **EXACT)
        self.assertEqual(ended.text, "200\n")
        self.assertEqual(profile.flat("inuse_objects")["gamma_news"], 10)
        (sample,) = [s for s in profile.samples if s.stack[0] == "gamma_news" and s.values[2]]
        self.assertEqual(sample.stack[:3], ["gamma_news", "plugin_entry", "main"])

    def test_cxx_plugin_at_the_default_interval(self):
        self.assertEqual(self.run_ok(["dlopen_cxx", program("plugin_cxx.so")]).text, "200\n")


class Code(Case):
    def test_exceptions_in_threads_and_a_deep_stack(self):
        ended, profile = self.run_profiled("exceptions", **EXACT)
        self.assertEqual(ended.text, "2000\n")
        (sample,) = [s for s in profile.samples if s.stack[0] == "bottom_of_deep_stack"]
        self.assertEqual(sample.values[2], 10)
        self.assertEqual(len(sample.stack), 128)
        self.assertEqual(sample.stack[-1], "[truncated]")

    def test_stack_depth(self):
        _, profile = self.run_profiled("exceptions", STACK_DEPTH=300, **EXACT)
        (sample,) = [s for s in profile.samples if s.stack[0] == "bottom_of_deep_stack"]
        downs = [name for name in sample.stack if "go_down" in name]
        self.assertEqual(len(downs), 201)
        self.assertIn("main", sample.stack)
        self.assertNotIn("[truncated]", sample.stack)
        for path in self.dir.glob("*.pb.gz"):
            path.unlink()
        _, profile = self.run_profiled("exceptions", STACK_DEPTH=1, **EXACT)
        self.assertEqual({len(sample.stack) for sample in profile.samples}, {1})

    def test_generated_code_without_unwind_information(self):
        ended, profile = self.run_profiled(["jit", "plain"], **EXACT)
        self.assertEqual(ended.text, "done\n")
        self.assertEqual(profile.flat("inuse_objects")["before_and_after"], 100)
        generated = [s for s in profile.samples
                     if s.locations[0].mapping is None and s.stack[0].startswith("0x")]
        self.assertEqual(sum(s.values[2] for s in generated), 100)

    def test_generated_code_with_registered_frames(self):
        ended, profile = self.run_profiled(["jit", "register"], **EXACT)
        self.assertEqual(ended.text, "done\n")
        self.assertEqual(profile.flat("inuse_objects")["before_and_after"], 100)
        self.assertEqual(profile.flat("inuse_objects")["allocate_and_unwind"], 100)

    def test_sigaltstack_coroutine_and_chosen_stacks(self):
        _, profile = self.run_profiled("odd_stacks", **EXACT)
        for function, caller in (("on_altstack", "handle"), ("on_coroutine", "coroutine"),
                                 ("on_moved_stack", "moved")):
            self.assertEqual(profile.flat("inuse_objects")[function], 10)
            for sample in profile.samples:
                if sample.stack[0] == function:
                    self.assertEqual(sample.stack[1], caller)

    def test_every_address_is_inside_its_mapping_and_below_the_return(self):
        """pprof looks a line up at the address as it is: it must lie inside the call."""
        _, profile = self.run_profiled("exceptions", **EXACT)
        main_file = program("exceptions")
        self.assertEqual(profile.mappings[0].file, main_file)
        self.assertFalse(any(mapping.has_functions for mapping in profile.mappings))
        for location in profile.locations.values():
            if location.mapping:
                self.assertLessEqual(location.mapping.start, location.address)
                self.assertLess(location.address, location.mapping.limit)
        text = subprocess.run(["readelf", "-n", main_file], capture_output=True, text=True).stdout
        self.assertEqual(profile.mappings[0].build_id, re.search(r"Build ID: (\w+)", text).group(1))

    def symbols(self, file):
        """[(start, end, name)] of the functions of a file, as nm tells them."""
        text = subprocess.run(["nm", "-S", "--defined-only", file], capture_output=True, text=True,
                              check=True).stdout
        rows = [line.split() for line in text.splitlines()]
        return [(int(row[0], 16), int(row[0], 16) + int(row[1], 16), row[3])
                for row in rows if len(row) == 4 and row[2] in "tTwWi"]

    def test_names_are_those_of_the_symbols_that_cover_the_address(self):
        _, profile = self.run_profiled("exceptions", **EXACT)
        main = profile.mappings[0]
        symbols, n_named = self.symbols(main.file), 0
        for location in profile.locations.values():
            if location.mapping is main:
                # Debian links so that an executable segment's address is its offset in the file.
                at = location.address - main.start + main.offset
                covering = {name for start, end, name in symbols if start <= at < end}
                if covering:
                    self.assertIn(location.functions[0], covering)
                else:
                    self.assertEqual(location.functions, [])
                n_named += bool(covering)
        self.assertGreater(n_named, 5)

    def test_a_program_without_frame_pointers_of_the_distribution(self):
        """Debian's sqlite3: main at the end of nearly every stack."""
        script = "create table t(a,b); " + "".join(
            f"insert into t values({i},'{'x' * 50}');" for i in range(3000)) + "select count(*) from t;"
        _, profile = self.run_profiled(["/usr/bin/sqlite3", ":memory:"], input=script.encode(),
                                       SAMPLE_BYTES=1000)
        made = profile.index("alloc_objects")
        total = profile.total("alloc_objects")
        cut = sum(s.values[made] for s in profile.samples if s.stack[-1] == "[truncated]")
        self.assertLess(cut, total / 100)
        whole = [s for s in profile.samples
                 if any("__libc_start" in name or name == "_start" for name in s.stack)]
        self.assertGreater(sum(s.values[made] for s in whole), total / 2)

    def test_stripped_programs_have_addresses_and_no_wrong_names(self):
        subprocess.run(["strip", "-o", self.dir / "leak", program("leak")], check=True)
        _, profile = self.run_profiled([self.dir / "leak", 10, 1000], **EXACT)
        self.assertEqual(profile.total("inuse_objects", lambda s: s.locations[0].mapping
                                       is profile.mappings[0]), 10)
