# SPDX-License-Identifier: MIT
"""The rule files of rules/, each on the real library or program as Debian ships it: the parts it
tells apart do appear, and what the file promises to label is labelled."""
import csv
import io
import signal
import subprocess
import textwrap
import unittest

import pprof
from test_real_programs import Nginx as NginxServer
from test_real_programs import Redis as RedisServer
from victim import PYTHON, TOP, Case, program

LABELPROF = TOP / "build" / "labelprof"
RULES = TOP / "rules"


def rules(name):
    return str(RULES / f"{name}.rules")


class Shipped(Case):
    limit_s = 200

    def top_by(self, key, path, kind):
        """labelprof top --by: {value: percent}."""
        done = subprocess.run([LABELPROF, "top", "--by", key, "--type", kind, "--format", "csv",
                               path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["name"]: int(row["flat"]) for row in csv.DictReader(io.StringIO(done.stdout))}
        return {name: 100 * flat / sum(rows.values()) for name, flat in rows.items()}

    def assert_split(self, shares, values, at_least):
        """Each of the values is there; all labels together have that share."""
        self.assertLessEqual(set(values), set(shares))
        self.assertGreaterEqual(100 - shares.get("(none)", 0), at_least, shares)

    def largest(self, name):
        paths = [path for path in self.profile_paths() if f".{name}" in path.name]
        self.assertTrue(paths, [path.name for path in self.dir.iterdir()])
        return max(paths, key=lambda path: pprof.read(path).total("alloc_space"))


class Files(unittest.TestCase):
    def test_every_file_is_good_and_says_what_it_is_for(self):
        paths = sorted(RULES.iterdir())
        self.assertGreaterEqual(len(paths), 8)
        for path in paths:
            self.assertEqual(path.suffix, ".rules")
            self.assertTrue(path.read_text().startswith("# "), path)
            done = subprocess.run([LABELPROF, "rules", "check", path], capture_output=True,
                                  text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_all_of_them_in_one_file_are_good_too(self):
        whole = "\n".join(path.read_text() for path in sorted(RULES.iterdir()))
        done = subprocess.run([LABELPROF, "rules", "check", "/dev/stdin"], input=whole,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Sqlite(Shipped):
    SCRIPT = textwrap.dedent("""
        create table t(id integer primary key, name text, v real);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)
            insert into t select i, 'name' || (i * 7919 % 100003), i * 0.5 from n;
        create index by_name on t(name);
        select substr(name, 1, 5) p, count(*), sum(v) from t group by p order by 2 desc limit 5;
        select count(*) from t a join t b on a.name = b.name where a.id < 2000;
        create virtual table f using fts5(body);
        insert into f select name from t where id < 1000;
    """)

    def test_all_that_sqlite3_allocates(self):
        ended = self.run_under(["/bin/sh", "-c", "exec sqlite3 x.db"], input=self.SCRIPT.encode(),
                               RULES=rules("sqlite3"), SAMPLE_BYTES="128")
        self.assertEqual((ended.status, ended.errors), (0, ""))
        path = self.largest("sqlite3")
        self.assert_split(self.top_by("component", path, "alloc_space"),
                          ["parser", "cache", "btree", "sorter", "values", "schema", "fts"], 90)
        self.assert_split(self.top_by("library", path, "alloc_space"), ["sqlite3"], 90)

    def test_what_a_running_sqlite3_holds(self):
        child = self.start(["/usr/bin/sqlite3", "x.db"], stdin=subprocess.PIPE, SAMPLE_BYTES="128",
                           RULES=rules("sqlite3"), DUMP_SIGNAL="USR2")
        child.stdin.write(self.SCRIPT.encode() + b"select 'read' || 'y';\n")
        child.stdin.flush()
        while child.stdout.readline() != b"ready\n":
            pass
        child.send_signal(signal.SIGUSR2)
        self.wait_until(self.profile_paths, "a dump")
        path = self.profile_paths()[0]
        shares = self.top_by("component", path, "inuse_space")
        self.assert_split(shares, ["btree", "schema", "fts"], 90)
        child.stdin.close()
        child.wait(timeout=30)


class Python(Shipped):
    SCRIPT = textwrap.dedent("""
        import csv, io, json, re, sqlite3, zlib
        data = {str(i): [i, str(i) * 10, {'x': i / 3}] for i in range(5000)}
        text = json.dumps(data)
        assert json.loads(text) == data
        words = re.findall(r'\\\\d+', text)
        lengths, distinct = dict.fromkeys(words, 0), set(words)
        packed = zlib.compress(text.encode())
        db = sqlite3.connect(':memory:')
        db.execute('create table t(a, b)')
        db.executemany('insert into t values(?, ?)', ((i, str(i)) for i in range(5000)))
        rows = list(csv.reader(io.StringIO('a,b\\\\n' * 5000)))
        print('done')
    """)

    def run_python(self, **options):
        (self.dir / "s.py").write_text(self.SCRIPT.replace("\\\\", "\\"))
        self.run_ok([PYTHON, "s.py"], RULES=rules("python3"), **options)
        return self.largest("python3")

    def test_all_that_python3_allocates(self):
        path = self.run_python(SAMPLE_BYTES="2k", extra={"PYTHONMALLOC": "malloc"})
        self.assert_split(self.top_by("component", path, "alloc_space"),
                          ["dict", "list", "str", "bytes", "number", "code", "class", "import",
                           "interpreter"], 90)
        self.assert_split(self.top_by("extension", path, "alloc_space"),
                          ["json", "sqlite3", "zlib"], 10)

    def test_with_its_own_arenas(self):
        path = self.run_python(SAMPLE_BYTES="2k")
        self.assert_split(self.top_by("component", path, "alloc_space"),
                          ["dict", "list", "bytes", "interpreter"], 90)

    def test_what_it_still_holds_at_its_end(self):
        path = self.run_python(SAMPLE_BYTES="1", MAX_MEMORY="1g")
        shares = self.top_by("component", path, "inuse_objects")
        self.assertGreaterEqual(100 - shares.get("(none)", 0), 90, shares)


class OpenSsl(Shipped):
    HANDSHAKE = textwrap.dedent("""
        import ssl
        server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_side.load_cert_chain('c.pem', 'k.pem')
        client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client_side.load_verify_locations('c.pem')
        client_side.check_hostname = False
        a, b, c, d = (ssl.MemoryBIO() for _ in range(4))
        server, client = server_side.wrap_bio(a, b, server_side=True), client_side.wrap_bio(c, d)
        left = [client, server]
        while left:
            for each in list(left):
                try:
                    each.do_handshake()
                    left.remove(each)
                except ssl.SSLWantReadError:
                    pass
                a.write(d.read())
                c.write(b.read())
        client.write(b'x' * 1000)
        a.write(d.read())
        assert server.read(1000) == b'x' * 1000
    """)

    def make_key(self, **options):
        return self.run_under(["/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                               "-keyout", "k.pem", "-out", "c.pem", "-subj", "/CN=x"], **options)

    def test_a_key_and_a_certificate(self):
        ended = self.make_key(RULES=rules("openssl"), SAMPLE_BYTES="1")
        self.assertEqual(ended.status, 0, ended.errors)
        path = self.largest("openssl")
        self.assert_split(self.top_by("component", path, "alloc_space"),
                          ["bignum", "provider", "asn1", "bio", "key", "config", "x509"], 90)
        self.assert_split(self.top_by("library", path, "alloc_space"), ["crypto"], 90)

    def test_a_handshake_in_a_library_loaded_late(self):
        self.make_key()
        (self.dir / "t.py").write_text(self.HANDSHAKE)
        for path in self.profile_paths():
            path.unlink()
        self.run_ok([PYTHON, "t.py"], RULES=rules("openssl"), SAMPLE_BYTES="1")
        profile = pprof.read(self.largest("python3"))
        self.assertLessEqual({"handshake", "context", "records", "x509"},
                             profile.label_values("component"))
        library = profile.by_label("library", "alloc_space")
        inside = profile.total("alloc_space", lambda sample: "library" in sample.labels)
        labelled = profile.total("alloc_space", lambda sample: "library" in sample.labels and
                                 "component" in sample.labels)
        self.assertGreater(labelled, 0.9 * inside)
        self.assertGreater(library["ssl"], 0)


class LibXml2(Shipped):
    SCRIPT = textwrap.dedent("""
        import ctypes
        xml, P = ctypes.CDLL('libxml2.so.2'), ctypes.c_void_p
        for name in ('xmlReadMemory', 'xmlXPathNewContext', 'xmlXPathEvalExpression',
                     'htmlReadMemory', 'xmlRelaxNGNewMemParserCtxt', 'xmlRelaxNGParse'):
            getattr(xml, name).restype = P
        body = b'<a>' + b''.join(b'<b i="%d">text %d</b>' % (i, i) for i in range(3000)) + b'</a>'
        document = P(xml.xmlReadMemory(body, len(body), b'a.xml', None, 0))
        xml.xmlXPathEvalExpression(b'//*[@i > 100]', P(xml.xmlXPathNewContext(document)))
        out, size = P(), ctypes.c_int()
        xml.xmlDocDumpMemory(document, ctypes.byref(out), ctypes.byref(size))
        html = b'<p>x' * 500
        xml.htmlReadMemory(html, len(html), None, None, 96)
        schema = (b'<element name="a" xmlns="http://relaxng.org/ns/structure/1.0"><zeroOrMore>'
                  b'<element name="b"><text/></element></zeroOrMore></element>')
        xml.xmlRelaxNGParse(P(xml.xmlRelaxNGNewMemParserCtxt(schema, len(schema))))
    """)

    def test_documents_paths_and_schemas(self):
        try:
            import ctypes
            ctypes.CDLL("libxml2.so.2")
        except OSError:
            self.skipTest("no libxml2.so.2")
        (self.dir / "x.py").write_text(self.SCRIPT)
        self.run_ok([PYTHON, "x.py"], RULES=rules("libxml2"), SAMPLE_BYTES="1")
        profile = pprof.read(self.largest("python3"))
        self.assertLessEqual({"tree", "xpath", "dictionary", "parser", "output", "html", "schema"},
                             profile.label_values("component"))
        inside = lambda sample: sample.labels.get("library") == "xml2"
        self.assertGreater(profile.total("alloc_space", lambda sample: inside(sample) and
                                         "component" in sample.labels),
                           0.9 * profile.total("alloc_space", inside))


class Containers(Shipped):
    def test_each_container_of_a_stripped_program_that_exports_its_templates(self):
        binary = self.dir / "containers"
        subprocess.run(["strip", "-o", binary, program("containers")], check=True)
        _, profile = self.run_profiled([binary], RULES=rules("libstdcxx"), SAMPLE_BYTES="1")
        made = profile.by_label("container", "alloc_objects")
        for container in "vector", "map", "set", "unordered_map", "unordered_set", "list", "string":
            self.assertIn(container, made)
        for container in "map", "set", "unordered_map", "unordered_set", "list":
            self.assertGreaterEqual(made[container], 1000)
        self.assertLessEqual({"stream", "exception", "shared_ptr"}, set(made))
        ours = [s for s in profile.samples if "main" in s.stack]
        index = profile.index("alloc_space")
        self.assertGreater(sum(s.values[index] for s in ours if "container" in s.labels),
                           0.9 * sum(s.values[index] for s in ours))


class Glibc(Shipped):
    def test_parts_of_the_c_library(self):
        script = ('use POSIX; setlocale(LC_ALL, "C.UTF-8"); my @p = getpwnam("root"); '
                  'open(my $f, "/etc/passwd"); opendir(my $d, "/"); my @l = localtime; '
                  'system("true"); my $h = gethostbyname("localhost");')
        ended = self.run_under(["/usr/bin/perl", "-e", script], RULES=rules("glibc"),
                               SAMPLE_BYTES="1")
        self.assertEqual((ended.status, ended.errors), (0, ""))
        profile = pprof.read(self.largest("perl"))
        self.assertLessEqual({"locale", "users", "directory", "loader"},
                             profile.label_values("libc"))


class Redis(RedisServer, Shipped):
    """The server and its load are test_real_programs'; its tests are not run again."""

    def test_a_server_under_load(self):
        server = self.serve(RULES=rules("redis"), SAMPLE_BYTES="4k")
        self.load()
        self.cli("eval", "return redis.call('get', 'x')", "0")
        self.cli("xadd", "stream", "*", "a", "b")
        self.cli("shutdown", "nosave")
        ended = self.finish(server)
        self.assertEqual((ended.status, ended.errors), (0, ""))
        path = self.largest("redis-")
        self.assert_split(self.top_by("component", path, "alloc_space"),
                          ["query", "client", "hash", "packed", "table", "scripts", "reply"], 90)
        self.assertGreaterEqual(100 - self.top_by("component", path, "inuse_space").get("(none)", 0),
                                90)


class Nginx(NginxServer, Shipped):
    def test_a_worker_under_load(self):
        self.prepare("off")
        server = self.start(self.argv, **dict(self.options, SAMPLE_BYTES="1k",
                                              RULES=rules("nginx")))
        self.load()
        server.send_signal(signal.SIGQUIT)
        ended = self.finish(server)
        self.assertEqual((ended.status, ended.errors), (0, ""))
        shares = self.top_by("component", self.largest("nginx"), "alloc_space")
        self.assert_split(shares, ["buffers", "request", "connections"], 90)
        seen = [pprof.read(path).label_values("component") for path in self.profile_paths()]
        self.assertLessEqual({"configuration", "processes", "hashes"}, set().union(*seen))


def only_own_tests(case, parent):
    """A case that borrows a server leaves the parent's tests to the parent."""
    for name in dir(parent):
        if name.startswith("test_") and name not in vars(case):
            setattr(case, name, None)


only_own_tests(Redis, RedisServer)
only_own_tests(Nginx, NginxServer)
del RedisServer, NginxServer

if __name__ == "__main__":
    unittest.main()
