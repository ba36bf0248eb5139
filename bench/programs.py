# SPDX-License-Identifier: MIT
"""Whole programs for bench/run: each (name, argv, file for its stdin, extra environment)."""
import shutil
from pathlib import Path

PYTHON_JSON = """
import json
rows = [{"id": i, "name": "customer %d" % i, "tags": ["a", "b", str(i)], "sum": i * 1.5}
        for i in range(12000)]
for _ in range(3):
    rows = json.loads(json.dumps(rows))
"""


def sqlite_input(path):
    lines = ["create table t (id integer primary key, name text, amount real);",
             "create index by_name on t (name);"]
    lines += [f"insert into t values ({i}, 'customer {i * 7919 % 25013}', {i * 1.25});"
              for i in range(25000)]
    lines += ["select name, sum(amount) from t group by name order by 2 desc limit 5;"]
    path.write_text("\n".join(lines) + "\n")


def cxx_source(path):
    lines = ["#include <map>", "#include <string>", "#include <vector>"]
    lines += [f"struct s{i} {{ int a; std::string b; }};\n"
              f"std::map<int, s{i}> f{i}(std::vector<s{i}> v) {{ std::map<int, s{i}> m;"
              f" for (auto &x : v) m[x.a] = x; return m; }}" for i in range(3)]
    path.write_text("\n".join(lines) + "\n")


def all(scratch):
    sql, source = Path(scratch, "input.sql"), Path(scratch, "input.cc")
    sqlite_input(sql)
    cxx_source(source)
    jobs = [("sqlite3 :memory:, 25,000 inserts", ["sqlite3", ":memory:"], sql, {}),
            ("python3 JSON, PYTHONMALLOC=malloc", ["/usr/bin/python3", "-c", PYTHON_JSON],
             "/dev/null", {"PYTHONMALLOC": "malloc"}),
            ("g++ -O0 of templates", ["g++", "-O0", "-c", "-o", "/dev/null", str(source)],
             "/dev/null", {})]
    return [job for job in jobs if shutil.which(job[1][0])]
