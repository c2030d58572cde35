"""The models of bench/serving.py, for each engine.

    python bench/serving_models.py ENGINE MODEL PATH ARCHIVE

writes the model for the engine. That of `ltc` is the archive, and is to be there first: it says what the inputs and results are called.
"""

import sys
from pathlib import Path

import archives

SUFFIXES = {"ltc": ".ltc", "aotinductor": ".pt2", "aotinductor_frozen": ".frozen.pt2", "libtorch": ".pt", "onnxruntime": ".onnx"}
BATCH = 4096  # the most rows of mlp


def prepared(name):
    """The model and its batch on the CPU, and its output as a function of both."""
    if name != "mlp":
        return archives.prepared(name)
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)]
    return torch.nn.Sequential(*layers).eval(), {"input": torch.randn(4, 64)}, lambda model, batch: model(batch["input"])


def of_tensors(name):
    """The same as a module of positional tensors, with an example and the sizes that vary."""
    import torch

    model, batch, output = prepared(name)

    class OfTensors(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            return output(self.model, dict(zip(batch, tensors)))

    rows = torch.export.Dim("batch", max=BATCH)
    return OfTensors().eval(), tuple(batch.values()), ((({0: rows},),) if name == "mlp" else None)


def write_ltc(name, path, _):
    if name != "mlp":
        return archives.export(name, path)
    import ltc

    model, batch, _ = prepared(name)
    ltc.export(model.to("ltc"), (batch["input"],), dynamic_shapes={"input": {0: "batch"}}).save(path)
    return None


def write_aotinductor(name, path, _, freezing=False):
    import torch

    module, example, shapes = of_tensors(name)
    with torch._inductor.config.patch(freezing=freezing):
        torch._inductor.aoti_compile_and_package(torch.export.export(module, example, dynamic_shapes=shapes), package_path=path)


def write_aotinductor_frozen(name, path, archive):
    write_aotinductor(name, path, archive, freezing=True)


def write_libtorch(name, path, _):
    import torch

    module, example, _ = of_tensors(name)
    torch.jit.trace(module, example).save(path)


def write_onnxruntime(name, path, archive):
    import torch

    module, example, shapes = of_tensors(name)
    function = archives.function_of(archive)
    inputs, results = ([tensor["name"] for tensor in function[kind]] for kind in ("inputs", "results"))
    torch.onnx.export(module, example, path, input_names=inputs, output_names=results, dynamic_shapes=shapes, dynamo=True)


def main(engine, name, path, archive):
    import torch

    with torch.no_grad():
        globals()[f"write_{engine}"](name, path, archive)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main(*sys.argv[1:])
