#!/usr/bin/env python3
"""Measures the strength of the tests: plants defects into a copy of the package, and reports which of them the tests find.

All defects are in one build of the copy, each behind a check of the environment variable LARDER_PLANTED. The tests of the
defect's area run once for each defect, with a time limit. A defect survives if they pass.

    planted.py                  all defects
    planted.py 3 17 20-25       some of them, by their numbers
    planted.py --list           prints the defects
    planted.py --check          only checks that all of them can be planted
    planted.py --copy DIR       the directory of the copy, whose build is reused (.build/planted)
    planted.py --limit SECONDS  the time limit for the tests of one defect (120)
    planted.py --rounds N       the maximum number of runs of the tests until they find the defect (3)

The exit status is 1 if more than LARDER_PLANTED_SURVIVORS (2) defects survive, or the tests fail without a defect.
"""

import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from defects import DEFECTS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HELPER = """#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The number of the defect that this process has; 0 for none.
private let plantedDefect: Int = getenv("LARDER_PLANTED").flatMap { Int(String(cString: $0)) } ?? 0

/// Whether this process has a defect.
@inline(never) func isPlanted(_ number: Int) -> Bool { plantedDefect == number }
"""


def fail(text):
    sys.exit("planted.py: " + text)


def planted(source, number, defect):
    """Returns the text of a file with a defect inserted, behind its check."""
    count = source.count(defect.old)
    if count != 1:
        fail(
            f"defect {number} ({defect.name}) cannot be planted: its text occurs {count} times in {defect.file}.\n"
            f"Adapt it in Tests/Planted/defects.py:\n{defect.old}"
        )
    return source.replace(defect.old, defect.new.replace("PLANTED", f"isPlanted({number})"))


def sources_with_defects():
    """Returns the contents of the changed files, by path."""
    files = {}
    for number, defect in enumerate(DEFECTS, 1):
        if defect.file not in files:
            with open(os.path.join(ROOT, defect.file), encoding="utf-8") as file:
                files[defect.file] = file.read()
        if "PLANTED" not in defect.new:
            fail(f"defect {number} ({defect.name}) is behind no check: its new text lacks PLANTED")
        files[defect.file] = planted(files[defect.file], number, defect)
    for path in list(files):
        # The directory of the target: Sources/NAME or Sources/GROUP/NAME.
        parts = path.split("/")
        depth = 3 if parts[1] in ("Engine", "Server", "Shared", "System") else 2
        files["/".join(parts[:depth]) + "/PlantedDefect.swift"] = HELPER
    return files


def write_if_different(path, content):
    """Writes a file only if its content changes, so that unchanged files need not be compiled again."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == content:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def make_copy(copy, changed):
    """Copies the package's files to `copy`, with the defects, and removes all other files from it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode().split("\0")
    wanted = {name for name in listed if name and os.path.isfile(os.path.join(ROOT, name))}
    for directory in ("Sources", "Tests"):
        for base, _, names in os.walk(os.path.join(copy, directory)):
            for name in names:
                path = os.path.relpath(os.path.join(base, name), copy)
                if path not in wanted and path not in changed:
                    os.remove(os.path.join(copy, path))
    for name in wanted:
        source, target = os.path.join(ROOT, name), os.path.join(copy, name)
        with open(source, "rb") as file:
            write_if_different(target, changed[name].encode() if name in changed else file.read())
        shutil.copymode(source, target)
    for name in changed.keys() - wanted:
        write_if_different(os.path.join(copy, name), changed[name].encode())


def build(copy):
    environment = {key: value for key, value in os.environ.items() if key != "LARDER_STRICT"}
    began = time.monotonic()
    result = subprocess.run(
        ["swift", "build", "--build-tests"], cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        sys.stdout.write(result.stdout.decode(errors="replace")[-6000:])
        fail("the copy with the defects does not build")
    print(f"built in {time.monotonic() - began:.0f} s", flush=True)


class Outcome:
    def __init__(self, kind, seconds, detail="", text=""):
        self.kind, self.seconds, self.detail, self.text = kind, seconds, detail, text


def kill_all(group, mark):
    """Kills a process group, and all other processes that have the mark in their environment."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except OSError:
            # The process has exited, or belongs to another user.
            pass


def test_program(copy):
    found = glob.glob(os.path.join(copy, ".build", "debug", "*PackageTests.xctest"))
    if not found:
        fail(f"{copy} has no tests that are built")
    return found[0]


def run_tests(copy, number, pattern, limit):
    """Runs the tests that match a pattern. `number` is the defect to enable; 0 for none."""
    mark = f"LARDER_PLANTED_RUN={os.getpid()}.{time.monotonic_ns()}"
    environment = dict(os.environ, LARDER_PLANTED=str(number), SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="4")
    environment.update([mark.split("=", 1)])
    began = time.monotonic()
    # Start the test program directly: swift test takes seconds to start, and its child processes have their own groups.
    # The output goes to a file, because a full pipe would block the tests.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [test_program(copy), "--testing-library", "swift-testing", "--filter", pattern], cwd=copy, env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )
        is_late = False
        try:
            while not is_late:
                try:
                    process.wait(timeout=0.25)
                    break
                except subprocess.TimeoutExpired:
                    # Stop at the first issue, because some tests then wait for a long time.
                    if number != 0 and b"recorded an issue" in os.pread(output.fileno(), 1 << 24, 0):
                        break
                    is_late = time.monotonic() - began > limit
        finally:
            kill_all(process.pid, mark)
            process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    seconds = time.monotonic() - began
    first = re.search(r"Test \"?(.+?)\"? (?:with .*?)?recorded an issue", text)
    if not is_late and process.returncode == 0:
        if not re.search(r"Test run with [1-9]", text):
            fail(f"no test matches {pattern!r}")
        return Outcome("survived", seconds)
    return Outcome(
        "found", seconds, first.group(1) if first else "the tests hang" if is_late else "the tests end with an error", text)


def chosen(words):
    numbers = []
    for word in words:
        first, _, last = word.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers or list(range(1, len(DEFECTS) + 1))


def report(number, defect, outcome):
    print(f"{number:3}  {outcome.kind:9}{outcome.seconds:6.0f} s  {defect.name}"
          + (f"  ({outcome.detail})" if outcome.detail else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--copy", default=os.path.join(ROOT, ".build", "planted"))
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-build", action="store_true", help="the copy is built already")
    options = parser.parse_args()
    if options.list:
        for number, defect in enumerate(DEFECTS, 1):
            print(f"{number:3}  {defect.name:42} {defect.tests}")
        return 0
    changed = sources_with_defects()
    if options.check:
        print(f"{len(DEFECTS)} defects can be planted")
        return 0
    numbers = chosen(options.numbers)
    if not options.no_build:
        make_copy(options.copy, changed)
        build(options.copy)
    # The tests must pass without a defect: otherwise a failure would not show that they find the defect.
    patterns = sorted({DEFECTS[number - 1].tests for number in numbers})
    for pattern in patterns:
        outcome = run_tests(options.copy, 0, pattern, options.limit)
        if outcome.kind == "found":
            sys.stdout.write("\n".join(line for line in outcome.text.split("\n") if "passed after" not in line)[-6000:])
            fail(f"without a defect, {pattern} fails: {outcome.detail}")
    print(f"without a defect all tests pass ({len(patterns)} areas)", flush=True)
    survivors, began = [], time.monotonic()
    for number in numbers:
        defect = DEFECTS[number - 1]
        for _ in range(options.rounds):
            outcome = run_tests(options.copy, number, defect.tests, options.limit)
            if outcome.kind == "found":
                break
        report(number, defect, outcome)
        if outcome.kind == "survived":
            survivors.append(number)
    seconds = time.monotonic() - began
    print(f"\n{len(numbers) - len(survivors)} of {len(numbers)} defects were found, in {seconds:.0f} s")
    for number in survivors:
        print(f"  survived: {number}, {DEFECTS[number - 1].name}, after {DEFECTS[number - 1].tests}")
    return 1 if len(survivors) > int(os.environ.get("LARDER_PLANTED_SURVIVORS", "2")) else 0


if __name__ == "__main__":
    sys.exit(main())
