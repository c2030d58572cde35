"""Runs the conformance suite on faulty variants of samples/minimal_plugin; see README.md."""

import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples/minimal_plugin"
SUITE = ROOT / "build/release/python/ltc/bin/ltc-conformance"
SOURCES = "plugin plan collectives profile support unary elementwise cast movement creation reduction index matrix queue".split()
FLAGS = {"minimal": [], "minimal_async": ["-DMINIMAL_ASYNC"]}
FIRST = ["--tier", "loader,abi,memory,execute,async,errors,threads,cache"]
REST = ["--tier", "ops,programs,stress"]


def faults():
    return tomllib.loads((pathlib.Path(__file__).parent / "faults.toml").read_text())["fault"]


def sentences():
    """The headers' text without line breaks, in which each quoted sentence must stand."""
    headers = "".join((ROOT / f"sdk/include/ltc/{name}.h").read_text() for name in ("plugin", "precision", "profile", "symbolic", "collective"))
    return re.sub(r"\s*\n\s*(\*(?!/)\s*)?(/\*\s*)?", " ", headers)


def compile_objects(source, plugin, names, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        command = ["cc", "-std=c11", "-O1", "-fPIC", "-fvisibility=hidden", "-w", *FLAGS[plugin], f"-I{source}"]
        command += [f"-I{ROOT}/sdk/include", "-c", str(source / f"{name}.c"), "-o", str(folder / f"{name}.o")]
        subprocess.run(command, check=True, capture_output=True, text=True)


def build(fault, work):
    """The library with the fault. Objects of files without a change come from the sample as it is, in `work`."""
    folder = work / fault["id"]
    shutil.copytree(SAMPLE, folder / "source")
    changed = set()
    for file, old, new in fault["changes"]:
        path = folder / "source" / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{fault['id']}: {text.count(old)} times in {file}: {old}")
        path.write_text(text.replace(old, new))
        changed.add(path.stem)
    compile_objects(folder / "source", fault["plugin"], sorted(changed), folder)
    library = folder / f"libltc_{fault['plugin']}.so"
    objects = [folder / f"{n}.o" if n in changed else work / fault["plugin"] / f"{n}.o" for n in SOURCES]
    subprocess.run(["cc", "-shared", "-o", library, *objects, "-lm", "-lpthread"], check=True, capture_output=True, text=True)
    return library


def run_suite(suite, library, options, seconds):
    """The checks that found something, an empty list where none did."""
    report = library.parent / "report.json"
    command = [suite, "--backend", str(library), "--jobs", "1", "--timeout", "10", "--json", str(report), *options]
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return ["(time limit)"]
    if run.returncode == 0:
        return []
    checks = json.loads(report.read_text())["checks"] if report.exists() else []
    return [c["name"] for c in checks if c["outcome"] == "failed"] or [f"(exit {run.returncode})"]


def find(fault, suite, work, quick, seconds):
    library = build(fault, work)
    found = run_suite(suite, library, FIRST, seconds)
    return found or ([] if quick else run_suite(suite, library, REST, seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="these faults only")
    parser.add_argument("--suite", type=pathlib.Path, default=SUITE)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=240, help="time limit of one run of the suite")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--quick", action="store_true", help="without the tiers ops and programs")
    options = parser.parse_args()
    chosen = [fault for fault in faults() if not options.ids or fault["id"] in options.ids]
    text = sentences()
    for fault in chosen:
        if fault["sentence"] not in text:
            parser.error(f"{fault['id']}: no header says: {fault['sentence']}")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = pathlib.Path(folder)
        for plugin in FLAGS:
            compile_objects(SAMPLE, plugin, SOURCES, work / plugin)
        if options.compile_only:
            for fault in chosen:
                try:
                    build(fault, work)
                except (ValueError, subprocess.CalledProcessError) as error:
                    print(fault["id"], getattr(error, "stderr", error), flush=True)
            print(len(chosen), "faults")
            return
        results = {}
        futures = {pool.submit(find, fault, options.suite, work, options.quick, options.seconds): fault for fault in chosen}
        for future in concurrent.futures.as_completed(futures):
            fault, found = futures[future], future.result()
            results[fault["id"]] = found
            print(f"{fault['id']:40} {'found: ' + ' '.join(found[:4]) if found else 'NOT FOUND'}", flush=True)
    breaking = [fault for fault in chosen if not fault.get("equivalent")]
    count = sum(bool(results[fault["id"]]) for fault in breaking)
    print(f"\nfound {count} of {len(breaking)} ({100 * count / max(1, len(breaking)):.0f} %)")
    for fault in chosen:
        if not results[fault["id"]]:
            note = f"equivalent: {fault['equivalent']}" if fault.get("equivalent") else fault["sentence"]
            print(f"not found: {fault['id']}: {note}")


if __name__ == "__main__":
    main()
