"""Records PyTorch's operator database, forward and backward, on tensors that no machine holds; nothing is computed.

A call of a sample is made larger by a factor in one of its sizes. Sizes and strides of the CPU's results for a few small factors are
polynomials of the factor, which say what the device must give for a large one. The process may grow by 1 GiB.

Argument 1 is the file for the answer, a JSON object: "recorded", the names of those that agreed; "wrong", differences; "refused", errors
by operator; "grown", by how many MiB the process grew. Argument 2 says which operators: "1/3" is each third one from the second on.
"""

import itertools
import json
import os
import resource
import sys
import warnings
from fractions import Fraction

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

import ltc  # noqa: F401

FACTORS = range(2, 8)  # the last one is a check
HUGE = 1 << 36  # about as many elements as the largest operand gets
LARGEST = 1 << 30  # size: PyTorch's pools count in 32 bits
SAMPLES = 6
MOST_SMALL = 1 << 20  # elements of an operand on the CPU
LOOPS = {"ormqr", "linalg.householder_product"}  # their gradients are loops of small ops


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tensors_of(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if is_tensor(leaf)]


class Call:
    """A sample's call with all sizes of `size` multiplied."""

    def __init__(self, op, sample, size):
        self.op, self.sample, self.size = op, sample, size

    def sizes(self, tensor, factor):
        return [size * factor if size == self.size else size for size in tensor.shape]

    def results(self, device, factor, backward):
        def made(value):
            if not is_tensor(value):
                return value
            tensor = torch.empty(self.sizes(value, factor), dtype=value.dtype, device=device)
            if device == "cpu":
                tensor.fill_(0 if not value.dtype.is_floating_point else 0.5)
            return tensor.requires_grad_(backward and value.requires_grad)

        args = tree_map(made, (self.sample.input, self.sample.args))
        kwargs = tree_map(made, self.sample.kwargs)
        kwargs = {key: device if key == "device" else value for key, value in kwargs.items()}
        results = tensors_of(self.op.op(args[0], *args[1], **kwargs))
        if not backward:
            return results
        inputs = [tensor for tensor in tensors_of((args, kwargs)) if tensor.requires_grad]
        results = [result for result in results if result.requires_grad]
        gradients = torch.autograd.grad(results, inputs, [torch.ones_like(result) for result in results], allow_unused=True)
        return results + [gradient for gradient in gradients if gradient is not None]

    def geometry(self, *how):
        return [(str(tensor.dtype), list(tensor.shape), list(tensor.stride())) for tensor in self.results(*how)]


def at(values, factor):
    """The polynomial that has `values` at FACTORS but the last one, elsewhere."""
    points = FACTORS[:-1]
    total = Fraction(0)
    for x, value in zip(points, values):
        term = Fraction(value)
        for other in points:
            if other != x:
                term *= Fraction(factor - other, x - other)
        total += term
    return int(total) if total.denominator == 1 else None


def expected(geometries, factor):
    """By result: dtype, sizes and strides for the factor; None where a few small factors do not say it."""
    if len({tuple((dtype, len(sizes)) for dtype, sizes, _ in one) for one in geometries}) != 1:
        return None
    results = []
    for of_result in zip(*geometries):
        lists = [[], []]
        for i, which in itertools.product(range(len(of_result[0][1])), (0, 1)):
            values = [one[1 + which][i] for one in of_result]
            if at(values, FACTORS[-1]) != values[-1]:
                return None
            lists[which].append(at(values, factor))
        results.append((of_result[0][0], *lists))
    return results


def calls(op, dtype, backward):
    """The calls of each sample, with each of its sizes."""
    samples = op.sample_inputs("cpu", dtype, requires_grad=backward)
    for sample in itertools.islice(samples, SAMPLES):
        operands = tensors_of((sample.input, sample.args, sample.kwargs))
        for size in sorted({size for tensor in operands for size in tensor.shape if size > 1}, reverse=True):
            call = Call(op, sample, size)
            largest = max(operands, key=lambda tensor: tensor.shape.count(size))
            elements = [torch.Size(call.sizes(tensor, FACTORS[-1])).numel() for tensor in operands]
            if max(elements) > MOST_SMALL:
                continue
            dims = largest.shape.count(size)
            factor = min((HUGE / max(largest.numel(), 1)) ** (1 / dims), LARGEST / size)
            yield call, int(factor) // 4 * 4


def run(op, backward, found):
    dtype = next((dtype for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64) if dtype in op.dtypes), None)
    name = op.formatted_name + (" backward" if backward else "")
    is_possible = dtype and (not backward or dtype.is_floating_point or dtype.is_complex)
    for call, factor in calls(op, dtype, backward) if is_possible else ():
        try:
            geometries = [call.geometry("cpu", small, backward) for small in FACTORS]
        except Exception:  # noqa: BLE001  not every size of a sample may change alone
            continue
        want = expected(geometries, factor)
        if not want:
            continue
        try:
            got = call.geometry("ltc", factor, backward)
        except Exception as error:  # noqa: BLE001
            found["refused"][name] = f"{type(error).__name__}: {error}"[:300]
            return
        if [list(one) for one in want] != [list(one) for one in got]:
            found["wrong"].append(f"{name}: {[list(t.shape) for t in tensors_of((call.sample.input, call.sample.args))]}, {call.size} times {factor}: {got}, not {want}"[:600])
        else:
            found["recorded"].append(name)
        return


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = {"recorded": [], "wrong": [], "refused": {}}
    torch.ones(2, device="ltc").cpu()
    before = peak()
    with open("/proc/self/statm", encoding="ascii") as file:  # what reads a value is refused memory for it, and does not compute
        limit = int(file.read().split()[0]) * resource.getpagesize() + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    first, step = map(int, sys.argv[2].split("/"))
    for op in op_db[first::step]:
        for backward in (False, True):
            if not backward or (op.supports_autograd and op.name not in LOOPS):
                run(op, backward, found)
    found["grown"] = round(peak() - before)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    sys.stdout.flush()
    os._exit(0)  # a step that is cut would compute what is recorded


if __name__ == "__main__":
    main()
