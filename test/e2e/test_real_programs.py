# SPDX-License-Identifier: MIT
"""Programs people use: output and exit status as without the library, and a profile pprof opens."""
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import textwrap
from pathlib import Path

from victim import PYTHON, Case

SMALL = {"SAMPLE_BYTES": "16k"}


class Real(Case):
    limit_s = 300

    def end_by_pid_file(self, path):
        """A daemon is nobody's child: when a test fails half-way, its pid file is what is left."""
        try:
            os.kill(int(path.read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            pass

    def profile_named(self, name, at_least=1):
        """The profiles of programs of this name, each opened by us; the largest by pprof too. A
        name may be a link's: redis-server is redis-check-rdb by its file's name."""
        names = {name, os.path.basename(os.path.realpath(shutil.which(name) or name))}
        paths = [path for path in self.profile_paths()
                 if path.name.startswith(tuple(f"labelprof.{each}." for each in names))]
        self.assertGreaterEqual(len(paths), at_least, f"no profile of {name}: "
                                f"{sorted(path.name for path in self.dir.iterdir())}")
        largest = max(paths, key=lambda path: path.stat().st_size)
        self.assertIn("flat", self.go_pprof("-top", "-sample_index=alloc_space", largest))
        self.assertIn("thread_name: Total",
                      self.go_pprof("-tags", "-sample_index=alloc_space", largest))
        return [self.checked(path) for path in paths]

    def assert_whole_stacks(self, profile, share=0.95):
        """Nearly all that was allocated has a stack that isn't cut."""
        made = profile.index("alloc_space")
        cut = sum(s.values[made] for s in profile.samples if s.stack[-1] == "[truncated]")
        self.assertLess(cut, (1 - share) * profile.total("alloc_space") + 1)


class Tools(Real):
    BASH = textwrap.dedent("""
        set -u
        declare -A seen
        for i in $(seq 1 3000); do seen[key$i]=$((i * i)); done
        echo ${#seen[@]} ${seen[key77]}
        for word in alpha beta gamma; do (echo "$word" | tr a-z A-Z); done | sort -r
        text=$(for i in $(seq 1 2000); do printf '%s,' "$i"; done); echo ${#text}
        f() { local n=$1; if [ "$n" -gt 1 ]; then f $((n - 1)); else return 7; fi; }
        f 50; echo $?
        cat <(echo one) <(echo two)
        while read -r line; do echo "<$line>"; done <<< "here
        string"
        trap 'echo bye' EXIT
        sleep 0 & wait $!
        coproc cat; echo hello >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo "$line"
        kill $COPROC_PID; wait 2>/dev/null
        exit 9
    """)

    def test_bash(self):
        ended = self.same_bare_and_under(["/bin/bash", "-c", self.BASH], **SMALL)
        self.assertEqual(ended.status, 9)
        self.profile_named("bash")

    def test_bash_with_everything_sampled(self):
        self.same_bare_and_under(["/bin/bash", "-c", self.BASH], SAMPLE_BYTES=1)

    def test_perl(self):
        script = r"""
            my %h; $h{$_ % 5000} .= "x$_" for 1..200000;
            my @s = sort { length $h{$a} <=> length $h{$b} || $a <=> $b } keys %h;
            print "@s[0..5] ", length(join '', values %h), "\n";
            my $t = 'abc ' x 20000; my $n = () = $t =~ /b(c)/g; print "$n\n";
            local $SIG{ALRM} = sub { print "alarm\n" }; kill ALRM => $$;
            my $pid = fork; if (!$pid) { print "child\n"; exit 3 } waitpid $pid, 0;
            print $? >> 8, "\n"; print STDERR "to stderr\n"; exit 4;
        """
        ended = self.same_bare_and_under(["/usr/bin/perl", "-e", "$| = 1;" + script], **SMALL)
        self.assertEqual(ended.status, 4)
        self.assert_whole_stacks(self.profile_named("perl")[0])

    def test_node(self):
        script = """
            const zlib = require('zlib'), crypto = require('crypto');
            const parts = []; for (let i = 0; i < 300; i++) parts.push(Buffer.alloc(10000, i));
            const all = Buffer.concat(parts);
            zlib.gzip(all, (e, z) => zlib.gunzip(z, (e, u) =>
                console.log(u.equals(all), crypto.createHash('sha256').update(u).digest('hex'))));
            new (require('worker_threads').Worker)('console.log("worker")', {eval: true})
                .on('exit', c => { console.log('exit', c); process.exitCode = 6; });
        """
        ended = self.same_bare_and_under(["/usr/bin/node", "-e", script], **SMALL)
        self.assertEqual(ended.status, 6)
        self.profile_named("node")

    def test_java_version(self):
        self.same_bare_and_under(["/usr/bin/java", "-version"], SAMPLE_BYTES="4k")
        self.profile_named("java")

    def test_java_program_with_threads(self):
        javac = shutil.which("javac")
        if not javac:
            self.skipTest("no javac")
        (self.dir / "T.java").write_text(textwrap.dedent("""
            import java.util.*; import java.util.concurrent.*; import java.util.zip.*;
            public class T { public static void main(String[] a) throws Exception {
                var pool = Executors.newFixedThreadPool(4); var sums = new ArrayList<Future<Long>>();
                for (int t = 0; t < 16; t++) { final int seed = t; sums.add(pool.submit(() -> {
                    var crc = new CRC32(); var d = new Deflater(); var r = new Random(seed);
                    byte[] in = new byte[200000], out = new byte[300000]; r.nextBytes(in);
                    d.setInput(in); d.finish(); crc.update(out, 0, d.deflate(out)); d.end();
                    return crc.getValue(); })); }
                for (var s : sums) System.out.println(s.get());
                pool.shutdown(); System.exit(5); } }
        """))
        subprocess.run([javac, "T.java"], cwd=self.dir, check=True)
        ended = self.same_bare_and_under(["/usr/bin/java", "-Xmx256m", "T"], **SMALL)
        self.assertEqual(ended.status, 5)
        self.profile_named("java")

    def test_openssl_speed(self):
        ended = self.same_bare_and_under(
            ["/usr/bin/openssl", "speed", "-seconds", "1", "-bytes", "1024", "sha256"],
            strip=rb"[\d.]+k?|\s+|s(?=:)", SAMPLE_BYTES="4k")
        self.assertEqual(ended.status, 0)
        self.profile_named("openssl")

    def test_openssl_key_and_signature(self):
        script = ("openssl genrsa -out k.pem 2048 2>/dev/null && openssl dgst -sha256 -sign k.pem "
                  "-out s.bin /bin/true && openssl rsa -in k.pem -pubout -out p.pem 2>/dev/null && "
                  "openssl dgst -sha256 -verify p.pem -signature s.bin /bin/true")
        self.same_bare_and_under(["/bin/sh", "-c", script], SAMPLE_BYTES="1k")

    def test_sort_and_xz_with_threads(self):
        lines = "".join(f"{i * 7919 % 100003}\n" for i in range(100003)).encode()
        ended = self.same_bare_and_under(["/usr/bin/sort", "-n", "--parallel=4", "-S", "2M"],
                                         input=lines, **SMALL)
        self.assertEqual(len(ended.out.split()), 100003)
        self.same_bare_and_under(["/bin/sh", "-c", "xz -T4 -0 | xz -d | sha256sum"],
                                 input=lines * 20, **SMALL)

    def test_gcc_compiles_a_large_file_to_the_same_bytes(self):
        functions = "".join(textwrap.dedent(f"""
            struct s{i} {{ int a[{i % 7 + 1}]; double d; char *p; }};
            static int f{i}(struct s{i} *s, int n) {{
                int sum = {i};
                for (int i = 0; i < n; i++) {{ sum += s->a[i % {i % 7 + 1}] * i ^ (sum >> 3);
                    if (sum & 1) s->d += sum * 0.5; else sum -= (int)s->d; }}
                return sum + (s->p ? s->p[n] : 0); }}
            int g{i}(void) {{ struct s{i} s = {{{{{i}}}, {i}.5, 0}}; return f{i}(&s, {i % 50}); }}
        """) for i in range(700))
        (self.dir / "large.c").write_text(functions)
        compile_it = ["/usr/bin/gcc", "-O2", "-c", "large.c", "-o"]
        bare = self.run_bare([*compile_it, "bare.o"], timeout=200)
        ended = self.run_under([*compile_it, "under.o"], timeout=200)
        self.assertEqual((ended.status, ended.out, ended.err), (0, bare.out, bare.err))
        self.assertEqual((self.dir / "bare.o").read_bytes(), (self.dir / "under.o").read_bytes())
        self.assert_whole_stacks(self.profile_named("cc1")[0])

    def test_gcc_error_is_the_same_error(self):
        (self.dir / "bad.c").write_text("int main(void) { return x; }\n")
        ended = self.same_bare_and_under(["/usr/bin/gcc", "-c", "bad.c"])
        self.assertEqual(ended.status, 1)

    def test_git_gc(self):
        """Two equal repositories: one packed bare, one under the library; same objects after."""
        stream = []
        for i in range(400):
            body = f"line {i}\n" * (i % 40 + 1)
            stream.append(f"commit refs/heads/main\ncommitter a <a@b> {1700000000 + i} +0000\n"
                          f"data 3\nc{i % 10}\nM 644 inline file{i % 20}\ndata {len(body)}\n{body}\n")
        env = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
        for name in "bare", "under":
            git = ["/usr/bin/git", "-C", str(self.dir / name)]
            (self.dir / name).mkdir()
            self.run_bare([*git, "init", "-q"], extra=env)
            self.run_bare([*git, "-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet"],
                          input="".join(stream).encode(), extra=env)
        bare = self.run_bare(["/usr/bin/git", "-C", str(self.dir / "bare"), "gc", "--aggressive"],
                             extra=env)
        ended = self.run_under(["/usr/bin/git", "-C", str(self.dir / "under"), "gc",
                                "--aggressive"], extra=env, OUT=f"{self.dir}/labelprof.%e.%p.%t.pb.gz",
                               **SMALL)
        self.assertEqual((ended.status, ended.out, ended.err), (0, bare.out, bare.err))
        for name in "bare", "under":
            check = self.run_bare(["/usr/bin/git", "-C", str(self.dir / name), "fsck", "--full"],
                                  extra=env)
            self.assertEqual(check.status, 0, check.errors)
        logs = [self.run_bare(["/usr/bin/git", "-C", str(self.dir / name), "log", "-p"],
                              extra=env).out for name in ("bare", "under")]
        self.assertEqual(*logs)
        self.profile_named("git")

    def test_sqlite3(self):
        script = """
            create table t(id integer primary key, name text, v real);
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
                insert into t select i, 'name' || (i * 7919 % 100003), i * 0.5 from n;
            create index by_name on t(name);
            select count(*), sum(v), min(name), max(name) from t;
            select substr(name, 1, 5) p, count(*), sum(v) from t group by p order by 2 desc limit 5;
            select count(*) from t a join t b on a.name = b.name where a.id < 20000;
            delete from t where id % 3 = 0; vacuum; pragma integrity_check; select count(*) from t;
            select no_such_column from t;
        """
        argv = ["/bin/sh", "-c", "rm -f x.db; exec sqlite3 x.db"]
        ended = self.same_bare_and_under(argv, input=script.encode(), **SMALL)
        self.assertIn(b"ok\n", ended.out)
        profile = self.profile_named("sqlite3")[0]
        self.assert_whole_stacks(profile)
        self.assertIn("sqlite3", profile.label_values("thread_name"))


class Python(Real):
    TESTS = ["test_json", "test_re", "test_threading", "test_dict", "test_list", "test_bytes",
             "test_fork1", "test_posix", "test_queue", "test_weakref", "test_mmap"]

    def regrtest(self, tests, timeout=250, extra=None, **options):
        """regrtest's own verdict; its output carries times and the order of the machine."""
        argv = [PYTHON, "-m", "test", "--tempdir", str(self.dir), *tests]
        # Not into the current directory: regrtest minds files that appear in it.
        return self.run_under(argv, timeout, extra=extra,
                              OUT=f"{self.dir}/labelprof.%e.%p.%t.pb.gz", **options)

    def test_a_slice_of_its_own_test_suite(self):
        ended = self.regrtest(self.TESTS)
        self.assertEqual(ended.status, 0, ended.text[-3000:] + ended.errors[-1000:])
        self.assertIn(f"All {len(self.TESTS)} tests OK.", ended.text)
        self.profile_named("python3")

    def test_signals_and_subprocesses(self):
        ended = self.regrtest(["test_signal", "test_popen", "test_wait3", "test_wait4"])
        self.assertEqual(ended.status, 0, ended.text[-3000:] + ended.errors[-1000:])

    def test_on_malloc_with_dense_samples(self):
        ended = self.regrtest(["test_dict", "test_json", "test_thread"], SAMPLE_BYTES="1k",
                              extra={"PYTHONMALLOC": "malloc"})
        self.assertEqual(ended.status, 0, ended.text[-3000:] + ended.errors[-1000:])

    def test_a_script_gives_the_same_output(self):
        script = textwrap.dedent("""
            import hashlib, json, multiprocessing, re, sys, threading, zlib
            data = {str(i): [i, str(i) * 10, {'x': i / 3}] for i in range(20000)}
            text = json.dumps(data)
            assert json.loads(text) == data
            print(hashlib.sha256(zlib.compress(text.encode())).hexdigest())
            out = []
            ts = [threading.Thread(target=lambda i=i: out.append(sum(range(i * 1000)))) for i in range(20)]
            [t.start() for t in ts]; [t.join() for t in ts]
            print(sorted(out))
            print(len(re.findall(r'(\\d)\\1', text)))
            if __name__ == '__main__':
                with multiprocessing.get_context('fork').Pool(2) as pool:
                    print(pool.map(abs, range(-5, 5)))
            sys.exit(8)
        """)
        (self.dir / "s.py").write_text(script)
        ended = self.same_bare_and_under([PYTHON, "s.py"], SAMPLE_BYTES="4k",
                                         extra={"PYTHONMALLOC": "malloc"})
        self.assertEqual(ended.status, 8)
        profile = max(self.profile_named("python3"), key=lambda p: p.total("alloc_space"))
        self.assert_whole_stacks(profile)


class Redis(Real):
    def setUp(self):
        super().setUp()
        self.socket = str(self.dir / "redis.sock")

    def cli(self, *words):
        done = subprocess.run(["/usr/bin/redis-cli", "-s", self.socket, *words], timeout=30,
                              capture_output=True, text=True)
        return done.stdout.strip()

    def serve(self, *more, **options):
        server = self.start(["/usr/bin/redis-server", "--port", "0", "--unixsocket", self.socket,
                             "--dir", str(self.dir), "--save", "", "--io-threads", "2", *more],
                            **options)
        self.wait_until(lambda: self.cli("ping") == "PONG", "redis answering")
        return server

    def load(self):
        done = subprocess.run(["/usr/bin/redis-benchmark", "-s", self.socket, "-q", "-n", "20000",
                               "-r", "5000", "-d", "300", "-t", "set,get,lpush,hset,sadd,lrange_100"],
                              timeout=120, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("requests per second", done.stdout)

    def test_under_benchmark_with_bgsave_then_shutdown(self):
        server = self.serve(**SMALL)
        self.load()
        size = self.cli("dbsize")
        self.assertIn("Background saving started", self.cli("bgsave"))
        self.wait_until(lambda: "rdb_bgsave_in_progress:0" in self.cli("info", "persistence"),
                        "the background save")
        self.assertIn("rdb_last_bgsave_status:ok", self.cli("info", "persistence"))
        self.assertEqual(self.cli("shutdown", "save"), "")
        ended = self.finish(server)
        self.assertEqual((ended.status, ended.errors), (0, ""))
        profiles = self.profile_named("redis-server")
        profile = max(profiles, key=lambda p: p.total("alloc_space"))
        self.assertIn("redis-server", profile.label_values("thread_name"))
        self.assertGreater(profile.total("inuse_space"), 1 << 20)
        self.assert_whole_stacks(profile)
        server = self.serve(**SMALL)
        self.assertEqual(self.cli("dbsize"), size)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(server).status, 0)

    def test_in_use_is_what_redis_counts_itself(self):
        """redis counts usable sizes, a few percent more than it asks for. 100,000 values of 1 KB at
        16 KiB: standard error 1.2 %; the limits are more than 5 of them away."""
        server = self.serve("--enable-debug-command", "yes", **SMALL)
        before = int(re.search(r"used_memory:(\d+)", self.cli("info", "memory")).group(1))
        self.assertEqual(self.cli("debug", "populate", "100000", "key", "1000"), "OK")
        counted = int(re.search(r"used_memory:(\d+)", self.cli("info", "memory")).group(1))
        self.assertGreater(counted - before, 100 << 20)
        self.assertEqual(self.cli("shutdown", "nosave"), "")
        self.assertEqual(self.finish(server).status, 0)
        (profile,) = self.profile_named("redis-server")
        # At its end redis frees next to nothing.
        self.assertGreater(profile.total("inuse_space"), 0.80 * counted)
        self.assertLess(profile.total("inuse_space"), 1.07 * counted)

    def test_daemonized(self):
        self.addCleanup(self.end_by_pid_file, self.dir / "pid")
        ended = self.run_under(["/usr/bin/redis-server", "--port", "0", "--unixsocket", self.socket,
                                "--dir", str(self.dir), "--save", "", "--daemonize", "yes",
                                "--pidfile", f"{self.dir}/pid"], **SMALL)
        self.assertEqual((ended.status, ended.errors), (0, ""))
        self.wait_until(lambda: self.cli("ping") == "PONG", "redis answering")
        pid = int(self.cli("info", "server").split("process_id:")[1].split()[0])
        self.load()
        self.cli("shutdown", "nosave")
        self.wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the daemon's end")
        self.assertTrue([p for p in self.profile_paths() if f".{pid}." in p.name])


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Nginx(Real):
    CONF = textwrap.dedent("""
        daemon {daemon}; {user} worker_processes 2; pid {dir}/pid; error_log {dir}/error.log;
        events {{ worker_connections 64; }}
        http {{
            access_log {dir}/access.log; gzip on; gzip_min_length 1; gzip_types text/plain;
            default_type text/plain;
            client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
            uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
            server {{ listen unix:{dir}/sock; root {dir}/www; }}
        }}
    """)

    def prepare(self, daemon):
        (self.dir / "www").mkdir()
        (self.dir / "www" / "page").write_text("hello " * 20000)
        (self.dir / "conf").write_text(self.CONF.format(user="user root root;" if os.geteuid() == 0 else "", dir=self.dir, daemon=daemon))
        self.argv = ["/usr/sbin/nginx", "-c", str(self.dir / "conf"), "-p", str(self.dir)]
        self.options = dict(SMALL, OUT=f"{self.dir}/labelprof.%e.%p.%t.pb.gz")

    def get(self, path):
        connection = UnixConnection(str(self.dir / "sock"))
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def is_up(self):
        try:
            return self.get("/page")[0] == 200
        except OSError:
            return False

    def load(self):
        self.wait_until(self.is_up, "nginx answering")
        first = self.get("/page")
        for _ in range(300):
            self.assertEqual(self.get("/page"), first)
            self.assertEqual(self.get("/none")[0], 404)
        self.pid = int((self.dir / "pid").read_text())

    def check_profiles(self):
        """The master's and two workers', each with a pid of its own."""
        profiles = self.profile_named("nginx", at_least=3)
        busy = [p for p in profiles if p.total("alloc_space") > 1 << 20]
        self.assertTrue(busy)
        self.assert_whole_stacks(max(profiles, key=lambda p: p.total("alloc_space")))
        self.assertNotIn("alert", (self.dir / "error.log").read_text())

    def test_workers_then_reload_then_quit(self):
        self.prepare("off")
        server = self.start(self.argv, **self.options)
        self.load()
        server.send_signal(signal.SIGHUP)
        self.load()
        server.send_signal(signal.SIGQUIT)
        ended = self.finish(server)
        self.assertEqual((ended.status, ended.errors), (0, ""))
        self.check_profiles()

    def test_as_a_daemon(self):
        self.prepare("on")
        self.addCleanup(self.end_by_pid_file, self.dir / "pid")
        ended = self.run_under(self.argv, **self.options)
        self.assertEqual((ended.status, ended.errors), (0, ""))
        self.load()
        os.kill(self.pid, signal.SIGTERM)
        self.wait_until(lambda: not Path(f"/proc/{self.pid}").exists(), "nginx's end")
        self.check_profiles()
