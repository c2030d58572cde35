"""A call of a model's archive beside the same model on other engines: without a server, in one process, with one thread.

    python bench/engines.py [--backend PLUGIN] [--rounds N] [--engines NAME,NAME] [MODEL ...]

The engines are those of bench/serving.py, `libtorch` being eager PyTorch. They take turns; a figure is the median of the rounds' medians, in ms.
`ratio` is the time of the first engine divided by that of the engine: above 1, the engine is faster. Inputs and results are arrays in host memory.
A result that is not the model's ends it with an error. `onnxruntime` needs the packages onnxruntime, onnx and onnxscript; AOTInductor needs a C++
compiler.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import serving_models

WARM_UP_S, TURN_S = 2, 0.7


def of_ltc(path, arrays, backend):
    import ltc_runtime

    model = ltc_runtime.load(path, backend=backend)
    session = model.session()
    return lambda: session.run("forward", *arrays)


def of_onnxruntime(path, arrays, _):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = {tensor.name: array for tensor, array in zip(session.get_inputs(), arrays)}
    return lambda: session.run(None, inputs)


def of_aotinductor(path, arrays, _):
    import torch

    package, tensors = torch._inductor.aoti_load_package(path), [torch.from_numpy(array) for array in arrays]
    return lambda: package(*tensors)


def of_libtorch(path, arrays, _):
    import torch

    module, tensors = torch.jit.load(path), [torch.from_numpy(array) for array in arrays]
    return lambda: module(*tensors)


ENGINES = {"ltc": of_ltc, "onnxruntime": of_onnxruntime, "aotinductor": of_aotinductor, "aotinductor_frozen": of_aotinductor, "libtorch": of_libtorch}


def measure(name, arguments, folder):
    import archives
    import numpy

    paths = {engine: f"{folder}/model{serving_models.SUFFIXES[engine]}" for engine in ["ltc", *arguments.engines]}
    for engine, path in paths.items():
        command = [sys.executable, serving_models.__file__, engine, name, path, paths["ltc"]]
        environment = {**os.environ, "LTC_BACKEND": arguments.backend}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    sample = archives.sample_of(paths["ltc"])
    function = archives.function_of(paths["ltc"])
    arrays = [sample[f"input.{tensor['name']}"] for tensor in function["inputs"]]
    expected = sample[f"result.{function['results'][0]['name']}"]
    calls = {engine: ENGINES[engine](paths[engine], arrays, arguments.backend) for engine in arguments.engines}
    for engine, call in calls.items():
        result = call()
        while isinstance(result, list | tuple):
            result = result[0]
        if not numpy.allclose(numpy.asarray(result), expected, rtol=1e-3, atol=1e-4):
            raise SystemExit(f"{engine} computes something else than {name}")
        end = perf_counter() + WARM_UP_S
        while perf_counter() < end:
            call()
    times = {engine: [] for engine in calls}
    for _ in range(arguments.rounds):
        for engine, call in calls.items():
            times[engine].append(median_of_a_turn(call))
    medians = {engine: statistics.median(of_rounds) for engine, of_rounds in times.items()}
    first = medians[arguments.engines[0]]
    for engine, median in medians.items():
        print(f"| {name} | {engine} | {1e3 * median:.3f} | {first / median:.2f} |", flush=True)


def median_of_a_turn(call):
    times, end = [], perf_counter() + TURN_S
    while (begin := perf_counter()) < end:
        call()
        times.append(perf_counter() - begin)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=["mlp", "torchvision ResNet-18", "BERT"])
    parser.add_argument("--engines", default=["ltc"], type=lambda text: text.split(","), help=", ".join(ENGINES))
    parser.add_argument("--backend", default="torchscript")
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    if unknown := [engine for engine in arguments.engines if engine not in ENGINES]:
        parser.error(f"no engine {unknown[0]}; there are {', '.join(ENGINES)}")
    os.environ["OMP_NUM_THREADS"] = "1"
    print("| model | engine | ms | ratio |\n|---|---|---|---|")
    import torch

    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
            measure(name, arguments, folder)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
