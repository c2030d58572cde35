"""Archives of the table of models beside eager PyTorch: inference, calls, start and memory.

    python bench/archives.py [--rounds N] [--backend PLUGIN] [--threads N] [MODEL ...]

Each figure is of a process of its own; that of the archive has no PyTorch but what the plugin brings. Per call: the median over 200 calls,
in ms, inputs and results in host memory. Start: from the call that loads the archive until its first result, in ms, with the programs of a
process before on disk, and with none. Memory: the largest resident set, in MB. The ratio is of the calls. One thread.

With --threads N: calls in a second of 1 to N threads, each with a session, of a model with one instance and with one for each thread.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CALLS = 200


def prepared(name):
    """The row's model and batch on the CPU, and its output as a function of both."""
    sys.path.insert(0, str(ROOT / "tests"))
    import torch
    from models import ROWS

    torch.manual_seed(0)
    torch.set_num_threads(1)
    row = next(row for row in ROWS if row.name == name)
    return row.make(0.0).eval(), row.batch(), lambda model, batch: row.run(model, batch)[0]


def export(name, path):
    import torch

    import ltc  # noqa: F401  the table needs it

    model, batch, output = prepared(name)
    model = model.to("ltc")
    with torch.no_grad():
        ltc.export(lambda batch: output(model, batch), (torch.utils._pytree.tree_map_only(torch.Tensor, lambda one: one.to("ltc"), batch),),
                   state={"model": model}, name="forward").save(path)  # fmt: skip


def time_calls(call):
    from time import perf_counter

    begin = perf_counter()
    call()
    first = perf_counter() - begin
    times = []
    for _ in range(CALLS):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return first, statistics.median(times)


def largest_mb():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_eager(name, path):
    import torch

    model, batch, output = prepared(name)
    with torch.no_grad():
        first, per_call = time_calls(lambda: output(model, batch))
    return first, per_call, largest_mb()


def measure_archive(name, path):
    from time import perf_counter

    import ltc_runtime

    begin = perf_counter()
    model = ltc_runtime.load(path)
    loaded = perf_counter() - begin
    session, (inputs, _) = model.session(), model.functions["forward"]
    sample = sample_of(path)
    values = [sample[f"input.{one}"] for one, _, _ in inputs]
    first, per_call = time_calls(lambda: session.run("forward", *values))
    return loaded + first, per_call, largest_mb()


def measure_threads(name, path, most):
    """Prints a row of calls in a second, by instances and threads."""
    import threading
    from time import perf_counter

    import ltc_runtime

    sample = sample_of(path)
    for threads in range(1, most + 1):
        for instances in sorted({1, threads}):
            model = ltc_runtime.load(path, instances=instances)
            values = [sample[f"input.{one}"] for one, _, _ in model.functions["forward"][0]]
            counts, end = [0] * threads, perf_counter() + 2

            def work(index, model=model, values=values, counts=counts, end=end):
                session = model.session()
                while perf_counter() < end:
                    session.run("forward", *values)
                    counts[index] += 1

            workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            print(f"| {name} | {threads} | {instances} | {sum(counts) / 2:.0f} |", flush=True)


def function_of(path):
    """The archive's only function, as its manifest has it."""
    import json
    import zipfile

    (function,) = json.loads(zipfile.ZipFile(path).read("manifest.json"))["functions"]
    return function


def sample_of(path):
    """The tensors of the archive's sample."""
    import zipfile

    from safetensors.numpy import load

    return load(zipfile.ZipFile(path).read("functions/forward/sample0.safetensors"))


WORK = {"export": export, "eager": measure_eager, "archive": measure_archive}


def show_threads(name, backend, most):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.ltc"
        run("export", name, path, folder, backend)
        environment = {**os.environ, "LTC_CACHE_DIR": folder, "OMP_NUM_THREADS": "1", "LTC_BACKEND": backend}
        subprocess.run([sys.executable, __file__, "--one", f"threads{most}", name, path], env=environment, check=True)


def run(work, name, path, cache, backend):
    environment = {**os.environ, "LTC_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "LTC_BACKEND": backend}
    done = subprocess.run([sys.executable, __file__, "--one", work, name, path], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return [float(word) for word in done.stdout.split()[-3:]] if work != "export" else None


def figures(name, rounds, backend):
    with tempfile.TemporaryDirectory() as folder:
        path, kept = f"{folder}/model.ltc", f"{folder}/cache"
        run("export", name, path, kept, backend)
        run("archive", name, path, kept, backend)
        sides = {"eager": [], "cold": [], "warm": []}
        for number in range(rounds):
            sides["eager"].append(run("eager", name, path, kept, backend))
            sides["cold"].append(run("archive", name, path, f"{folder}/{number}", backend))
            sides["warm"].append(run("archive", name, path, kept, backend))
        return sides, os.path.getsize(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backend", default="torchscript")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    if arguments.one:
        work, name, path = arguments.one
        if work.startswith("threads"):
            return measure_threads(name, path, int(work.removeprefix("threads")))
        print(*(1e3 * figure if i < 2 else figure for i, figure in enumerate(WORK[work](name, path) or ())))
        return None
    sys.path.insert(0, str(ROOT / "tests"))
    from models import ROWS

    rows = [row for row in ROWS if not arguments.models or row.name in arguments.models]
    if arguments.threads:
        print("| model | threads | instances | calls in a second |\n|---|---|---|---|", flush=True)
        for row in rows:
            show_threads(row.name, arguments.backend, arguments.threads)
        return None
    print("| model | eager, a call | archive, a call | ratio | start cold | start warm | memory eager | memory archive | file |\n|---|" + "---|" * 8)
    for row in rows:
        try:
            sides, size = figures(row.name, arguments.rounds, arguments.backend)
        except RuntimeError as error:
            print(f"| {row.name} | {error} |", flush=True)
            continue

        def median(side, index):
            return statistics.median(one[index] for one in sides[side])

        ratio = statistics.median(warm[1] / eager[1] for warm, eager in zip(sides["warm"], sides["eager"]))
        print(f"| {row.name} | {median('eager', 1):.2f} | {median('warm', 1):.2f} | {ratio:.2f} | {median('cold', 0):.0f} | "
              f"{median('warm', 0):.0f} | {median('eager', 2):.0f} | {median('warm', 2):.0f} | {size / 1e6:.1f} MB |", flush=True)  # fmt: skip
    return None


if __name__ == "__main__":
    main()
