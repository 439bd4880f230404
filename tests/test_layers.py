"""The rules that keep the tree readable, read off the source itself.

Each layer may include only from those before it, the resolver makes no system calls, headers
stand alone, and nothing grows beyond what one can take in at a glance.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess

import lib
import pytest

SRC = lib.REPO / "src"
TESTS = lib.REPO / "tests"
LAYERS = [
    {"base"},
    {"manifest"},
    {"plan"},
    {"helper", "git", "overlay"},
    {"net", "box", "harness", "screen"},
    {"state"},
    {"host"},
    {"supervise"},
    {"run"},
    {"eval"},
    {"cli"},
    {"main.c"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
GENERATED = {"report-page.h", "seccomp-filter.h"}
FUNCTION_LINES, FILE_LINES, COLUMNS = 60, 700, 96

# What plan/ may ask of the C library: functions of their arguments alone.
PURE = set(
    """
    memchr memcmp memcpy memmem memmove memset qsort strcasecmp strchr strcmp strcpy strcspn
    strlen strncasecmp strncmp strpbrk strrchr strspn strstr stpcpy strnlen
    __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc isalnum tolower toupper
    snprintf vsnprintf __snprintf_chk __vsnprintf_chk __memcpy_chk __strcpy_chk
    SHA1Init SHA1Update SHA1Final SHA256Init SHA256Update SHA256Final
    __stack_chk_fail __stack_chk_guard _GLOBAL_OFFSET_TABLE_
    """.split()
)
# Of base/, those files whose functions touch nothing but memory. (So does the table of limits.)
PURE_BASE = ("fault", "hash", "json", "mem", "memcpy", "path", "str")


def sources(*patterns):
    return sorted(path for pattern in patterns for path in SRC.rglob(pattern))


def name(path):
    return str(path.relative_to(SRC))


def layer(path):
    return path.relative_to(SRC).parts[0]


ALL = sources("*.c", "*.h")


def test_there_is_something_to_read():
    assert len(ALL) > 50
    assert {layer(path) for path in ALL} <= set(RANK)


# ---- includes ---------------------------------------------------------------------------


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)


@pytest.mark.parametrize("path", ALL, ids=name)
def test_includes_only_from_layers_below(path):
    own = layer(path)
    for include in includes(path):
        if include in GENERATED:
            continue
        other = include.split("/")[0]
        assert (SRC / include).is_file(), f'"{include}" is not written from src/'
        assert other == own or RANK[other] < RANK[own], f"{own} must not include {include}"


def test_the_include_rule_can_fail():
    """What it is for: none of these pairs may be let through."""
    for above, below in (("base", "plan"), ("plan", "box"), ("box", "net"), ("host", "run"), ("run", "cli")):
        assert not RANK[below] < RANK[above]


def test_file_names_are_unique():
    """A name says where a thing is: no two files share one."""
    for suffix in ("*.c", "*.h"):
        names = [path.name for path in sources(suffix)]
        assert sorted(names) == sorted(set(names))


def test_the_map_names_every_file():
    """A reader finds each file of the tree in docs/architecture.md, by its name."""
    text = (lib.REPO / "docs" / "architecture.md").read_text()
    files = [path.stem.removeprefix("cmd-") for path in sources("*.c")]
    missing = [stem for stem in files if not re.search(rf"\b{stem}\b", text)]
    assert not missing


def headers():
    return [path for path in ALL if path.suffix == ".h"]


@pytest.mark.parametrize("path", headers(), ids=name)
def test_header_compiles_alone(path):
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
    done = subprocess.run(
        ["gcc", *flags, f"-I{SRC}", "-fsyntax-only", "-x", "c", "-"],
        input=f'#include "{name(path)}"\n#include "{name(path)}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# ---- the resolver is pure ---------------------------------------------------------------


def objects():
    """The objects of the program under test, by the name of their source."""
    program = pathlib.Path(os.environ.get("CARREL") or lib.REPO / "build-test" / "carrel")
    found = sorted(program.resolve().parent.glob("carrel.p/src_*.c.o"))
    assert found, f"no objects beside {program}"
    return {path.name.removeprefix("src_").removesuffix(".c.o"): path for path in found}


def symbols(path, *flags):
    out = subprocess.run(["nm", "-P", *flags, path], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in out.stdout.splitlines()}


def is_instrumentation(symbol):
    return re.match(r"__(asan|ubsan|sanitizer|gcov|odr_asan|llvm)_|__start_|__stop_", symbol)


def impure(wanted, pure):
    return {s for s in wanted if s not in pure and not is_instrumentation(s)}


def test_plan_makes_no_system_calls():
    built = objects()
    plan = [path for key, path in built.items() if key.startswith("plan_")]
    pure = {f"base_{n}" for n in PURE_BASE} | {"manifest_limits"}
    base = [path for key, path in built.items() if key in pure]
    assert len(plan) == len(sources("plan/*.c")) and len(base) >= 5
    defined = set().union(*(symbols(path, "--defined-only", "-g") for path in plan + base))
    for path in plan:
        wanted = symbols(path, "-u")
        assert not impure(wanted, PURE | defined), path.name


def test_the_purity_rule_can_fail():
    """The survey, which does ask the kernel, would not pass."""
    survey = objects()["host_survey"]
    assert impure(symbols(survey, "-u"), PURE)


# ---- size and form ----------------------------------------------------------------------


def functions(path):
    """(first line, number of lines) of what begins and ends with a brace in column one."""
    start = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            yield start, number - start + 1
            start = None


@pytest.mark.parametrize("path", ALL, ids=name)
def test_nothing_is_too_big(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= FILE_LINES
    wide = [n for n, line in enumerate(lines, 1) if len(line.expandtabs(8)) > COLUMNS]
    assert not wide, f"more than {COLUMNS} columns in lines {wide}"
    long = [start for start, count in functions(path) if count > FUNCTION_LINES]
    assert not long, f"more than {FUNCTION_LINES} lines from lines {long}"


def test_functions_are_found():
    counted = [count for path in ALL for _, count in functions(path)]
    assert len(counted) > 300 and max(counted) > 20


@pytest.mark.parametrize("path", ALL, ids=name)
def test_nothing_is_left_for_later(path):
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", path.read_text())


@pytest.mark.parametrize("path", ALL, ids=name)
def test_text_is_clean(path):
    text = path.read_bytes()
    assert text.endswith(b"\n") and not text.endswith(b"\n\n")
    assert b"\r" not in text and not re.search(rb"[ \t]\n", text)
    text.decode()


@pytest.mark.parametrize("path", headers(), ids=name)
def test_header_has_its_guard(path):
    guard = re.sub(r"\W", "_", name(path)).upper()
    text = path.read_text()
    assert f"#ifndef {guard}\n#define {guard}\n" in text and text.endswith("#endif\n")


def test_every_source_is_built():
    """A file that is in the tree and in no build is a file nobody tests."""
    elsewhere = {"embed", "seccomp-gen", "memcpy", "screen"}  # at build time, one libc, apart
    built = set(objects())
    for path in sources("*.c"):
        key = name(path).removesuffix(".c").replace("/", "_")
        assert key in built or path.stem in elsewhere, f"{name(path)} is in no build"


@pytest.mark.skipif(shutil.which("clang-format") is None, reason="needs clang-format")
def test_source_is_formatted():
    every = [*ALL, *(path for top in ("unit", "fuzz") for path in TESTS.glob(f"{top}/*.[ch]"))]
    done = subprocess.run(
        ["clang-format", "--dry-run", "-Werror", *every],
        cwd=lib.REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_mutant_applies():
    """tests/mutants runs by hand. A row whose text is gone would test nothing."""
    spec = importlib.util.spec_from_file_location("table", TESTS / "mutants" / "table.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    assert len(table.MUTANTS) > 150
    for row in table.MUTANTS:
        assert (lib.REPO / row.file).read_text().count(row.old) == 1, row.name
