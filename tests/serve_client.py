"""ltc serve as a process, and a client of it."""

import contextlib
import http.client
import json
import os
import subprocess
import time
from pathlib import Path

import torch

import ltc

PROGRAM = Path(ltc.__file__).parent / "bin/ltc-serve"


@contextlib.contextmanager
def serving(archive, *options, port=0, backend="minimal"):
    """A server that is ready, with its port and what it said before; killed at the end."""
    environment = {**os.environ, "LTC_CACHE": "0"}
    command = [PROGRAM, archive, "--backend", backend, "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("ready on "):
                break
        assert lines and lines[-1].startswith("ready on "), "".join(lines)
        process.port, process.report = int(lines[-1].rsplit(":", 1)[1]), "".join(lines)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ask(port, path, body=None, headers=None):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST" if body is not None else "GET", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def request_of(x, **more):
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": list(x.shape), "data": x.tolist()}], **more})


def infer(port, x, name="net"):
    status, _, body = ask(port, f"/v2/models/{name}/infer", request_of(x))
    assert status == 200, body
    (output,) = json.loads(body)["outputs"]
    return torch.tensor(output["data"]).reshape(output["shape"])


def metric(port, text):
    (line,) = [line for line in ask(port, "/metrics")[2].decode().splitlines() if line.startswith(text + " ")]
    return float(line.rsplit(" ", 1)[1])


def wait_until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
