"""`ltc serve` under load, from `wrk` (apt package) on the same machine, and other engines behind the same server.

    python bench/serving.py [--engines NAME,NAME] [--onnxruntime FOLDER] [--backend PLUGIN] [--seconds N] [--rounds N]
                            [--connections N,N] [--instances N] [--max-rows N] [MODEL ...]

Per number of connections: answers in a second, and the time of an answer as median and 99th percentile. Each connection has one request at
a time, with tensors as bytes. `rows` is the mean number of rows of a call. `mlp` is three layers of 64, with a batch dimension; the other
models are those of the table of models, with their batch. Server and `wrk` share the processors. An answer that is not 200, or a first
answer that is not the model's, ends it with an error. Each engine has one thread.

Engines, `ltc` alone unless they are named:

    ltc                 `ltc serve` with an archive
    aotinductor         a package of AOTInductor, with its default options
    aotinductor_frozen  the same with its option `freezing`: it prepares weights as constants, which helps some models and slows others
    libtorch            a traced module, whose ops libtorch runs one by one
    onnxruntime         ONNX Runtime, with all its optimisations of graphs

All have the server, the queue and the batches of `ltc serve`. Their servers wait side by side and take turns under load; figures are medians
over the rounds. `ratio` is that of the answers in a second to those of the first engine. `onnxruntime` needs the packages onnx and onnxscript to
export, and the folder of a release of ONNX Runtime, with its `include` and `lib`. AOTInductor needs a C++ compiler.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from serving_models import SUFFIXES

ROOT = Path(__file__).resolve().parent.parent
DATATYPES = {"bool": "BOOL", "int64": "INT64", "int32": "INT32", "float32": "FP32", "float64": "FP64"}
PROGRAMS = {"aotinductor": "torch", "aotinductor_frozen": "torch", "libtorch": "torch", "onnxruntime": "onnxruntime"}
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def build_folder():
    import ltc

    return Path(ltc.__file__).parent.parent.parent


def build(engines, onnxruntime):
    """The servers of the other engines."""
    programs = sorted({f"ltc_serving_{PROGRAMS[engine]}" for engine in engines if engine in PROGRAMS})
    if "onnxruntime" in engines:
        if not onnxruntime:
            raise SystemExit("onnxruntime needs --onnxruntime FOLDER")
        subprocess.run(["cmake", "-S", ROOT, "-B", build_folder(), f"-DLTC_ONNXRUNTIME={Path(onnxruntime).resolve()}"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
    if programs:
        subprocess.run(["ninja", "-C", build_folder(), *programs], check=True, stdout=subprocess.DEVNULL)


def write_request(name, path, script):
    """The sample's inputs as a request of `wrk`; of `mlp` one row."""
    import archives

    inputs, data = [], b""
    for tensor, value in archives.sample_of(path).items():
        if not tensor.startswith("input."):
            continue
        value = value[:1] if name == "mlp" else value
        inputs.append({"name": tensor.removeprefix("input."), "datatype": DATATYPES[value.dtype.name], "shape": list(value.shape),
                       "parameters": {"binary_data_size": value.nbytes}})  # fmt: skip
        data += value.tobytes()
    header = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    body = Path(script).with_suffix(".body")
    body.write_bytes(header + data)
    Path(script).write_text(f'wrk.method = "POST"\nwrk.headers["Inference-Header-Content-Length"] = "{len(header)}"\n'
                            f'local file = io.open("{body}", "rb")\nwrk.body = file:read("*a")\nfile:close()\n')  # fmt: skip


def milliseconds(number, unit):
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}[unit]


def load(script, url, connections, seconds):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", script, url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    per_second = re.search(r"Requests/sec:\s+([\d.]+)", text)
    half, most = (re.search(rf" {percent}%\s+([\d.]+)(us|ms|s|m)\s", text) for percent in (50, 99))
    if "Non-2xx" in text or "Socket errors" in text or not (per_second and half and most):
        raise RuntimeError(f"an answer is bad, or there are too few in {seconds} s:\n{text}")
    return float(per_second.group(1)), milliseconds(*half.groups()), milliseconds(*most.groups())


def rows_of_calls(url):
    text = urllib.request.urlopen(url.split("/v2")[0] + "/metrics").read().decode()
    return [float(re.search(rf"ltc_serve_call_rows_{kind}\S* (\S+)", text).group(1)) for kind in ("sum", "count")]


def check(url, script, path, rows):
    """The first answer is that of the archive's sample."""
    import archives
    import numpy

    header = re.search(r'Length"\] = "(\d+)"', Path(script).read_text()).group(1)
    request = urllib.request.Request(url, Path(script).with_suffix(".body").read_bytes(), {"Inference-Header-Content-Length": header})
    with urllib.request.urlopen(request) as answer:
        size, body = int(answer.headers["Inference-Header-Content-Length"]), answer.read()
    data = body[size:]
    sample = archives.sample_of(path)
    for output in json.loads(body[:size])["outputs"]:
        expected = sample["result." + output["name"]][:rows]
        found = numpy.frombuffer(data[: expected.nbytes], expected.dtype).reshape(output["shape"])
        data = data[expected.nbytes :]
        numpy.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@contextlib.contextmanager
def serving(command):
    """Starts a server; gives its address."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ONE_THREAD) as server:
        try:
            ready = next((line for line in server.stdout if line.startswith("ready on ")), None)
            if ready is None:
                raise RuntimeError(f"{command[0]} ended")
            yield f"{ready.split()[-1]}/v2/models/model/infer"
        finally:
            server.terminate()


def command_of(engine, folder, arguments):
    limits = [str(arguments.instances), str(arguments.max_rows)]
    if engine == "ltc":
        return [build_folder() / "python/ltc/bin/ltc-serve", f"{folder}/model.ltc", "--port", "0", "--backend", arguments.backend,
                "--instances", limits[0], "--max-rows", limits[1]]  # fmt: skip
    return [build_folder() / f"bench/ltc_serving_{PROGRAMS[engine]}", f"{folder}/model.ltc", f"{folder}/model{SUFFIXES[engine]}", *limits]


def loaded(url, script, connections, seconds):
    """Answers in a second, median, 99th percentile, and rows of a call."""
    rows, calls = rows_of_calls(url)
    figures = load(script, url, connections, seconds)
    more_rows, more_calls = rows_of_calls(url)
    return *figures, (more_rows - rows) / (more_calls - calls)


def measure(name, folder, arguments):
    archive, script = f"{folder}/model.ltc", f"{folder}/request.lua"
    for engine in ["ltc", *(one for one in arguments.engines if one != "ltc")]:
        subprocess.run([sys.executable, ROOT / "bench/serving_models.py", engine, name, f"{folder}/model{SUFFIXES[engine]}", archive],
                       check=True, stdout=subprocess.DEVNULL, env=ONE_THREAD)  # fmt: skip
    write_request(name, archive, script)
    with contextlib.ExitStack() as stack:
        urls = {engine: stack.enter_context(serving(command_of(engine, folder, arguments))) for engine in arguments.engines}
        for url in urls.values():
            check(url, script, archive, 1 if name == "mlp" else None)
            load(script, url, 1, 1)
        for connections in arguments.connections.split(","):
            rounds = [{engine: loaded(url, script, int(connections), arguments.seconds) for engine, url in urls.items()}
                      for _ in range(arguments.rounds)]  # fmt: skip
            for engine in urls:
                per_second, half, most, rows = (statistics.median(figures) for figures in zip(*(one[engine] for one in rounds)))
                ratio = statistics.median(one[engine][0] / one[arguments.engines[0]][0] for one in rounds)
                print(f"| {name} | {connections} | {engine} | {per_second:.0f} | {ratio:.2f} | {half:.2f} | {most:.2f} | {rows:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["ltc"])
    parser.add_argument("--onnxruntime", metavar="FOLDER")
    parser.add_argument("--backend", default="torchscript")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--connections", default="1,8,64")
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--max-rows", type=int, default=32)
    parser.add_argument("models", nargs="*", default=["mlp", "torchvision ResNet-18", "BERT"])
    arguments = parser.parse_args()
    if unknown := set(arguments.engines) - set(SUFFIXES):
        parser.error(f"there is no engine {', '.join(sorted(unknown))}, but: {', '.join(SUFFIXES)}")
    build(arguments.engines, arguments.onnxruntime)
    columns = ["model", "connections", "engine", "answers in a second", "ratio", "median, ms", "99th percentile, ms", "rows"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            measure(name, folder, arguments)


if __name__ == "__main__":
    main()
