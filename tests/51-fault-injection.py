#!/usr/bin/env python3
"""tests/51-fault-injection.py [--full] [--jobs N] [--keep] SCENARIO...

Runs build/kd-preflight under strace (without -f: its workers are left alone) and makes every system call of the
supervisor, from its start to the exec of the workload, fail once with each of six errors and die once by SIGKILL. After
each run:

  - the workload was started only if a complete report that says GPU_CHECK_PASSED lies under the asked name
  - under a final name there is a whole report or nothing; what was there before is untouched
  - report and exit status agree
  - the run ended within LIMIT seconds, and by no other signal than the injected one
  - no process of the run is left

Scenarios are the keys of SCENARIOS. Without --full, the longer ones take a fixed sample of their points: every kind of
call with every error, spread evenly over its occurrences. Prints a table with counts; exits 1 when anything was wrong."""

import argparse
import collections
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("KD_FAULT_PROGRAM", TOP / "build" / "kd-preflight"))
WITHOUT = TOP / "build" / "programs" / "without-syscall"
PYTHON = "/usr/bin/python3"
LIMIT = 20  # seconds
GONE = 3  # seconds that a worker has to die in after its supervisor
ERRORS = ("ENOSPC", "EIO", "EINTR", "ENOMEM", "EMFILE", "EPERM")
KILL = "SIGKILL"

# No system call of ours: the exec of the program itself; calls that do not return, or return from a handler, whose
# failure the kernel does not know; and the set-up of thread storage, on whose failure the C library stops by itself.
NEVER = {"exit", "exit_group", "rt_sigreturn"}
ONLY_KILLED = {"arch_prctl", "set_tid_address", "set_thread_area"}
PRECIOUS = "precious\n"




def load_validator():
    loader = importlib.machinery.SourceFileLoader("validate", str(TOP / "tests" / "validate-report"))
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("validate", loader))
    loader.exec_module(module)
    return module, module.jsonschema.Draft202012Validator(json.loads(module.SCHEMA.read_text(encoding="utf-8")))


VALIDATE, VALIDATOR = load_validator()


class Scenario:
    """Arguments, with {dir} for the run's folder; how many points a sample has (None: all)."""

    def __init__(self, arguments, program=False, sample=None, existing=False, folder=False, before=()):
        self.arguments, self.program, self.sample = arguments, program, sample
        self.existing, self.folder, self.before = existing, folder, before


CPU = ["--device", "cpu", "--framework", "none", "--termination-log", "{dir}/log"]
SCENARIOS = {
    "cpu": Scenario(CPU + ["--output", "{dir}/report.json"]),
    "folder": Scenario(CPU + ["--output", "{dir}/reports/"], folder=True, sample=250),
    "existing": Scenario(CPU + ["--output", "{dir}/report.json"], existing=True, sample=150),
    # A mount without O_TMPFILE links: the file gets a temporary name first.
    "named": Scenario(CPU + ["--output", "{dir}/report.json"], before=("linkat=1",), sample=250),
    "torch": Scenario(["--python", PYTHON, "--termination-log", "{dir}/log", "--output", "{dir}/report.json", "--",
                       "{dir}/workload"], program=True, sample=330),
}


def environment(folder, mark):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(TOP / "tests/stubs"),
            "KD_ROBUST_RUN": mark} if mark else {}


def prepare(folder, scenario):
    (folder / "tmp").mkdir()
    (folder / "log").touch()
    workload = folder / "workload"
    workload.write_text("#!/bin/sh\necho started >%s/marker\n" % folder)
    workload.chmod(0o755)
    if scenario.existing:
        (folder / "report.json").write_text(PRECIOUS)


def command(folder, scenario, inject):
    arguments = [argument.replace("{dir}", str(folder)) for argument in scenario.arguments]
    before = [str(WITHOUT), *scenario.before, "--"] if scenario.before else []
    # -D would make strace a grandchild; -I never: strace itself must be stoppable by our time limit.
    return ["strace", "-o", str(folder / "trace"), *inject, *before, str(PROGRAM), *arguments]


def calls_of(folder, scenario):
    """Names of the system calls of the supervisor, in order, and what strace counts before them."""
    names = []
    for line in (folder / "trace").read_text(errors="replace").splitlines():
        match = re.match(r"([a-z_0-9]+)\(", line)
        if match:
            names.append(match[1])
    execs = [index for index, name in enumerate(names) if name == "execve"]
    own = execs[1 if scenario.before else 0]
    last = execs[-1] if scenario.program else len(names)
    if scenario.program and last == own:
        raise SystemExit("the control of this scenario did not reach its workload:\n" + (folder / "err").read_text())
    counts = collections.Counter(names[: own + 1])  # what strace counts before us
    points = collections.Counter(names[own + 1 : last + 1])
    return counts, points


def processes_with(mark):
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % entry.name, "rb") as file:
                if b"KD_ROBUST_RUN=" + mark.encode() + b"\0" not in file.read() + b"\0":
                    continue
            with open("/proc/%s/stat" % entry.name) as file:
                if file.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until_gone(mark):
    until = time.monotonic() + GONE
    left = processes_with(mark)
    while left and time.monotonic() < until:
        time.sleep(0.02)
        left = processes_with(mark)
    return left


def read_report(path, wrong):
    text = path.read_text()
    try:
        report = json.loads(text)
    except ValueError:
        wrong.append("a partial file under the final name, %d bytes" % len(text))
        return None
    if not text.endswith("}\n") and not text.endswith("}"):
        wrong.append("a report that does not end where it should")
    return report


def check_files(folder, scenario, wrong):
    """The reports under final names."""
    place = folder / "reports" if scenario.folder else folder
    reports = []
    for path in sorted(place.glob("*.json")) if place.is_dir() else []:
        if scenario.existing:
            if path.read_text() != PRECIOUS:
                wrong.append("an existing file was changed")
            continue
        report = read_report(path, wrong)
        if report:
            reports.append((path, report))
    if scenario.existing and not (folder / "report.json").exists():
        wrong.append("an existing file was removed")
    if len(reports) > 1:
        wrong.append("%d reports of one run" % len(reports))
    return reports


def check(folder, scenario, point, status, mark):
    """What is wrong with a run that has ended, as a list of sentences."""
    wrong = []
    left = wait_until_gone(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left:
        wrong.append("%d processes left" % len(left))
    reports = check_files(folder, scenario, wrong)
    started = (folder / "marker").exists()
    code = reports[0][1].get("code") if reports else None
    if started and code != "GPU_CHECK_PASSED":
        wrong.append("the workload was started, the saved report says %s" % code)
    if status < 0 and not (point and point[2] == KILL and -status == signal.SIGKILL):
        wrong.append("died by signal %d" % -status)
    if status >= 0 and reports and not (started or code == "GPU_CHECK_PASSED"):
        if reports[0][1].get("exit_code") != status:
            wrong.append("exit status %d, the report says %s" % (status, reports[0][1].get("exit_code")))
    if status == 0 and not reports and not scenario.existing:
        wrong.append("exit status 0 without a report")
    if status == 0 and scenario.existing:
        wrong.append("exit status 0 over an existing file")
    for _, report in reports:
        wrong += ["a report that the schema refuses: " + fault for fault in VALIDATE.faults(VALIDATOR, report, [])]
    return wrong


def run(scenario, point, root, keep, timing=None):
    """One run in its own folder; point is None, or (call, its number, error or SIGKILL)."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=root))
    mark = folder.name
    prepare(folder, scenario)
    inject = []
    if point:
        call, number, what = point
        inject = ["-e", "trace=%s" % call,
                  "-e", "inject=%s:%s:when=%d" % (call, "signal=KILL" if what == KILL else "error=" + what, number)]
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen(command(folder, scenario, inject), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=environment(folder, mark), cwd=folder, start_new_session=True)
        began = time.monotonic()
        try:
            status = process.wait(LIMIT)
            wrong = check(folder, scenario, point, status, mark)
        except subprocess.TimeoutExpired:
            for pid in processes_with(mark):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait()
            status, wrong = None, ["still running after %d s" % LIMIT]
    result = folder, status, wrong, time.monotonic() - began
    if point and not keep and not wrong:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def points_of(counts, points, sample):
    """(call, number, what) for every occurrence; or a sample that is the same every time."""
    every = []
    for call in sorted(points):
        if call in NEVER:
            continue
        for number in range(counts[call] + 1, counts[call] + points[call] + 1):
            for what in (KILL,) if call in ONLY_KILLED else ERRORS + (KILL,):
                every.append((call, number, what))
    if sample is None or sample >= len(every):
        return every, len(every)
    # Round-robin over the kinds of call, so that the rare ones are all in.
    by_call = collections.OrderedDict()
    for point in every:
        by_call.setdefault(point[0], []).append(point)
    share, chosen = sample, []
    left = sorted(by_call.values(), key=len)
    while left:
        kind = left.pop(0)
        take = min(len(kind), max(7, share // (len(left) + 1)))
        # A step that is no multiple of the number of errors meets all of them.
        chosen += [kind[(index * len(kind) // take + index) % len(kind)] for index in range(take)]
        share -= take
    return sorted(set(chosen)), len(every)


def do_scenario(name, arguments, root):
    scenario = SCENARIOS[name]
    began = time.monotonic()
    folder, status, wrong, _ = run(scenario, None, root, True)
    wanted = 12 if scenario.existing else 0
    if status != wanted or wrong:
        print("%s: the control, without a fault, ends with %s: %s" % (name, status, wrong))
        print((folder / "err").read_text())
        return False
    if scenario.program and not (folder / "marker").exists():
        print("%s: the control starts no workload" % name)
        return False
    counts, points = calls_of(folder, scenario)
    chosen, total = points_of(counts, points, None if arguments.full else scenario.sample)
    outcomes, bad = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = {pool.submit(run, scenario, point, root, arguments.keep): point for point in chosen}
        for future in concurrent.futures.as_completed(futures):
            point = futures[future]
            where, status, wrong, took = future.result()
            outcomes["killed" if status == -9 else "hung" if status is None else "exit %d" % status] += 1
            if wrong:
                bad.append((point, status, wrong, where))
    kinds = collections.Counter(point[2] for point in chosen)
    print("%-9s %3d system calls of %d kinds, %d of %d faults tried in %.0f s (%s): %d wrong" % (
        name, sum(points.values()), len(points), len(chosen), total, time.monotonic() - began,
        ", ".join("%s %d" % item for item in sorted(kinds.items())), len(bad)))
    print("          ended with: " + ", ".join("%s %d" % item for item in sorted(outcomes.items())))
    for point, status, wrong, where in sorted(bad):
        print("  %s #%d %s: status %s: %s (%s)" % (*point, status, "; ".join(wrong), where))
    return not bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    arguments = parser.parse_args()
    os.umask(0o022)
    root = tempfile.mkdtemp(prefix="kd-fault-")
    good = True
    try:
        for name in arguments.scenarios or SCENARIOS:
            good &= do_scenario(name, arguments, root)
            sys.stdout.flush()
    finally:
        if good and not arguments.keep:
            shutil.rmtree(root, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
