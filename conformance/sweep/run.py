"""Runs the cases of one operator on the CPU and on the device."""

import math
import sys
import warnings

import torch

from .cases import DTYPES, STRIDE_MODES, forward, has_mode, MODES, samples
from .compare import Differs, differences, same, same_picks, strides_of, tolerance
from .place import Place, has_device, map_tensors, tensors_in
from .rounding import by_layout, exactly, only_rounded
from .tables import ANY_OF_EQUAL, OTHER_ERRORS, UNINITIALISED

MOST_SLACK = 50  # tolerances
NEAR = 1  # tolerances that a result may be away from the exact one
MOST_ERROR = 0.1  # of the CPU's result, as a share of it: more is no matter of rounding
RANDOM_RUNS = 12  # of a random operator, pooled for statistics


class Outcome:
    """The outcome of one run: a result, or the exception that it raised."""

    def __init__(self, program, device, seed=0):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        self.result = self.error = None
        self.strides = []
        try:
            result = program(Place(device))
            self.strides = strides_of(result)
            self.result = _settle(result)
        except Exception as error:  # noqa: BLE001  the exception is the result
            self.error = error
        self.drew = device == "cpu" and not torch.equal(before, torch.get_rng_state())

    def describe(self):
        return f"{type(self.error).__name__}: {_first_line(self.error)}" if self.error else "no error"



class Changed(Place):
    """The CPU, with each operand changed."""

    def __init__(self, change):
        super().__init__("cpu")
        self._change = change

    def _tensor(self, tensor):
        return map_tensors(self._change, super()._tensor(tensor))


def _wide(tensor):
    return tensor.to(torch.promote_types(tensor.dtype, torch.float64)) if tensor.is_floating_point() or tensor.is_complex() else tensor


def _nudged(tensor):
    """Each element a last bit up or down in turn: what that changes is a matter of rounding. Not of half types, where it is much."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or torch.finfo(tensor.dtype).eps > 1e-6:
        return tensor
    signs = torch.arange(tensor.numel()).reshape(tensor.shape) % 2 * 2 - 1
    return tensor * (1 + torch.finfo(tensor.dtype).eps * signs.double()).to(tensor.dtype)


def _with(program, change):
    """The CPU's result with changed operands; nothing where it raises."""
    torch.manual_seed(0)
    try:
        return program(Changed(change))
    except Exception:  # noqa: BLE001
        return ()


def _settle(tree):
    """Waits for values: errors of asynchronous work are raised here."""
    for tensor in tensors_in(tree):
        if tensor.device.type not in ("cpu", "meta"):
            tensor.detach().cpu()
    return tree


def _first_line(error):
    return (str(error).strip().splitlines() or [""])[0][:200]


class Operator:
    """Runs an operator's cases against a device and adds them up."""

    def __init__(self, op, device, counters):
        self.op, self.device, self.counters = op, device, counters
        self.first = None  # argument of the case at hand

    def run(self, mode, dtype_name, limit):
        """Adds up the cases of one mode and dtype."""
        tally = {"mode": mode, "dtype": dtype_name, "counted": 0, "passed": 0, "uncounted": 0, "random": 0, "fell_back": 0,
                 "strides": 0, "same_strides": 0, "failures": [], "uncounted_why": [], "fallbacks": {}, "stride_failures": []}
        dtype = DTYPES[dtype_name]
        if not has_mode(self.op, mode, dtype):
            return tally
        try:
            every = samples(self.op, dtype, mode, limit)
        except Exception as error:  # noqa: BLE001  the database's own
            tally["uncounted"] += 1
            tally["uncounted_why"].append(f"no samples: {_first_line(error)}")
            return tally
        for arguments in every:
            self.first = arguments.tree[0]
            if any(tensor.layout != torch.strided for tensor in tensors_in(arguments.tree)):
                tally["uncounted"] += 1
                tally["uncounted_why"].append("arguments of another layout")
                continue
            if not has_device(arguments.tree):
                tally["uncounted"] += 1
                tally["uncounted_why"].append(f"{arguments.summary()}: names no device, so it is the CPU's everywhere")
                continue
            try:
                programs = list(MODES[mode](self.op, arguments))
            except Exception as error:  # noqa: BLE001  no expected result, so no memory for it
                tally["uncounted"] += 1
                tally["uncounted_why"].append(f"{arguments.summary()}: {_first_line(error)}")
                continue
            for number, program in enumerate(programs):
                self._case(program, arguments, f" #{number}" if number else "", tally)
        return tally

    def _case(self, program, arguments, suffix, tally):
        sample = arguments.summary() + suffix
        expected, again = Outcome(program, "cpu"), Outcome(program, "cpu")
        values = self.op.name not in UNINITIALISED
        if why := self._unsound(program, expected, again, values):
            tally["uncounted"] += 1
            tally["uncounted_why"].append(f"{sample}: {why}")
            return
        self.counters.reset()
        actual = Outcome(program, self.device)
        fallbacks = [name for name in self.counters.counter_names() if name.startswith("aten::")]
        tally["counted"] += 1
        try:
            self._check(program, arguments, actual, expected, values, tally)
            tally["passed"] += 1
        except Differs as difference:
            tally["failures"].append({"sample": sample, "message": str(difference)[:300]})
        if expected.error:
            return
        if fallbacks:
            tally["fell_back"] += 1
            for name in fallbacks:
                tally["fallbacks"][name] = tally["fallbacks"].get(name, 0) + 1
        if tally["mode"] in STRIDE_MODES and not actual.error:
            tally["strides"] += 1
            tally["same_strides"] += actual.strides == expected.strides
            if actual.strides != expected.strides:
                tally["stride_failures"].append(f"{sample}: {actual.strides}, CPU {expected.strides}"[:300])

    def _unsound(self, program, expected, again, values):
        """Why the CPU does not agree with itself, or has nothing to compare with."""
        if bool(expected.error) != bool(again.error):
            return "raises at times"
        if expected.error:
            return None
        if any(tensor.layout != torch.strided for tensor in tensors_in(expected.result)):
            return "results of another layout"
        try:
            same(again.result, expected.result, "cpu", values)
        except Differs as difference:
            return f"CPU against CPU: {difference}"
        if hasattr(program, "functional") and not expected.drew:
            try:  # some CPU kernels write wrongly through strides
                same([tensor.to(plain.dtype) for tensor, plain in zip(tensors_in(expected.result[0]), tensors_in(program.functional))],
                     tensors_in(program.functional), "cpu", values, MOST_SLACK)
            except Differs as difference:
                return f"CPU's out= against its own result: {difference}"
        return None

    def _check(self, program, arguments, actual, expected, values, tally):
        if expected.error or actual.error:
            both = expected.error and actual.error
            if type(expected.error) is not type(actual.error) and not (both and self.op.name in OTHER_ERRORS):
                raise Differs(f"raises {actual.describe()}; the CPU: {expected.describe()}")
            return
        if self.counters.counter_value("RecoveredRuns"):
            raise Differs("a run failed on the plugin, and its ops did not when they ran one by one")
        device = torch.device(self.device).type
        if expected.drew:
            tally["random"] += 1
            same(actual.result, expected.result, device, values=False)
            if values:
                _check_statistics(program, self.device)
            return
        try:
            same(actual.result, expected.result, device, values)
        except Differs as difference:
            if not difference.of_values:
                raise
            in_memory = tally["mode"].startswith(("out", "inplace"))
            if in_memory and self._picks_others(actual.result[0], expected.result[0]):
                _take_outputs(actual.result, expected.result)
                same(actual.result, expected.result, device)
            elif by_layout(self.op) and self._only_rounded(program, arguments, actual.result, expected.result, in_memory):
                same(actual.result, expected.result, device, values=in_memory)
            elif in_memory:  # compared as a whole, so it gets the device's values where these are as good
                if hasattr(program, "functional"):
                    _write_functional(program, expected)
                if self._is_near_functional(arguments, actual.result):
                    _take_outputs(actual.result, expected.result)
                same(actual.result, expected.result, device, values, _widening(program, expected))
            elif not self._may_differ(program, actual, expected, device):
                raise

    def _only_rounded(self, program, arguments, actual, expected, in_memory):
        """Whether the device rounds in another order. If so, memory of the CPU's that is compared as a whole gets the device's values."""
        plain = next(forward(self.op, arguments)) if in_memory else program
        exact = exactly(lambda: _with(plain, _wide))
        if not only_rounded(*((actual[0], expected[0]) if in_memory else (actual, expected)), exact):
            return False
        if in_memory:
            _take_outputs(actual, expected)
        return True

    def _picks_others(self, actual, expected):
        """Whether only the order of equal elements differs, where the operator promises none."""
        return self.op.name in ANY_OF_EQUAL and same_picks(self.first, actual, expected)

    def _may_differ(self, program, actual, expected, device):
        if self._picks_others(actual.result, expected.result):
            return True
        # Another order of adding or a last bit gives as much, or the device is no farther from what double precision gives.
        slack = 2 * max([0.0, *(excess for change in (torch.Tensor.contiguous, _nudged)
                                for excess, _ in differences(_with(program, change), expected.result))])
        try:
            same(actual.result, expected.result, device, slack=min(slack, MOST_SLACK))
            return True
        except Differs:
            return _is_near(_with(program, _wide), expected.result, actual.result)

    def _is_near_functional(self, arguments, actual):
        """Whether outputs, as the dtypes that the op computes in, differ from the CPU's results in fresh memory by rounding alone."""
        program = next(forward(self.op, arguments))
        plain = tensors_in(_with(program, torch.Tensor.detach))
        if not all(tensor.is_floating_point() or tensor.is_complex() for tensor in plain):
            return False
        outputs = [output.to(tensor.dtype) for output, tensor in zip(tensors_in(actual[2]), plain)]
        return _is_near(plain, plain, outputs) or _is_near(exactly(lambda: _with(program, _wide)), plain, outputs)


def _is_near(exact, expected, actual):
    """Whether the device is about as near to what double precision gives as the CPU."""
    limits, found = differences(exact, expected), differences(exact, actual)
    return bool(limits) and len(limits) == len(found) and all(
        error <= max(NEAR, 2 * limit) and share < MOST_ERROR for (error, _), (limit, share) in zip(found, limits))


def _take_outputs(actual, expected):
    """Writes the device's outputs into those of the CPU, so that the memory around them is compared."""
    for output, value in zip(*map(tensors_in, (expected[2], actual[2]))):
        output.copy_(value.cpu())


def _write_functional(program, expected):
    """Into the outputs of the CPU's run what it gives without out=: some of its kernels round more often on the way through strides."""
    _, _, outputs, _ = expected.result  # views of the memory that is compared
    for output, value in zip(tensors_in(outputs), tensors_in(program.functional)):
        output.copy_(value)


def _widening(program, expected):
    """Outputs may be of wider dtypes than the op computes in, and are no more exact for that: how many more of their tolerances."""
    pairs = zip(tensors_in(expected.result[2]), tensors_in(getattr(program, "functional", ())))
    return max([0.0, *(tolerance(computed) / tolerance(output) - 1 for output, computed in pairs if tolerance(output))])


def _check_statistics(program, device):
    """Pools runs with different seeds: the device's distribution must be the CPU's; one seed must give the same numbers."""
    pools = {where: [Outcome(program, where, seed).result for seed in range(1, RANDOM_RUNS + 1)] for where in ("cpu", device)}
    repeated = Outcome(program, device, RANDOM_RUNS)
    if repeated.error:
        raise Differs(f"raises {repeated.describe()} at times")
    same(_on_cpu(repeated.result), _on_cpu(pools[device][-1]), "cpu")
    for cpu, other in zip(zip(*map(tensors_in, pools["cpu"])), zip(*map(tensors_in, pools[device]))):
        if cpu[0].numel():
            # Dropout of features draws one number per channel: count no more than the first two dims.
            draws = RANDOM_RUNS * math.prod(cpu[0].shape[:2])
            _same_statistics(*(torch.cat([_real(tensor) for tensor in pool]) for pool in (other, cpu)), draws)


def _real(tensor):
    tensor = tensor.detach().cpu().flatten()
    return (torch.view_as_real(tensor.resolve_conj()).flatten() if tensor.is_complex() else tensor).double()


def _on_cpu(tree):
    return [tensor.detach().cpu() for tensor in tensors_in(tree)]


def _same_statistics(actual, expected, draws):
    """Kolmogorov and Smirnov's test of two samples: far from where chance would reach, for so many independent draws."""
    if expected.isnan().any() != actual.isnan().any():
        raise Differs("random: NaN in one of them")
    actual, expected = actual.nan_to_num().sort().values, expected.nan_to_num().sort().values
    points = torch.cat([actual, expected])
    shares = [torch.searchsorted(sample, points, right=True).double() / len(sample) for sample in (actual, expected)]
    distance = (shares[0] - shares[1]).abs().max().item()
    if distance > 2.5 * math.sqrt(2 / draws):
        raise Differs(f"random: the distributions are {distance:.2f} apart in {draws} draws, mean {actual.mean():.4g}, "
                      f"expected {expected.mean():.4g}")


def prepare():
    """Once per process, after the operator database was imported."""
    warnings.filterwarnings("ignore")  # that operators are deprecated is no news here
    torch.set_num_threads(1)
    # torch.manual_seed would keep each seed and a stack for accelerators that are not there: a third of the sweep's time.
    for absent in (torch.cuda, torch.xpu, torch.mtia):
        absent.manual_seed_all = lambda seed: None
    # The database seeds each call of a random operator; here seeds are chosen by who compares. And with each sample it looks for the
    # test that runs it, in all modules: three quarters of the sweep's time.
    for module in list(sys.modules.values()):
        if hasattr(module, "wrapper_set_seed"):
            module.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
        if hasattr(module, "extract_test_fn"):
            module.extract_test_fn = lambda: None
