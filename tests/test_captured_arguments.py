"""Changes by a captured function to its arguments, its module and its results: done right at each call, or refused; never lost."""

import threading
import warnings

import pytest
import torch
from torch import nn

import ltc
from comparing import LTC, assert_same, to_device


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def rebind_data(a, b):
    a.data = b * 1
    return a + 1


def rebind_by_set(a, b):
    a.set_(b.clone())
    return a + 1


def resize(a, b):
    a.resize_(6)
    a[4:] = 7
    return a + 1


def resize_storage(a, b):
    a.untyped_storage().resize_(64)
    return a + 1


def resize_through_a_view(a, b):
    a[:1].resize_(9)
    return a + 1


CHANGES = {
    "data": rebind_data,
    "set_": rebind_by_set,
    "resize_": resize,
    "storage": resize_storage,
    "view": resize_through_a_view,
    "unsqueeze_": lambda a, b: a.unsqueeze_(0) + 1,
    "t_": lambda a, b: a.t_() + 1,
    "as_strided_": lambda a, b: a.as_strided_((2,), (1,)) + 1,
    "squeeze_": lambda a, b: a[None].squeeze_() + 1,  # of a view: the argument stays
}


def arguments():
    return torch.arange(4.0).view(2, 2), torch.arange(10.0, 50, 10).view(2, 2)


def state(tensor):
    return tensor, tensor.untyped_storage().nbytes()


@pytest.mark.parametrize("name", CHANGES)
@torch.no_grad()
def test_compiled_functions_change_their_arguments_at_each_call(name):
    cpu, device = arguments(), to_device(arguments())
    compiled = torch.compile(CHANGES[name], backend="ltc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it is recorded again at each call
        for _ in range(2):
            assert_same(compiled(*device), CHANGES[name](*cpu))
            for one, other in zip(device, cpu):
                assert_same(state(one), state(other))


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "squeeze_"])
def test_jit_refuses_to_lose_a_change_of_an_argument(name):
    device = to_device(arguments())
    with pytest.raises(RuntimeError, match=r"the tensor in place 0 of its arguments and parameters was given (another storage|sizes|\d+ bytes)"):
        ltc.jit(CHANGES[name])(*device)
    for one, other in zip(device, arguments()):
        assert_same(state(one), state(other))
    assert_same(device[0] + 1, arguments()[0] + 1)


def test_jit_refuses_to_lose_a_gradient():
    def function(x):
        x.grad = x * 2
        return x + 1

    x = torch.ones(2, device=LTC)
    with pytest.raises(RuntimeError, match=r"was given a gradient \(.grad\)"):
        ltc.jit(function)(x)
    assert x.grad is None


def test_jit_changes_views_and_its_own_tensors_as_it_likes():
    def function(x):
        y = x.view(4)
        y.unsqueeze_(0).mul_(2)
        z = x * 3
        z.resize_(6)[4:] = 7
        return y, z

    x, cpu = to_device(arguments()[0]), arguments()[0]
    run = ltc.jit(function)
    for _ in range(2):
        assert_same(run(x), function(cpu))
        assert_same(x, cpu)


def test_a_result_from_outside_is_refused():
    computed, recorded = torch.ones(2).to(LTC), torch.ones(2).to(LTC) * 2
    for outside in (computed, recorded):
        with pytest.raises(RuntimeError, match="a tensor from outside"):
            ltc.jit(lambda x, outside=[outside]: (x + 1, outside[0]))(torch.ones(3, device=LTC))
    assert (computed + recorded).tolist() == [3, 3]


# ---- other threads


def in_thread(work):
    """The result of `work` in a thread of its own, or its exception."""
    box = []

    def guarded():
        try:
            box.append(work())
        except RuntimeError as error:
            box.append(str(error))

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    return box[0]


@pytest.mark.parametrize("use", [
    lambda x: x * 2,
    lambda x: x.clone(),
    lambda x: x.tolist(),
    lambda x: x.zero_(),
    lambda x: x.copy_(torch.ones(2)),
    lambda x: ltc.jit(torch.neg)(x),
], ids=["compute", "copy", "read", "fill", "write", "call"])  # fmt: skip
def test_a_placeholder_in_another_thread_is_refused(use):
    seen = []

    def function(x):
        seen.append(in_thread(lambda: use(x)))
        return x + 1

    assert ltc.jit(function)(torch.ones(2, device=LTC)).tolist() == [2, 2]
    assert "stands for an argument" in str(seen[0])


def test_a_value_of_another_thread_is_refused():
    y = torch.ones(2).to(LTC)
    with pytest.raises(RuntimeError, match="another thread's"):
        ltc.jit(lambda x: in_thread(lambda: y * 2))(torch.ones(2, device=LTC))

    def overwritten(x):
        result = x * 2
        in_thread(lambda: result.fill_(7))
        return result

    with pytest.raises(RuntimeError, match="another thread's"):
        ltc.jit(overwritten)(torch.ones(2, device=LTC))


def test_a_placeholder_that_escapes_is_refused():
    kept = []

    def function(x):
        kept.append(x)
        return x + 1

    assert ltc.jit(function)(torch.ones(2, device=LTC)).tolist() == [2, 2]
    for use in (lambda: kept[0].tolist(), lambda: kept[0] + 1, lambda: ltc.jit(torch.neg)(kept[0]), lambda: kept[0].fill_(1)):
        with pytest.raises(RuntimeError, match="stands for an argument"):
            use()
    assert torch.ones(2, device=LTC).add(1).tolist() == [2, 2]


def generator(x):
    yield x * 2


async def coroutine(x):
    return x * 2


@pytest.mark.parametrize("function", [generator, coroutine, lambda x: (x * i for i in range(2)), lambda x: {"results": map(torch.neg, [x])}])
@pytest.mark.filterwarnings("ignore:coroutine")
def test_what_computes_later_is_refused(function):
    with pytest.raises(TypeError, match="computes after the function has returned"):
        ltc.jit(function)(torch.ones(2, device=LTC))


# ---- modules


class Net(nn.Module):
    """Calls `inside` while it runs."""

    def __init__(self, inside=lambda: None):
        super().__init__()
        self.linear, self.norm, self.inside = nn.Linear(4, 4), nn.BatchNorm1d(4), inside

    def forward(self, x):
        y = self.linear(x)
        self.inside()
        return self.norm(y)


def test_plain_calls_in_other_threads_see_the_module_itself():
    """Also of its tensors as a state, and with captures of two functions in two threads at once."""
    torch.manual_seed(0)
    net = Net().to(LTC).requires_grad_(False).eval()
    x, seen = torch.randn(3, 4).to(LTC), []
    expected, own = net(x).cpu(), net.linear.weight

    def look():
        if not ltc._C.is_capturing():
            return
        net.inside = lambda: None
        seen.append(in_thread(lambda: net(x).cpu()))
        seen.append(in_thread(lambda: net.linear.weight is own and net.state_dict()["linear.weight"].data_ptr() == own.data_ptr()))
        seen.append(net.linear.weight is own)
        seen.append(in_thread(lambda: ltc.jit(net.forward)(x).cpu()))
        seen.append(in_thread(lambda: [p is q for p, q in zip(net.parameters(), parameters)]))

    net.inside, parameters = look, list(net.parameters())
    assert_same_on_cpu(ltc.jit(net)(x).cpu(), expected)
    plain, sees_own, capturing_sees_own, other_capture, in_order = seen
    assert_same_on_cpu(plain, expected)
    assert_same_on_cpu(other_capture, expected)
    assert sees_own is True and capturing_sees_own is False and all(in_order) and len(in_order) == 4
    assert type(net.linear._parameters) is dict and net.linear.weight is own


def assert_same_on_cpu(one, other):
    torch.testing.assert_close(one, other)


def test_plain_and_captured_calls_at_once():
    torch.manual_seed(0)
    net = Net().to(LTC).requires_grad_(False).eval()
    inputs = [torch.randn(rows, 4).to(LTC) for rows in range(1, 13)]
    expected = [net(x).cpu() for x in inputs]
    run, wrong = ltc.jit(net), []

    def call(function):
        for x, y in zip(inputs * 3, expected * 3):
            try:
                torch.testing.assert_close(function(x).cpu(), y)
            except Exception as error:
                wrong.append(str(error))

    threads = [threading.Thread(target=call, args=(function,)) for function in (net, run, net, ltc.jit(net))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_another_threads_writes_to_the_module_stay():
    net = Net().to(LTC).requires_grad_(False).eval()
    weight = nn.Parameter(torch.ones(4, 4, device=LTC), requires_grad=False)

    def write():
        net.inside = lambda: None
        in_thread(lambda: (setattr(net.linear, "weight", weight), net.linear.register_buffer("new", torch.ones(2, device=LTC))))

    net.inside = write
    ltc.jit(net)(torch.ones(2, 4, device=LTC))
    assert net.linear.weight is weight and net.linear.new.tolist() == [1, 1]


class Replaces(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.change = change
        self.register_buffer("state", torch.zeros(2))

    def forward(self, x):
        self.change(self, x)
        return x + 1


@pytest.mark.parametrize("change", [
    lambda module, x: setattr(module, "state", None),
    lambda module, x: delattr(module, "state"),
    lambda module, x: module.register_buffer("other", x * 2),
    lambda module, x: setattr(module, "state", x[:1] * 2),
    lambda module, x: setattr(module, "state", (x * 2).bool()),
], ids=["none", "removed", "new", "resized", "dtype"])  # fmt: skip
def test_a_module_that_is_built_differently_afterwards_is_refused(change):
    module = Replaces(change).to(LTC)
    state = module.state
    with pytest.raises(RuntimeError, match="adds, removes or resizes the parameter or buffer '(state|other)' of a Replaces"):
        ltc.jit(module)(torch.ones(2, device=LTC))
    assert dict(module.named_buffers()) == {"state": state} and state.tolist() == [0, 0]


def test_a_buffer_of_the_same_kind_becomes_its_contents():
    module = Replaces(lambda module, x: setattr(module, "state", module.state + x)).to(LTC)
    run = ltc.jit(module)
    for calls in (1, 2, 3):
        run(torch.ones(2, device=LTC))
        assert module.state.tolist() == [calls, calls]
