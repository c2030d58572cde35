"""`ltc serve` under load, from `wrk` (apt package) on the same machine.

    python bench/serving.py [--backend PLUGIN] [--seconds N] [--connections N,N] [--instances N] [--max-rows N] [MODEL ...]

Per number of connections: answers in a second, and the time of an answer as median and 99th percentile. Each connection has one request at
a time, with tensors as bytes. `rows` is the mean number of rows of a call. `mlp` is three layers of 64, with a batch dimension; the other
models are those of the table of models, with their batch. Server and `wrk` share the processors. An answer that is not 200 ends it with an
error. PyTorch's kernels have one thread.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATATYPES = {"bool": "BOOL", "int64": "INT64", "int32": "INT32", "float32": "FP32", "float64": "FP64"}


def export(name, path):
    if name != "mlp":
        import archives

        return archives.export(name, path)
    import torch

    import ltc

    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)]
    with torch.no_grad():
        ltc.export(torch.nn.Sequential(*layers).to("ltc").eval(), (torch.randn(4, 64),), dynamic_shapes={"input": {0: "batch"}}).save(path)
    return None


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


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def load(script, url, connections, seconds):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", script, url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(text)
    half, most = (milliseconds(re.search(rf"{percent}%\s+(\S+)", text).group(1)) for percent in (50, 99))
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), half, most


def rows_of_calls(url):
    text = urllib.request.urlopen(url.split("/v2")[0] + "/metrics").read().decode()
    return [float(re.search(rf"ltc_serve_call_rows_{kind}\S* (\S+)", text).group(1)) for kind in ("sum", "count")]


def measure(name, folder, arguments):
    import ltc

    path, script = f"{folder}/model.ltc", f"{folder}/request.lua"
    subprocess.run([sys.executable, __file__, "--export", name, path], check=True)
    write_request(name, path, script)
    command = [Path(ltc.__file__).parent / "bin/ltc-serve", path, "--port", "0", "--backend", arguments.backend,
               "--instances", str(arguments.instances), "--max-rows", str(arguments.max_rows)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}) as server:
        try:
            ready = next((line for line in server.stdout if line.startswith("ready on ")), None)
            if ready is None:
                raise RuntimeError(f"the server of {name} ended")
            url = f"{ready.split()[-1]}/v2/models/model/infer"
            load(script, url, 1, 1)
            for connections in arguments.connections.split(","):
                rows, calls = rows_of_calls(url)
                per_second, half, most = load(script, url, int(connections), arguments.seconds)
                more_rows, more_calls = rows_of_calls(url)
                mean = (more_rows - rows) / (more_calls - calls)
                print(f"| {name} | {connections} | {per_second:.0f} | {half:.2f} | {most:.2f} | {mean:.1f} |", flush=True)
        finally:
            server.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="torchscript")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", default="1,8,64")
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--max-rows", type=int, default=32)
    parser.add_argument("--export", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", default=["mlp", "torchvision ResNet-18", "BERT"])
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "bench"))
    if arguments.export:
        return export(*arguments.export)
    print("| model | connections | answers in a second | median, ms | 99th percentile, ms | rows |\n|---|" + "---|" * 5, flush=True)
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            measure(name, folder, arguments)
    return None


if __name__ == "__main__":
    main()
