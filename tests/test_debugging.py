"""Python lines of ops in graphs and errors, LTC_STACKS, and LTC_EAGER."""

import inspect
import re
import threading

import pytest
import torch
import torch.nn.functional as F

import ltc
from comparing import LTC, output_of, to_device
from test_fallback import PLUGINS, program_file

FILE = re.escape(__file__.rsplit("/", 1)[-1])


def here(offset=0):
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno + offset


@pytest.fixture
def lines(metrics):
    """Reads the next graph: the lines of this file by op, in order."""

    def read():
        found = {}
        for op, line, backward in re.findall(rf"= (\S+?)\(.*# .*{FILE}:(\d+)( \(in its backward\))?", ltc.graph()):
            found.setdefault(op + ("'" if backward else ""), []).append(int(line))
        return found

    return read


# ---- lines of ops


def test_line_of_an_op(lines):
    x = to_device(torch.ones(3))
    y = x + 1; first = here()  # fmt: skip
    z = (y *
         2); second = here(-1)  # fmt: skip
    assert lines() == {"aten::add.Tensor": [first], "aten::mul.Tensor": [second]}
    assert z.tolist() == [4, 4, 4]


def test_each_line_of_a_loop_body_and_of_functions(lines):
    def double(x):
        return x + x

    inside = here(-2)
    x = to_device(torch.ones(3))
    for _ in range(3):
        x = double(x)
    y = double(x).neg()
    assert lines() == {"aten::add.Tensor": [inside] * 4, "aten::neg": [here(-1)]}
    assert y.tolist() == [-16] * 3


def test_frames_of_torch_are_skipped(lines):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.GELU()).to(LTC)
    x = to_device(torch.ones(4, 3))
    y = model(x)
    z = F.leaky_relu(y)
    found = lines()
    assert found["aten::addmm"] == found["aten::gelu"] == [here(-3)]
    assert found["aten::leaky_relu"] == [here(-3)]
    del z


def test_backward_has_the_line_of_its_forward(lines):
    w = to_device(torch.ones(3)).requires_grad_()
    x = to_device(torch.ones(3))
    y = w * x; product = here()  # fmt: skip
    other = x + x; between = here()  # fmt: skip
    loss = y.tanh().sum(); rest = here()  # fmt: skip
    loss.backward()
    found = lines()
    assert found["aten::mul.Tensor'"] == [product]
    assert found["aten::tanh_backward'"] == [rest]
    assert found["aten::add.Tensor"] == [between]
    assert w.grad is not None and other is not None


def test_backward_of_a_forward_in_another_thread(lines):
    """Numbers of gradient nodes are counted per thread: another thread's must not be taken for this one's."""
    w = to_device(torch.ones(3)).requires_grad_()
    made = []
    thread = threading.Thread(target=lambda: made.append((w * 3).tanh()))
    thread.start()
    thread.join()
    mine = (w * 5).exp()
    made[0].sum().backward()
    found = lines()
    assert found["aten::tanh_backward"] == [here(-2)]  # where backward was called
    assert mine is not None


def test_lines_of_a_custom_function_are_its_own(lines):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    in_forward, in_backward = here(-7), here(-2)
    x = to_device(torch.ones(3)).requires_grad_()
    y = Square.apply(x)
    y.backward(to_device(torch.ones(3)))
    assert lines() == {"aten::mul.Tensor": [in_forward, in_backward, in_backward]}
    assert x.grad is not None


def test_recomputed_ops_have_their_own_line(lines):
    def block(x):
        return x.tanh().exp()

    inside = here(-2)
    x = to_device(torch.ones(3)).requires_grad_()
    y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    ltc.sync()
    y.sum().backward()
    found = lines()
    assert found["aten::tanh"] == [inside]
    assert x.grad is not None


def test_lines_in_other_threads(lines):
    x = to_device(torch.ones(3))
    results = []

    def work():
        results.append(x.sin())

    inside = here(-2)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lines() == {"aten::sin": [inside] * 4}


def test_lines_of_code_that_comes_and_goes(lines):
    """Code objects die and others take their addresses: a line must never be that of a dead one."""
    x = to_device(torch.ones(3))
    for i in range(300):
        scope = {}
        exec(compile("\n" * i + "def f(x):\n    return x.neg()", f"generated_{i}.py", "exec"), scope)
        y = scope["f"](x)
        assert f"aten::neg(%0)  # generated_{i}.py:{i + 2}\n" in ltc.graph()
        del y, scope


def test_lines_do_not_make_programs_differ(metrics):
    x = to_device(torch.ones(3))
    for function in (lambda: x.sin().cos(), lambda: x.sin().cos()):
        y = function()
        ltc.sync()
    assert metrics.counter_value("UncachedCompile") == 1
    assert y.shape == (3,)


def test_stacks_on_request(tmp_path):
    program = """import torch, ltc
def block(x):
    return torch.nn.functional.silu(x)
def main():
    y = block(torch.ones(2, device="ltc"))
    print(ltc.graph())
main()
"""
    (line,) = [line for line in output_of(program_file(tmp_path, program), LTC_STACKS="1").splitlines() if "aten::silu" in line]
    order = [r"torch/nn/functional\.py:\d+ in silu", r"train\.py:3 in block", r"train\.py:5 in main", r"train\.py:7 in <module>"]
    assert re.search(", from ".join(rf"\S*{frame}" for frame in order), line), line


# ---- errors of a plugin

OUT_OF_RANGE = """import torch, ltc
weight = torch.ones(4, 2).to("ltc")
index = torch.tensor([1, 7]).to("ltc")
y = torch.nn.functional.embedding(index, weight)
z = y * 2
try:
    z.sum().item()
except IndexError as error:
    print(error)
assert (weight + 1).sum().item() == 16
"""


def test_an_error_of_a_run_names_op_and_line(tmp_path):
    message = output_of(program_file(tmp_path, OUT_OF_RANGE))
    assert "index out of range" in message
    assert message.startswith("train.py:4: aten::embedding: index out of range in self [torchscript]\n")


def test_an_error_of_a_run_in_backward_names_the_forward_line(tmp_path):
    program = """import torch, ltc
source = torch.ones(4).to("ltc").requires_grad_()
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return torch.gather(grad, 0, torch.tensor([9, 9, 9, 9]).to("ltc"))
loss = Fails.apply(source * 2).sum()
loss.backward()
try:
    source.grad.cpu()
except RuntimeError as error:
    print(error)
"""
    assert output_of(program_file(tmp_path, program)).startswith("train.py:9: aten::gather: index 9 is out of bounds")


def test_an_error_that_names_no_op_names_the_program(tmp_path):
    """The test plugin that fails every second run says no more than that."""
    program = """import torch, ltc
x = torch.ones(3).to("ltc")
for _ in range(2):
    y = x + 1
    z = y * 2
    ltc.sync()
try:
    z.cpu()
except RuntimeError as error:
    print(error)
"""
    failing = PLUGINS[0].replace("libltc_test.so", "libltc_test_fails.so")
    message = output_of(program_file(tmp_path, program), LTC_BACKEND=failing)
    assert message == "train.py:4 to train.py:5: a program of 2 ops: every second run fails [test_fails]\n"


# ---- LTC_EAGER

EAGER = {"LTC_EAGER": "1"}


def test_eager_throws_at_the_op(tmp_path):
    program = OUT_OF_RANGE.replace("y = ", "try:\n    y = ", 1).replace("\nz = y * 2\ntry:\n    z.sum().item()", "")
    message = output_of(program_file(tmp_path, program), **EAGER)
    assert "index out of range" in message
    assert message.startswith("train.py:5: aten::embedding: index out of range in self [torchscript]\n")


def test_eager_runs_every_kind_of_op_at_once():
    """Hot and boxed ops, in place, out=, factories, copies, views written through, random numbers, backward."""
    program = """
    import torch, ltc
    runs = lambda: ltc.metrics.counter_value("ProgramRuns")
    def check(what, make):
        before = runs()
        result = make()
        assert runs() > before, f"{what} ran nothing"
        assert ltc.graph().splitlines()[1].strip() == "return", (what, ltc.graph())
        return result
    ones = torch.ones(4)
    x = check("factory", lambda: torch.ones(4, device="ltc"))
    y = check("hot", lambda: x + x)
    check("boxed", lambda: torch.softmax(x, 0))
    check("in place", lambda: y.mul_(3))
    check("out", lambda: torch.add(x, x, out=torch.empty(4, device="ltc")))
    check("through a view", lambda: y[1:3].add_(1))
    check("fill", lambda: y[:2].fill_(5))
    check("copy", lambda: y[2:].copy_(x[2:]))
    check("cast", lambda: x.to(torch.float64))
    check("random", lambda: torch.rand(4, device="ltc"))
    check("bound", lambda: x.clone().add_(1))
    w = ones.to("ltc").requires_grad_()
    loss = check("forward", lambda: (w * x).sum())
    check("backward", lambda: loss.backward())
    print(y.tolist(), w.grad.tolist())
    """
    assert output_of(program, **EAGER) == "[5.0, 5.0, 1.0, 1.0] [1.0, 1.0, 1.0, 1.0]\n"


@pytest.mark.parametrize("plugin", ["torchscript", PLUGINS[1]])
def test_eager_training_is_what_the_cpu_gives(tmp_path, plugin):
    program = """import torch, ltc
def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4).to(device)).square().mean()
        loss.backward()
        optimizer.step()
    return [p.detach().cpu() for p in model.parameters()]
torch.testing.assert_close(train("ltc"), train("cpu"))
print(ltc.metrics.counter_value("EagerBarrier") > 100)
"""
    assert output_of(program_file(tmp_path, program), LTC_BACKEND=plugin, **EAGER) == "True\n"
