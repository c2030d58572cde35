"""Random numbers: repeatable from a seed, distributed as they should be, no part of the compiled program."""

import pathlib

import pytest
import torch
import torch.nn.functional as F

import ltc
from comparing import LTC, output_of
from torch.utils.checkpoint import checkpoint

N = 1000

# A plugin that holds memory and computes nothing: the host draws.
HOST_PLUGIN = pathlib.Path(ltc.__file__).parents[2] / "tests/plugins/libltc_test_host.so"

DRAWS = {
    "rand": lambda **k: torch.rand(50, device=LTC, **k),
    "randn": lambda **k: torch.randn(50, device=LTC, **k),
    "randn_double": lambda **k: torch.randn(50, device=LTC, dtype=torch.float64, **k),
    "randint": lambda **k: torch.randint(0, 1000, (50,), device=LTC, **k),
    "randperm": lambda **k: torch.randperm(50, device=LTC, **k),
    "uniform_": lambda **k: torch.empty(50, device=LTC).uniform_(-1, 1, **k),
    "normal_": lambda **k: torch.empty(50, device=LTC).normal_(1, 2, **k),
    "exponential_": lambda **k: torch.empty(50, device=LTC).exponential_(2, **k),
    "bernoulli": lambda **k: torch.bernoulli(torch.full((50,), 0.5, device=LTC), **k),
    "bernoulli_": lambda **k: torch.empty(50, device=LTC).bernoulli_(0.5, **k),
    "multinomial": lambda **k: torch.multinomial(torch.ones(1000, device=LTC), 50, **k),
    "normal": lambda **k: torch.normal(torch.zeros(50, device=LTC), 1.0, **k),
    "random_": lambda **k: torch.empty(50, device=LTC, dtype=torch.int64).random_(1000, **k),
    "geometric_": lambda **k: torch.empty(50, device=LTC).geometric_(0.1, **k),
    "cauchy_": lambda **k: torch.empty(50, device=LTC).cauchy_(**k),
    "log_normal_": lambda **k: torch.empty(50, device=LTC).log_normal_(**k),
}
TAKES_NO_GENERATOR = {
    "dropout": lambda: F.dropout(torch.ones(50, device=LTC)),
    "rand_like": lambda: torch.rand_like(torch.ones(50, device=LTC)),
    "randn_like": lambda: torch.randn_like(torch.ones(50, device=LTC)),
    "feature_dropout": lambda: F.dropout2d(torch.ones(50, 20, 2, 2, device=LTC)),
    "alpha_dropout": lambda: F.alpha_dropout(torch.ones(50, device=LTC), training=True),
    "rrelu": lambda: F.rrelu(-torch.ones(50, device=LTC), training=True),
    "gumbel_softmax": lambda: F.gumbel_softmax(torch.ones(50, device=LTC)),
    "kaiming": lambda: torch.nn.init.kaiming_uniform_(torch.empty(5, 10, device=LTC)),
}


@pytest.mark.parametrize("name", DRAWS | TAKES_NO_GENERATOR)
def test_seed_repeats(name):
    draw = (DRAWS | TAKES_NO_GENERATOR)[name]
    torch.manual_seed(7)
    first, second = draw(), draw()
    torch.manual_seed(7)
    assert torch.equal(draw(), first) and torch.equal(draw(), second)
    torch.manual_seed(8)
    assert not torch.equal(draw(), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", DRAWS)
def test_generator(name):
    draw = DRAWS[name]
    generator = torch.Generator(device="ltc").manual_seed(3)
    assert generator.device == LTC and generator.initial_seed() == 3
    first = draw(generator=generator)
    torch.manual_seed(0)  # of no consequence
    assert torch.equal(draw(generator=torch.Generator(device="ltc").manual_seed(3)), first)
    assert not torch.equal(draw(generator=generator), first)


@pytest.mark.parametrize("name", DRAWS)
def test_cpu_generator_is_an_error(name):
    with pytest.raises(RuntimeError, match="Expected a 'ltc' device type for generator but found 'cpu'"):
        DRAWS[name](generator=torch.Generator())


def test_seeds_of_the_device_module():
    torch.ltc.manual_seed(5)
    first = torch.rand(5, device=LTC)
    torch.ltc.manual_seed_all(5)
    assert torch.equal(torch.rand(5, device=LTC), first)
    assert torch.ltc.initial_seed() == 5
    torch.ltc.seed()
    assert not torch.equal(torch.rand(5, device=LTC), first)


def test_state_of_the_default_generator():
    torch.rand(10, device=LTC)
    state = torch.ltc.get_rng_state()
    first = torch.randn(10, device=LTC)
    torch.rand(3, device=LTC)
    torch.ltc.set_rng_state(state)
    assert torch.equal(torch.randn(10, device=LTC), first)
    with torch.random.fork_rng(devices=[0], device_type="ltc"):
        torch.rand(10, device=LTC)
    after = torch.rand(10, device=LTC)
    torch.ltc.set_rng_state(state)
    torch.randn(10, device=LTC)
    assert torch.equal(torch.rand(10, device=LTC), after)


def test_state_of_a_generator():
    generator = torch.Generator(device="ltc").manual_seed(1)
    torch.rand(10, device=LTC, generator=generator)
    state = generator.get_state()
    first = torch.rand(10, device=LTC, generator=generator)
    other = torch.Generator(device="ltc")
    other.set_state(state)
    assert torch.equal(torch.rand(10, device=LTC, generator=other), first)
    with pytest.raises((RuntimeError, TypeError)):
        other.set_state(torch.zeros(3, dtype=torch.uint8))


def test_cpu_numbers_are_untouched():
    torch.manual_seed(0)
    expected = torch.rand(5)
    torch.manual_seed(0)
    torch.rand(100, device=LTC)
    torch.randperm(5, device=LTC)
    assert torch.equal(torch.rand(5), expected)


def test_default_seed_is_the_same_in_every_process():
    program = "import torch, ltc; print(torch.rand(3, device='ltc').tolist())"
    assert output_of(program) == output_of(program)


def test_draws_do_not_repeat_in_a_step_or_across_steps():
    draws = []
    for _ in range(3):
        draws += [torch.rand(1000, device=LTC) for _ in range(2)]
        ltc.mark_step()
    values = torch.cat(draws).cpu()
    assert values.unique().numel() > 5_900  # 24 bits: a few meet


def test_every_plugin_draws_the_same(tmp_path):
    """Element for element, but for the last bit of a logarithm or a cosine: here the plugin's generator and kernels and the host's."""
    if not HOST_PLUGIN.exists():
        pytest.skip(f"{HOST_PLUGIN} is not built")
    program = """
    import sys, torch, torch.nn.functional as F, ltc
    torch.manual_seed(11)
    d, results = torch.device("ltc"), []
    for n in (1, 3, 4, 5, 1000):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            x = torch.empty(n, device=d, dtype=dtype)
            results += [x.clone().uniform_(), x.clone().uniform_(-1, 3), x.clone().normal_(), x.clone().exponential_(), x.clone().cauchy_(),
                        x.clone().log_normal_(), x.clone().geometric_(0.3), x.clone().bernoulli_(0.3), x.clone().random_(),
                        torch.bernoulli(x.fill_(0.4)), F.dropout(x.fill_(1)), F.rrelu(-x, training=True), torch.poisson(x.float())]
        results += [torch.randint(-5, 99, (n,), device=d), torch.randint(2**40, (n,), device=d), torch.randperm(n, device=d),
                    torch.empty(n, device=d, dtype=torch.int64).random_(-2**63, None), torch.multinomial(torch.ones(n, device=d), n),
                    torch.randn(n, device=d, dtype=torch.complex64), torch.normal(torch.zeros(n, device=d), 2.0)]
    torch.save([r.cpu() for r in results], {path!r})
    """
    drawn = []
    for backend in ("torchscript", str(HOST_PLUGIN)):
        path = str(tmp_path / "drawn.pt")
        output_of(program.replace("{path!r}", repr(path)), LTC_BACKEND=backend)
        drawn.append(torch.load(path))
    assert len(drawn[0]) == len(drawn[1]) == 5 * (3 * 13 + 7)
    for index, (one, other) in enumerate(zip(*drawn)):
        has_fractions = one.is_floating_point() or one.is_complex()
        rtol = 16 * torch.finfo(one.dtype).eps if has_fractions else 0
        torch.testing.assert_close(one, other, rtol=rtol, atol=1e-6, msg=lambda message: f"result {index}: {message}")  # noqa: B023


# ---- generators


def test_generator_as_pytorch_has_it():
    generator = torch.Generator(device="ltc")
    assert generator.initial_seed() == torch.Generator().initial_seed()
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.seed() == generator.initial_seed() != 2**64 - 1
    assert "ltc" in repr(generator.device)


def test_clone_of_a_generator():
    generator = torch.Generator(device="ltc").manual_seed(1)
    torch.rand(5, device=LTC, generator=generator)
    copy = generator.clone_state()
    first = torch.rand(10, device=LTC, generator=generator)
    assert torch.equal(torch.rand(10, device=LTC, generator=copy), first)
    assert torch.equal(copy.get_state(), generator.get_state()) and copy is not generator


@pytest.mark.parametrize("name", ["rand", "multinomial", "randperm"])
def test_state_counts_draws_that_the_cpu_makes_too(name):
    generator = torch.Generator(device="ltc").manual_seed(1)
    before = generator.get_state()
    first = DRAWS[name](generator=generator)
    assert not torch.equal(generator.get_state(), before)
    generator.set_state(before)
    assert torch.equal(DRAWS[name](generator=generator), first)


@pytest.mark.parametrize("arguments", [{"devices": [0]}, {"devices": ["ltc:0"]}, {}], ids=str)
def test_fork_rng(arguments):
    torch.manual_seed(3)
    expected = torch.rand(5, device=LTC), torch.rand(5)
    torch.manual_seed(3)
    with torch.random.fork_rng(device_type="ltc", **arguments):
        torch.manual_seed(9)
        torch.randn(7, device=LTC), torch.randn(7)
    assert torch.equal(torch.rand(5, device=LTC), expected[0]) and torch.equal(torch.rand(5), expected[1])
    with torch.random.fork_rng(device_type="ltc", enabled=False):
        inside = torch.rand(5, device=LTC)
    assert not torch.equal(torch.rand(5, device=LTC), inside)


def test_states_of_all_devices():
    states = torch.ltc.get_rng_state_all()
    first = torch.rand(5, device=LTC)
    torch.ltc.set_rng_state_all(states)
    assert torch.equal(torch.rand(5, device=LTC), first)
    torch.ltc.seed_all()
    assert not torch.equal(torch.rand(5, device=LTC), first)


def test_a_value_drawn_before_a_seed_is_not_changed_by_it():
    torch.manual_seed(1)
    first = torch.rand(5, device=LTC)  # recorded only
    torch.manual_seed(2)
    second = torch.rand(5, device=LTC)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(5, device=LTC), first) and not torch.equal(first, second)


# ---- dropout and checkpoints


def dropping(seed, checkpointed, reentrant=False, **options):
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5)) for _ in range(3)).to(LTC)
    x = torch.linspace(-1, 1, 64, device=LTC).view(4, 16).requires_grad_()
    torch.manual_seed(seed)
    y = x
    for layer in layers:
        y = checkpoint(layer, y, use_reentrant=reentrant, **options) if checkpointed else layer(y)
    y = F.dropout(y, 0.1)
    y.square().sum().backward()
    return [y.detach(), x.grad, *(p.grad for p in layers.parameters()), torch.rand(5, device=LTC)]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_draw_what_they_drew(reentrant):
    for plain, checkpointed in zip(dropping(4, False), dropping(4, True, reentrant)):
        assert torch.equal(plain, checkpointed)


def test_checkpoints_without_the_state_draw_anew():
    plain, checkpointed = dropping(4, False), dropping(4, True, preserve_rng_state=False)
    assert torch.equal(plain[0], checkpointed[0]) and not torch.equal(plain[1], checkpointed[1])


# ---- vmap


VMAPPED = {
    "rand": lambda x: torch.rand(8, device=LTC),
    "randn_like": torch.randn_like,
    "randint": lambda x: torch.randint(2**40, (8,), device=LTC),
    "randperm": lambda x: torch.randperm(8, device=LTC),
    "dropout": F.dropout,
}


@pytest.mark.parametrize("name", VMAPPED)
def test_vmap(name):
    x = torch.ones(6, 8, device=LTC)
    same = torch.func.vmap(VMAPPED[name], randomness="same")(x)
    assert (same == same[0]).all() and same.shape == (6, 8)
    different = torch.func.vmap(VMAPPED[name], randomness="different")(x)
    assert not (different == different[0]).all()
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.vmap(VMAPPED[name])(x)


# ---- in a program


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_randperm(n):
    x = torch.randperm(n, device=LTC)
    assert x.dtype == torch.int64 and x.sort().values.tolist() == list(range(n))


def test_dropout_has_one_mask_both_ways():
    x = torch.ones(N, device=LTC, requires_grad=True)
    y = F.dropout(x, 0.3)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_drawing_compiles_once(metrics):
    for k in range(20):
        if k % 5 == 0:
            torch.manual_seed(k)
        x = torch.rand(8, device=LTC) + torch.randn(8, device=LTC) + F.dropout(torch.ones(8, device=LTC))
        ltc.mark_step()
    ltc.wait_device_ops()
    assert metrics.counter_value("UncachedCompile") == 1
    assert metrics.counter_value("CachedCompile") == 19
    assert [name for name in metrics.counter_names() if name.startswith("aten::")] == []
    assert x.shape == (8,)
