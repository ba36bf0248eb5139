# SPDX-License-Identifier: MIT
"""labelprof, the command: tables, errors and exit statuses, on profiles this file writes itself.

What a table must say is known because the test wrote the samples; nothing here depends on the
library, except the class that says so.
"""
import csv
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
LABELPROF = TOP / "build" / "labelprof"
LIBRARY = TOP / "build" / "liblabelprof.so"
MIB = 1 << 20

HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"),
        ("inuse_objects", "count"), ("inuse_space", "bytes")]


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, payload):
    return varint(field << 3 | 2) + varint(len(payload)) + payload


class Profile:
    """A profile to be: functions and strings are numbered as they come."""

    def __init__(self, types=None, default="inuse_space", period=524288, program="/usr/bin/app",
                 comments=()):
        self.strings, self.functions, self.body = {b"": 0}, {}, b""
        for name, unit in types or HEAP:
            self.body += message(1, number(1, self.string(name)) + number(2, self.string(unit)))
        self.body += message(3, number(1, 1) + number(2, 0x1000) + number(3, 0x900000) +
                             number(5, self.string(program)))
        self.body += message(11, number(1, self.string("space")) + number(2, self.string("bytes")))
        self.body += number(12, period)
        for comment in comments:
            self.body += number(13, self.string(comment))
        if default:
            self.body += number(14, self.string(default))

    def string(self, text):
        text = text if isinstance(text, bytes) else text.encode()
        return self.strings.setdefault(text, len(self.strings))

    def location(self, names):
        """One location; a tuple of names is inlined functions, innermost first; None has none."""
        if names not in self.functions:
            index = len(self.functions) + 1
            self.functions[names] = index
            lines = b""
            for i, name in enumerate(() if names is None else
                                     names if isinstance(names, tuple) else (names,)):
                function = index * 10 + i
                self.body += message(5, number(1, function) + number(2, self.string(name)) +
                                     number(3, self.string(name)))
                lines += message(4, number(1, function))
            self.body += message(4, number(1, index) + number(2, 1) +
                                 number(3, 0x1000 + 16 * index) + lines)
        return self.functions[names]

    def add(self, stack, size, objects=1, freed=False, labels=None):
        """A sample of the heap types; stack leaf first."""
        live = (0, 0) if freed else (objects, size)
        return self.add_values(stack, (objects, size) + live, labels)

    def add_values(self, stack, values, labels=None):
        body = message(1, b"".join(varint(self.location(frame)) for frame in stack))
        body += message(2, b"".join(varint(value) for value in values))
        for key, value in (labels or {}).items():
            label = number(1, self.string(key))
            if isinstance(value, (str, bytes)):
                label += number(2, self.string(value))
            else:
                amount, unit = value
                label += number(3, amount) + number(4, self.string(unit))
            body += message(3, label)
        self.body += message(2, body)
        return self

    def bytes(self):
        return self.body + b"".join(message(6, text) for text in self.strings)


class Case(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.assertTrue(LABELPROF.exists(), "build/labelprof does not exist: make it first")
        self.dir = Path(tempfile.mkdtemp(prefix="lp-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def write(self, profile, name="app.pb.gz"):
        path = self.dir / name
        path.write_bytes(gzip.compress(profile.bytes()))
        return str(path)

    def command(self, *arguments, binary=LABELPROF, env=None, **options):
        base = {key: value for key, value in os.environ.items()
                if not key.startswith(("LABELPROF_", "LD_"))}
        return subprocess.run([str(binary), *map(str, arguments)], cwd=self.dir, timeout=60,
                              stdin=options.pop("stdin", subprocess.DEVNULL),
                              stdout=options.pop("stdout", subprocess.PIPE),
                              stderr=subprocess.PIPE, env={**base, **(env or {})}, **options)

    def text(self, *arguments):
        done = self.command(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def rows(self, *arguments):
        """{name: (flat, cum)} of top's csv, checked against its json."""
        table = list(csv.DictReader(io.StringIO(self.text("top", "--format", "csv", *arguments),
                                                newline="")))
        from_csv = [(row["name"], int(row["flat"]), int(row["cum"])) for row in table]
        from_json = [(row["name"], row["flat"], row["cum"])
                     for row in self.json(*arguments)["rows"]]
        self.assertEqual(from_csv, from_json)
        self.assertEqual(len({name for name, _, _ in from_csv}), len(from_csv))
        return {name: (flat, cum) for name, flat, cum in from_csv}

    def json(self, *arguments):
        return json.loads(self.text("top", "--format", "json", *arguments))

    def fails(self, status, pattern, *arguments, **options):
        """The command ends so, with nothing on stdout and one line on stderr that matches."""
        done = self.command(*arguments, **options)
        message_text = done.stderr.decode()
        self.assertEqual(done.returncode, status, message_text)
        self.assertFalse(done.stdout)
        self.assertEqual(message_text.count("\n"), 1, message_text)
        self.assertRegex(message_text, r"\Alabelprof: ")
        self.assertRegex(message_text, pattern)


def small_app():
    profile = Profile(comments=["labelprof_version=0.1.0", "samples=7", "refused=0", "lost=0"])
    profile.add(["A", "work", "main"], 300 * MIB, 300, labels={"tenant": "acme",
                                                                "bytes": (MIB, "bytes")})
    profile.add(["B", "work", "main"], 100 * MIB, 50, labels={"tenant": "globex",
                                                               "bytes": (2 * MIB, "bytes")})
    profile.add(["C", "main"], 1000 * MIB, 1000, freed=True, labels={"tenant": "acme"})
    profile.add(["main"], 12 * MIB, 3)
    return profile


class TopByFunction(Case):
    def test_flat_and_cum_are_the_truth(self):
        path = self.write(small_app())
        self.assertEqual(self.rows(path), {
            "A": (300 * MIB, 300 * MIB), "B": (100 * MIB, 100 * MIB),
            "main": (12 * MIB, 412 * MIB), "work": (0, 400 * MIB)})

    def test_every_type_can_be_asked_for(self):
        path = self.write(small_app())
        self.assertEqual(self.rows("--type", "alloc_space", path)["C"], (1000 * MIB, 1000 * MIB))
        self.assertEqual(self.rows("--type=alloc_objects", path)["main"], (3, 1353))
        self.assertEqual(self.rows("--type", "inuse_objects", path)["B"], (50, 50))

    def test_the_default_type_is_the_files_own_else_its_last(self):
        self.assertEqual(self.json(self.write(small_app()))["type"], "inuse_space")
        allocs = Profile(default="alloc_space").add(["f"], 5, freed=True)
        self.assertEqual(self.json(self.write(allocs))["type"], "alloc_space")
        unnamed = Profile(types=[("a", "count"), ("b", "count")], default=None)
        unnamed.add_values(["f"], (1, 2))
        self.assertEqual(self.json(self.write(unnamed))["type"], "b")

    def test_recursion_counts_once_in_cum(self):
        profile = Profile().add(["f", "g", "f", "g", "f", "main"], 70)
        self.assertEqual(self.rows(self.write(profile)),
                         {"f": (70, 70), "g": (0, 70), "main": (0, 70)})

    def test_inlined_functions_have_rows_and_the_innermost_is_the_leaf(self):
        profile = Profile().add([("inner", "outer"), "main"], 9)
        self.assertEqual(self.rows(self.write(profile)),
                         {"inner": (9, 9), "outer": (0, 9), "main": (0, 9)})

    def test_code_without_a_symbol_is_named_by_its_file(self):
        profile = Profile(program="/opt/stripped").add([None], 9)
        name, = self.rows(self.write(profile))
        self.assertIn("stripped", name)

    def test_a_sample_without_a_stack_is_counted(self):
        profile = Profile().add([], 9).add(["f"], 4)
        self.assertEqual(self.rows(self.write(profile)), {"(none)": (9, 9), "f": (4, 4)})

    def test_cpp_names_are_demangled_and_only_they(self):
        profile = Profile().add(["_ZN5store3putEPKc", "_Z4mainv"], 8).add(["_Znwm", "i"], 2)
        profile.add(["_ZBAD", "_"], 1)
        self.assertEqual(set(self.rows(self.write(profile))),
                         {"store::put(char const*)", "main()", "operator new(unsigned long)", "i",
                          "_ZBAD", "_"})

    def test_focus_and_ignore_match_the_shown_name_of_any_frame(self):
        profile = Profile().add(["_ZN5store3putEPKc", "serve", "main"], 8)
        profile.add(["parse", "serve", "main"], 4).add(["boot", "main"], 2)
        path = self.write(profile)
        self.assertEqual(self.rows("--focus", "^store::(put|get)", path),
                         {"store::put(char const*)": (8, 8), "serve": (0, 8), "main": (0, 8)})
        self.assertEqual(self.rows("--ignore", "serve", path), {"boot": (2, 2), "main": (0, 2)})
        self.assertEqual(self.rows("--focus", "serve", "--ignore", "put", path)["main"], (0, 4))
        chosen = self.json("--focus", "boot", path)
        self.assertEqual((chosen["total"], chosen["selected"]), (14, 2))
        self.assertAlmostEqual(chosen["rows"][0]["flat_percent"], 100 * 2 / 14, places=3)

    def test_several_files_are_summed(self):
        first = self.write(small_app(), "1.pb.gz")
        second = self.write(small_app().add(["D"], 5), "2.pb.gz")
        rows = self.rows(first, second)
        self.assertEqual(rows["A"], (600 * MIB, 600 * MIB))
        self.assertEqual(rows["D"], (5, 5))
        table = self.json(first, second)
        self.assertEqual((table["files"], table["samples"]), ([first, second], 14))

    def test_rows_come_largest_first_and_n_cuts_them(self):
        path = self.write(small_app())
        names = [row["name"] for row in self.json(path)["rows"]]
        self.assertEqual(names, ["A", "B", "main", "work"])
        names = [row["name"] for row in self.json("--cum", path)["rows"]]
        self.assertEqual(names, ["main", "work", "A", "B"])
        table = self.json("-n2", path)
        self.assertEqual((len(table["rows"]), table["n_rows"]), (2, 4))
        self.assertIn("2 more", self.text("top", "-n", "2", path))

    def test_text_shows_thirty_rows_csv_and_n_0_all(self):
        profile = Profile()
        for i in range(40):
            profile.add([f"f{i}"], 1000 + i)
        path = self.write(profile)
        self.assertEqual(len(re.findall(r" f\d+$", self.text("top", path), re.M)), 30)
        self.assertEqual(len(re.findall(r" f\d+$", self.text("top", "-n", "0", path), re.M)), 40)
        self.assertEqual(len(self.rows(path)), 40)

    def test_negative_values_of_a_difference_are_kept(self):
        profile = Profile().add(["grew"], 10).add(["shrank"], -90)
        self.assertEqual(self.rows(self.write(profile)),
                         {"shrank": (-90, -90), "grew": (10, 10)})

    def test_sums_stop_at_the_ends_of_int64(self):
        profile = Profile().add(["f"], (1 << 63) - 1).add(["f"], (1 << 63) - 1)
        self.assertEqual(self.rows(self.write(profile))["f"][0], (1 << 63) - 1)

    def test_standard_input_and_plain_protobuf_are_read(self):
        plain = self.dir / "plain.pb"
        plain.write_bytes(small_app().bytes())
        with plain.open("rb") as stream:
            done = self.command("top", "--format", "csv", "-", stdin=stream)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b",A\n", done.stdout)

    def test_an_empty_profile_is_an_empty_table(self):
        path = self.write(Profile())
        self.assertEqual(self.rows(path), {})
        self.assertIn("Total: 0B  Samples: 0", self.text("top", path))


class Header(Case):
    def test_it_names_file_program_type_total_samples_and_interval(self):
        path = self.write(small_app())
        head = self.text("top", path)
        for part in (path, "Program: app", "Type: inuse_space", "Total: 412MiB",
                     "Samples: 7, one every 512KiB"):
            self.assertIn(part, head)
        self.assertNotIn("Note:", head)

    def test_the_program_is_called_as_its_user_called_it(self):
        for comments, name in (([], "link-target"), (["command=/opt/server --port 1"], "server"),
                               (["command=nginx: worker process"], "nginx")):
            profile = Profile(program="/usr/bin/link-target", comments=comments).add(["f"], 1)
            self.assertEqual(self.json(self.write(profile))["programs"], [name])

    def test_an_interval_of_one_is_said_to_be_exact(self):
        self.assertIn("every allocation recorded",
                      self.text("top", self.write(Profile(period=1).add(["f"], 1))))

    def test_what_a_reader_must_know_is_a_note(self):
        profile = Profile(comments=[
            "refused=12", "lost=3", "cycle=9", "interval_bytes_now=2097152", "stacks=4",
            "label_sets_over_limit=4096", "implied_frees=0", "weather=fine"])
        path = self.write(profile.add(["f"], 1))
        notes = re.findall(r"^Note: (.*)$", self.text("top", path), re.M)
        for note, pattern in zip(notes, ("^12 .*totals are low", "^3 .*lost", "grew to 2MiB",
                                         "4096.*LABELPROF_MAX_LABEL_SETS", "^weather=fine$")):
            self.assertRegex(note, pattern)
        self.assertEqual(len(notes), 5)
        self.assertEqual(self.json(path)["notes"], notes)
        self.assertIn("Note: 12 ", self.text("tags", path))


class Quantities(Case):
    def test_sizes_have_four_digits_at_most_and_a_unit_that_fits(self):
        sizes = {1: "1B", 1023: "1.00KiB", 1015: "1015B", 1024: "1KiB", 1536: "1.50KiB",
                 102400: "100KiB", 102450: "100.0KiB", 1048000: "1.00MiB",
                 1000 * MIB + 1: "1000MiB", 123456789: "117.7MiB", 5 << 30: "5GiB",
                 (1 << 63) - 1: "8EiB", -1536: "-1.50KiB"}
        for size, shown in sizes.items():
            text = self.text("top", self.write(Profile().add(["f"], size)))
            self.assertEqual(text.splitlines()[-1].split()[0], shown)

    def test_other_units_and_percentages(self):
        profile = Profile(types=[("delay", "nanoseconds"), ("n", "count")], default="delay")
        path = self.write(profile.add_values(["f"], (2500000, 7)).add_values(["g"], (5000000, 1)))
        self.assertRegex(self.text("top", path), r"(?m)^ +5ms +66\.67% +5ms +66\.67%  g$")
        self.assertRegex(self.text("top", path), r"(?m)^ *2\.50ms +33\.33%")
        self.assertRegex(self.text("top", "--type", "n", path), r"(?m)^ +7 +87\.50%")


class TopByLabel(Case):
    def test_text_labels_and_the_unlabelled(self):
        path = self.write(small_app())
        self.assertEqual(self.rows("--by", "tenant", path), {
            "acme": (300 * MIB, 300 * MIB), "globex": (100 * MIB, 100 * MIB),
            "(none)": (12 * MIB, 12 * MIB)})
        self.assertEqual(self.rows("--by=tenant", "--type", "alloc_space", path)["acme"][0],
                         1300 * MIB)

    def test_numbers_carry_their_unit(self):
        path = self.write(small_app())
        rows = self.rows("--by", "bytes", path)
        self.assertEqual(rows[f"{MIB} bytes"], (300 * MIB, 300 * MIB))
        self.assertEqual(rows[f"{2 * MIB} bytes"], (100 * MIB, 100 * MIB))
        plain = Profile().add(["f"], 3, labels={"shard": (-7, "")})
        self.assertEqual(self.rows("--by", "shard", self.write(plain)), {"-7": (3, 3)})

    def test_focus_selects_before_the_sum(self):
        rows = self.rows("--by", "tenant", "--focus", "^B$", self.write(small_app()))
        self.assertEqual(rows, {"globex": (100 * MIB, 100 * MIB)})

    def test_a_key_of_one_file_does_for_all(self):
        with_key = self.write(small_app(), "1.pb.gz")
        without = self.write(Profile().add(["f"], 8), "2.pb.gz")
        for paths in ((with_key, without), (without, with_key)):
            self.assertEqual(self.rows("--by", "tenant", *paths)["(none)"][0], 12 * MIB + 8)

    def test_a_key_nobody_has_is_an_error_that_lists_the_keys(self):
        path = self.write(small_app())
        self.fails(1, r"'tenat'.*\btenant\b.*bytes|'tenat'.*bytes.*\btenant\b",
                   "top", "--by", "tenat", path)
        self.fails(1, "'x'", "top", "--by", "x", self.write(Profile().add(["f"], 1)))

    def test_the_title_is_the_key(self):
        self.assertRegex(self.text("top", "--by", "tenant", self.write(small_app())),
                         r"(?m)^ *flat +flat% +cum +cum% +tenant$")


NAMES = ["plain", "a,b", 'say "hi"', "two\nlines", "cr\rlf", "tab\there", "esc\x1b[31mred",
         "\x01\x7f", "größe", "日本語の名前", "back\\slash", " padded ", "del\u0085nel"]


class Names(Case):
    def path(self):
        profile = Profile()
        for i, name in enumerate(NAMES):
            profile.add([name], 1000 - i, labels={"key": name})
        return self.write(profile)

    def test_csv_and_json_give_every_name_back(self):
        path = self.path()
        self.assertEqual(list(self.rows(path)), NAMES)
        self.assertEqual(list(self.rows("--by", "key", path)), NAMES)

    def test_text_has_a_line_a_row_and_no_control_characters(self):
        path = self.path()
        for text in (self.text("top", path), self.text("tags", path)):
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("two\\x0alines", text)
            self.assertIn("esc\\x1b[31mred", text)
            self.assertIn("日本語の名前", text)
        self.assertEqual(len(self.text("top", path).splitlines()), 3 + len(NAMES))

    def test_columns_stay_aligned(self):
        lines = self.text("top", self.path()).splitlines()[2:]
        at = lines[0].index("function")
        for line, name in zip(lines[1:], NAMES):
            self.assertEqual(line[at:at + 2].strip(), name[:2].strip().replace("\x01\x7f", "\\x"))

    def test_bytes_that_are_not_utf8_are_escaped_everywhere(self):
        path = self.write(Profile().add([b"bad\xff\xc3("], 1, labels={"k": b"\xed\xa0\x80"}))
        self.assertEqual(list(self.rows(path)), ["bad\\xff\\xc3("])
        self.assertEqual(list(self.rows("--by", "k", path)), ["\\xed\\xa0\\x80"])
        self.assertIn("bad\\xff\\xc3(", self.text("top", path))

    def test_long_names_are_whole_unless_on_a_terminal(self):
        name = "n" * 5000
        self.assertIn(name, self.text("top", self.write(Profile().add([name], 1))))


class Terminal(Case):
    """What a person at a terminal of 60 columns sees."""

    def screen(self, path, **env):
        import fcntl
        import pty
        import struct
        import termios
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        done = self.command("top", path, stdout=theirs, env={"TERM": "xterm", **env})
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        return shown.decode()

    def test_names_are_cut_to_the_width_wide_characters_counted_as_two(self):
        profile = Profile().add(["x" * 200], 30).add(["語" * 100], 20).add(["short"], 10)
        rows = self.screen(self.write(profile), NO_COLOR="1").splitlines()[3:]
        width = [sum(2 if character == "語" else 1 for character in row) for row in rows]
        self.assertEqual(width[0], 60)
        self.assertIn(width[1], (59, 60))
        self.assertTrue(rows[0].endswith("x...") and rows[1].endswith("語..."))
        self.assertTrue(rows[2].endswith("short"))

    def test_colours_are_for_terminals_that_want_them(self):
        path = self.write(small_app())
        self.assertIn("\x1b[1m", self.screen(path))
        self.assertNotIn("\x1b", self.screen(path, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.screen(path, TERM="dumb"))
        self.assertNotIn("\x1b", self.text("top", path))


class Tags(Case):
    def test_every_key_with_totals_and_percent(self):
        text = self.text("tags", self.write(small_app()))
        self.assertRegex(text, r"(?m)^tenant: Total 400MiB, 97\.09% of all\n"
                               r" +300MiB +75\.00%  acme\n +100MiB +25\.00%  globex$")
        self.assertRegex(text, r"(?m)^bytes: Total 400MiB.*\n +300MiB +75\.00%  1048576 bytes")
        self.assertLess(text.index("bytes: Total"), text.index("tenant: Total"))

    def test_other_types_and_several_files(self):
        path = self.write(small_app())
        self.assertRegex(self.text("tags", "--type", "alloc_space", path),
                         r"1\.27GiB +92\.86%  acme")
        self.assertRegex(self.text("tags", path, path), r"600MiB +75\.00%  acme")

    def test_a_profile_without_labels_says_so(self):
        self.assertIn("No labels.", self.text("tags", self.write(Profile().add(["f"], 1))))


class BadInput(Case):
    def test_files_that_are_no_profile(self):
        whole = gzip.compress(small_app().bytes())
        for name, content in {"empty": b"", "text": b"hello, world\n", "cut.gz": whole[:-20],
                              "half.gz": whole[:len(whole) // 2], "gz": gzip.compress(b"\xff" * 9),
                              "garbage.gz": whole[:40] + bytes(len(whole) - 40)}.items():
            (self.dir / name).write_bytes(content)
            for subcommand in ("top", "tags"):
                with self.subTest(name=name, subcommand=subcommand):
                    self.fails(1, re.escape(name), subcommand, name)

    def test_files_that_cant_be_read(self):
        self.fails(1, "missing.pb.gz.*No such file", "top", "missing.pb.gz")
        self.fails(1, "labelprof", "top", str(self.dir))
        self.fails(1, "missing", "tags", self.write(small_app()), "missing")

    def test_a_type_the_file_has_not_is_answered_with_those_it_has(self):
        self.fails(1, "'cpu'.*alloc_objects, alloc_space, inuse_objects, inuse_space",
                   "top", "--type", "cpu", self.write(small_app()))

    def test_files_that_count_in_different_units_are_not_summed(self):
        other = Profile(types=[("inuse_space", "pages")]).add_values(["f"], (1,))
        self.fails(1, "pages.*bytes", "top", self.write(small_app(), "1.gz"),
                   self.write(other, "2.gz"))

    def test_a_hostile_path_cant_reach_the_terminal(self):
        done = self.command("top", "evil\x1b[2J\n")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(b"\x1b", done.stderr)


class WrongUsage(Case):
    def test_each_is_one_line_and_status_2(self):
        path = self.write(small_app())
        for pattern, arguments in (
                ("subcommand is missing", []),
                ("unknown subcommand 'tpo'", ["tpo"]),
                ("unknown option '--fast'", ["--fast"]),
                ("give a profile", ["top"]),
                ("give a profile", ["tags"]),
                ("give a program", ["run"]),
                ("give a program", ["run", "--"]),
                ("unknown option '--frobnicate'", ["top", "--frobnicate", path]),
                ("unknown option '-x'", ["top", "-x", path]),
                ("unknown option '--by'", ["tags", "--by", "k", path]),
                ("unknown option '--typ=", ["top", "--typ=inuse_space", path]),
                ("value is missing after '--by'", ["top", path, "--by"]),
                ("no value goes with '--cum=1'", ["top", "--cum=1", path]),
                ("-n 'many'", ["top", "-n", "many", path]),
                ("-n '-3'", ["top", "-n", "-3", path]),
                ("-n '99999999999999999999'", ["top", "-n", "99999999999999999999", path]),
                ("'xml' is not one of text, csv, json", ["top", "--format", "xml", path]),
                (r"--focus '\('", ["top", "--focus", "(", path]),
                ("--ignore '.*regular expression", ["top", "--ignore", "[", path]),
                ("--pid is not in this version", ["top", "--pid", "1"]),
                ("no topic 'cheese'", ["help", "cheese"]),
                ("one topic at a time", ["help", "top", "tags"]),
                ("--sample '0' is not", ["run", "--sample", "0", "true"]),
                ("--sample 'lots' is not", ["run", "--sample", "lots", "true"]),
                ("--label 'novalue'", ["run", "--label", "novalue", "true"]),
                ("--label '=v'", ["run", "--label", "=v", "true"])):
            with self.subTest(arguments=arguments):
                self.fails(2, pattern, *arguments)

    def test_subcommands_of_other_versions_are_named_as_such(self):
        for name in ("report flame diff merge symbolize recover log ps dump doctor").split():
            self.fails(2, f"'{name}' is not in this version", name)

    def test_operands_may_stand_before_options_and_after_a_double_dash(self):
        path = self.write(small_app(), "--odd")
        self.assertEqual(self.json(path, "-n", "1")["n_rows"], 4)
        self.assertEqual(self.command("top", "--", "--odd").returncode, 0)


class Output(Case):
    def test_a_full_disk_is_an_error(self):
        path = self.write(small_app())
        with open("/dev/full", "wb") as full:
            for arguments in (["top", path], ["tags", path], ["help"], ["--version"],
                              ["top", "--format", "json", path]):
                done = self.command(*arguments, stdout=full)
                self.assertEqual(done.returncode, 1, arguments)
                self.assertRegex(done.stderr, rb"\Alabelprof: .*No space left on device\n\Z")

    def test_a_reader_that_leaves_ends_it_quietly(self):
        profile = Profile()
        for i in range(20000):
            profile.add([f"function_number_{i}"], 1 + i)
        for restore in (True, False):  # SIGPIPE kills, or is ignored and the write fails
            child = subprocess.Popen([LABELPROF, "top", "-n", "0", self.write(profile)],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     restore_signals=restore)
            child.stdout.read(10)
            child.stdout.close()
            self.assertEqual(child.stderr.read(), b"")
            child.stderr.close()
            self.assertEqual(child.wait(60), -signal.SIGPIPE if restore else 1)

    def test_a_closed_stdout_is_an_error(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" help >&-', LABELPROF], timeout=60,
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rb"\Alabelprof: can't write the output: ")


class Help(Case):
    def test_version(self):
        makefile = (TOP / "Makefile").read_text()
        version = re.search(r"^VERSION := (\S+)$", makefile, re.M)[1]
        self.assertEqual(self.text("--version"), f"labelprof {version}\n")

    def test_every_subcommand_has_it_in_three_ways(self):
        overview = self.text("help")
        self.assertEqual(overview, self.text("--help"))
        for name in ("run", "top", "tags", "help"):
            self.assertRegex(overview, rf"(?m)^  {name} ")
            about = self.text("help", name)
            self.assertIn(f"usage: labelprof {name} ", about)
            self.assertEqual(about, self.text(name, "--help"))
            self.assertEqual(about, self.text(name, "-h"))
            self.assertLessEqual(max(map(len, about.splitlines())), 80)

    def test_options_of_the_help_are_in_the_man_page(self):
        man = (TOP / "docs" / "labelprof.1").read_text()
        for name in ("run", "top", "tags"):
            for option in re.findall(r"--([a-z]+)", self.text("help", name)):
                self.assertRegex(man, rf"Fl -{option}\b")

    def test_env_help_man_page_and_code_have_the_same_variables_and_defaults(self):
        text = self.text("help", "env")
        shown = dict(re.findall(r"^(LABELPROF_\w+)(?: \(default: (.*)\))?$", text, re.M))
        man = (TOP / "docs" / "labelprof.1").read_text()
        written = {name: default.replace("\\&", "") for name, default in
                   re.findall(r"^\.It Ev (LABELPROF_\w+)(?: Pq Li (.*))?$", man, re.M)}
        self.assertEqual(shown, written)
        source = (TOP / "preload" / "base" / "options.c").read_text()
        self.assertEqual(set(shown), set(re.findall(r'"(LABELPROF_\w+)"', source)))
        self.assertGreater(len(shown), 20)

    def test_man_page_is_clean(self):
        man = TOP / "docs" / "labelprof.1"
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", man], timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, b""))
        elif shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", man], timeout=60, check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        else:
            self.skipTest("neither mandoc nor man is installed")


class Run(Case):
    """`run` with a library that does nothing, so that only the command is on trial."""

    def setUp(self):
        super().setUp()
        self.home = self.install("bin", "bin")

    def install(self, command_folder, library_folder, prefix="home"):
        home = self.dir / prefix
        (home / command_folder).mkdir(parents=True)
        (home / library_folder).mkdir(parents=True, exist_ok=True)
        self.labelprof = home / command_folder / "labelprof"
        self.library = home / library_folder / "liblabelprof.so"
        shutil.copy(LABELPROF, self.labelprof)
        self.compile("int nothing;", self.library, "-shared", "-fPIC")
        return home

    def compile(self, source, path, *flags):
        subprocess.run(["cc", "-xc", "-", "-o", path, *flags], input=source.encode(), check=True,
                       timeout=60)

    def run_command(self, *arguments, **options):
        return self.command("run", *arguments, binary=self.labelprof, **options)

    def environment(self, *arguments, **env):
        """What a program under `run` finds."""
        done = self.run_command(*arguments, "--", "/usr/bin/env", "-0", env=env)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)

    def test_the_library_beside_the_command_comes_first(self):
        self.assertEqual(self.environment()["LD_PRELOAD"], str(self.library))
        libc = "libc.so.6"
        self.assertEqual(self.environment(LD_PRELOAD=libc)["LD_PRELOAD"], f"{self.library}:{libc}")

    def test_a_link_to_the_command_finds_the_library_too(self):
        link = self.dir / "lp"
        link.symlink_to(self.labelprof)
        self.labelprof = link
        self.assertEqual(self.environment()["LD_PRELOAD"], str(self.library))

    def test_it_is_found_where_make_install_puts_it(self):
        for i, folder in enumerate(("lib", "lib/x86_64-linux-gnu")):
            if i and os.uname().machine != "x86_64":
                continue
            self.install("bin", folder, f"prefix{i}")
            self.assertEqual(self.environment()["LD_PRELOAD"], str(self.library))

    def test_a_missing_library_is_an_error_that_says_where_it_looked(self):
        self.library.unlink()
        done = self.run_command("true")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(),
                         rf"\Alabelprof: run: no liblabelprof\.so in {self.home}/bin/, "
                         rf"{self.home}/bin/\.\./lib/.*make install.*\n\Z")

    def test_a_path_ld_preload_cant_carry_is_an_error(self):
        for prefix in ("with space", "with:colon", "with$dollar"):
            self.install("bin", "bin", prefix)
            done = self.run_command("true")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rb"\Alabelprof: run: LD_PRELOAD can't carry .*PREFIX.*\n")

    def test_out_and_sample_become_variables(self):
        env = self.environment("--out", "x.%p.gz", "--sample=64k")
        self.assertEqual((env["LABELPROF_OUT"], env["LABELPROF_SAMPLE_BYTES"]), ("x.%p.gz", "64k"))
        env = self.environment(LABELPROF_OUT="kept")
        self.assertEqual(env["LABELPROF_OUT"], "kept")
        self.assertNotIn("LABELPROF_SAMPLE_BYTES", env)

    def test_labels_are_encoded_and_added_to_those_there_are(self):
        env = self.environment("--label", "a,b=c=d%e", "--label", "service=cache", "--label",
                               "none=", LABELPROF_LABELS="old=1")
        self.assertEqual(env["LABELPROF_LABELS"], "old=1,a%2Cb=c%3Dd%25e,service=cache")
        self.assertNotIn("LABELPROF_LABELS", self.environment())

    def test_a_bad_label_in_the_environment_is_an_error_only_when_added_to(self):
        done = self.run_command("--label", "a=b", "true", env={"LABELPROF_LABELS": "junk"})
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"junk", done.stderr)

    def test_arguments_go_to_the_program_untouched(self):
        show = 'printf "%s|" "$@"'
        for dashes in ([], ["--"]):
            done = self.run_command(*dashes, "/bin/sh", "-c", show, "-", "--out", "-n", "", "a b",
                                    "--help")
            self.assertEqual(done.stdout, b"--out|-n||a b|--help|")

    def test_it_ends_as_the_program_does(self):
        self.assertEqual(self.run_command("/bin/sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.run_command("/bin/sh", "-c", "kill -TERM $$").returncode,
                         -signal.SIGTERM)
        self.assertEqual(self.run_command("cat", stdin=subprocess.DEVNULL).returncode, 0)

    def test_the_program_keeps_the_process_id(self):
        child = subprocess.Popen([self.labelprof, "run", "/bin/sh", "-c", "echo $$"],
                                 stdout=subprocess.PIPE)
        out, _ = child.communicate(timeout=60)
        self.assertEqual(int(out), child.pid)

    def test_a_program_that_is_not_there_is_127_one_that_cant_run_126(self):
        (self.dir / "data").write_text("not executable")
        for status, pattern, program in ((127, b"no-such-program is not found in PATH",
                                          "no-such-program"),
                                         (127, b"No such file", "./absent"),
                                         (126, b"Permission denied", "./data"),
                                         (126, b"Permission denied", "/")):
            done = self.run_command(program)
            self.assertEqual(done.returncode, status)
            self.assertRegex(done.stderr, rb"\Alabelprof: run: .*" + pattern + rb".*\n\Z")

    def test_a_static_program_runs_with_a_warning(self):
        self.compile('#include <stdio.h>\nint main(void) { puts("ran"); return 3; }',
                     self.dir / "static", "-static")
        done = self.run_command("./static")
        self.assertEqual((done.returncode, done.stdout), (3, b"ran\n"))
        self.assertRegex(done.stderr, rb"\Alabelprof: run: \./static is statically linked: .*\n\Z")

    def test_a_dynamic_program_and_scripts_run_without_one(self):
        script = self.dir / "script"
        for line in ("#!/bin/sh", "#! /usr/bin/env sh"):
            script.write_text(f"{line}\necho ran\n")
            script.chmod(0o755)
            done = self.run_command("./script")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))

    def test_a_script_of_a_static_interpreter_has_the_warning(self):
        self.compile("int main(void) { return 0; }", self.dir / "static", "-static-pie", "-fPIE")
        script = self.dir / "script"
        script.write_text(f"#!{self.dir}/static\n")
        script.chmod(0o755)
        self.assertIn(b"statically linked", self.run_command("./script").stderr)

    def test_a_program_of_another_word_size_or_libc_is_seen(self):
        """Headers only: exec refuses them after the warning."""
        self.compile("int main(void) { return 0; }", self.dir / "app")
        image = bytearray((self.dir / "app").read_bytes())
        linker = b"/lib64/ld-linux-x86-64.so.2"
        musl = bytes(image).replace(linker, b"/lib/ld-musl-x86_64.so.1".ljust(len(linker), b"\0"))
        image[4] = 1  # ELFCLASS32
        for name, content, pattern in (("narrow", image, b"32-bit"), ("musl", musl, b"musl")):
            if name == "musl" and bytes(content) == (self.dir / "app").read_bytes():
                continue  # not x86-64
            (self.dir / name).write_bytes(content)
            (self.dir / name).chmod(0o755)
            done = self.run_command(f"./{name}")
            self.assertRegex(done.stderr.splitlines()[0], rb"\Alabelprof: run: .*" + pattern)

    def test_a_setuid_program_has_the_warning(self):
        if os.getuid() != 0:
            self.skipTest("needs root to give a file away")
        path = self.dir / "setuid"
        shutil.copy("/usr/bin/env", path)
        os.chown(path, 65534, 65534)
        path.chmod(0o4755)
        done = self.run_command("./setuid", "true")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, rb"\Alabelprof: run: \./setuid gains rights")


LEAKER = """
#include <stdlib.h>
#include <string.h>
void *kept[1000];
__attribute__((noinline)) void leak(int i) { kept[i] = malloc(1000); memset(kept[i], i, 1000); }
__attribute__((noinline)) void churn(void) { free(malloc(500)); }
int main(void)
{
    for (int i = 0; i < 1000; i++) {
        leak(i);
        churn();
    }
    return 5;
}
"""


class RunForReal(Case):
    """The shipped library: from program to table."""

    def test_from_a_program_to_a_table(self):
        if not LIBRARY.exists():
            self.fail("build/liblabelprof.so does not exist: make it first")
        subprocess.run(["cc", "-xc", "-", "-O1", "-fno-builtin", "-rdynamic", "-o",
                        self.dir / "leaker"], input=LEAKER.encode(), check=True, timeout=60)
        done = self.command("run", "--out", "leaker.%t.pb.gz", "--sample", "1", "--label",
                            "service=a,b", "./leaker")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, b"", b""))
        path = "leaker.heap.pb.gz"
        self.assertEqual(self.rows(path)["leak"], (1000000, 1000000))
        self.assertEqual(self.rows("--type", "alloc_space", path)["churn"], (500000, 500000))
        self.assertEqual(self.rows("--by", "service", "--focus", "^leak$", path),
                         {"a,b": (1000000, 1000000)})
        self.assertEqual(self.rows("--by", "bytes", "--focus", "^leak$", path),
                         {"1000 bytes": (1000000, 1000000)})
        self.assertIn("service: Total", self.text("tags", path))
        self.assertIn("Program: leaker", self.text("top", path))


if __name__ == "__main__":
    unittest.main()
