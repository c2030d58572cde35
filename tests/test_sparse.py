"""Sparse tensors: what of them is recorded, what the CPU runs, all beside the CPU."""

import copy
import io
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ltc
from comparing import LTC, output_of

LAYOUTS = {
    "coo": lambda matrix: matrix,
    "coalesced": lambda matrix: matrix.coalesce(),
    "csr": lambda matrix: matrix.coalesce().to_sparse_csr(),
    "csc": lambda matrix: matrix.coalesce().to_sparse_csc(),
}


def coo(rows=6, columns=5, count=11):
    """A matrix with elements that share their place."""
    indices = torch.stack([torch.randint(rows, (count,)), torch.randint(columns, (count,))])
    return torch.sparse_coo_tensor(indices, torch.randn(count), (rows, columns), check_invariants=True)


def assert_same(lazy, cpu):
    """Layout, structure where it is one, and values."""
    assert lazy.device.type == "ltc" and cpu.device.type == "cpu"
    assert (lazy.layout, lazy.dtype, lazy.shape) == (cpu.layout, cpu.dtype, cpu.shape)
    lazy, cpu = lazy.detach().cpu(), cpu.detach()
    if cpu.layout == torch.sparse_coo:
        assert lazy.is_coalesced() == cpu.is_coalesced()
    if cpu.layout == torch.strided or (cpu.layout == torch.sparse_coo and not cpu.is_coalesced()):
        lazy, cpu = (x.to_dense() if x.layout != torch.strided else x for x in (lazy, cpu))
    torch.testing.assert_close(lazy, cpu)


def both(function, *operands):
    """Results and gradients of the function, on the device and on the CPU."""

    def run(device):
        tensors = [x.detach().to(device).requires_grad_(x.requires_grad) for x in operands]
        result = function(*tensors)
        if any(x.requires_grad for x in tensors):
            dense = result if result.layout == torch.strided else result.to_dense()
            dense.square().sum().backward()
        return [result, *(x.grad for x in tensors if x.requires_grad)]

    for lazy, cpu in zip(run(LTC), run("cpu"), strict=True):
        assert_same(lazy, cpu)


def fallbacks():
    return {one["op"].removeprefix("aten::"): one["count"] for one in ltc.metrics.fallbacks()}


def matrices(layout, **sizes):
    return LAYOUTS[layout](coo(**sizes))


# ---- products: recorded

PRODUCTS = {
    "sparse.mm": lambda a, x: torch.sparse.mm(a, x),
    "matmul": lambda a, x: a @ x,
    "mm": lambda a, x: torch.mm(a, x),
    "spmm": lambda a, x: torch.spmm(a, x),
    "mv": lambda a, x: torch.mv(a, x[:, 0]),
    "matmul_vector": lambda a, x: a @ x[:, 0],
    "addmm": lambda a, x: torch.addmm(torch.ones(6, 3, device=x.device), a, x, beta=0.5, alpha=2),
    "sparse.addmm": lambda a, x: torch.sparse.addmm(torch.ones(6, 3, device=x.device), a, x),
    "addmm_row": lambda a, x: torch.addmm(torch.arange(3.0, device=x.device), a, x),
    "transposed": lambda a, x: a.t() @ torch.cat([x, x[:1]]),
    "dense_first": lambda a, x: torch.cat([x, x[:1]]).t() @ a,
    "linear": lambda a, x: F.linear(a, x.t(), torch.ones(3, device=x.device)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_recorded(name, layout, metrics):
    both(PRODUCTS[name], matrices(layout), torch.randn(5, 3, requires_grad=True))
    assert fallbacks() == {}


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.complex64])
def test_products_of_other_types(dtype):
    both(lambda a, x: a @ x, (coo() * 8).to(dtype), (torch.randn(5, 3) * 8).to(dtype))


def test_sums_of_half_types_are_rounded_once():
    a, x = coo(count=40).bfloat16(), torch.randn(5, 3).bfloat16()
    torch.testing.assert_close((a.to(LTC) @ x.to(LTC)).cpu(), (a.double() @ x.double()).bfloat16(), rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("layout", ["coo", "coalesced", "csr"])
def test_gradient_of_a_sparse_matrix(layout):
    both(torch.sparse.mm, matrices(layout).requires_grad_(), torch.randn(5, 3, requires_grad=True))


def test_matrices_without_elements():
    empty = torch.sparse_coo_tensor((6, 5), check_invariants=True)
    x = torch.randn(5, 3, requires_grad=True)
    both(torch.sparse.mm, empty, x)
    both(torch.sparse.mm, empty.to_sparse_csr(), x)
    both(torch.sparse.mm, torch.sparse_coo_tensor((0, 5)), x)


def test_index_of_32_bits():
    crow, col = torch.tensor([0, 1, 1, 3], dtype=torch.int32), torch.tensor([1, 0, 4], dtype=torch.int32)
    both(torch.sparse.mm, torch.sparse_csr_tensor(crow, col, torch.randn(3), (3, 5)), torch.randn(5, 2, requires_grad=True))


def test_learned_weights_of_edges(metrics):
    indices = torch.tensor([[0, 1, 1, 3], [2, 0, 0, 1]])

    def attend(values, x):
        return torch.sparse_coo_tensor(indices.to(x.device), values, (4, 5)) @ x

    both(attend, torch.randn(4, requires_grad=True), torch.randn(5, 3, requires_grad=True))
    assert fallbacks() == {}


def test_an_index_that_names_no_row():
    matrix = torch.sparse_coo_tensor(torch.tensor([[0, 9], [0, 1]]), torch.ones(2), (3, 5)).to(LTC)
    with pytest.raises(RuntimeError, match=r"test_sparse.py:\d+: aten::index_add: index 9 is out of bounds"):
        (matrix @ torch.ones(5, 2, device=LTC)).cpu()


# ---- other ops

RECORDED = {
    "to_dense": lambda a: a.to_dense(),
    "times_number": lambda a: a * 2.5,
    "number_times": lambda a: 2.5 * a,
    "times_tensor": lambda a: a * torch.tensor(2.5, device=a.device),
    "negated": lambda a: -a,
    "clone": lambda a: a.clone().mul_(3),
    "transposed": lambda a: a.t(),
    "sum": lambda a: a.sum(),
    "double": lambda a: a.double(),
    "detached": lambda a: a.detach(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_ops(name, layout, metrics):
    if (name, layout) == ("clone", "coalesced"):
        pytest.skip("the CPU forgets that the result is coalesced")
    both(RECORDED[name], matrices(layout))
    assert fallbacks() == {}


OF_COO = {
    "dense_plus": lambda a: torch.ones(6, 5, device=a.device) + a,
    "dense_minus": lambda a: torch.ones(6, 5, device=a.device) - a,
    "added_in_place": lambda a: torch.ones(6, 5, device=a.device).add_(a, alpha=-0.1),
    "added_to_columns": lambda a: torch.ones(5, 6, device=a.device).t().add_(a),
    "mask": lambda a: torch.arange(30.0, device=a.device).view(6, 5).sparse_mask(a),
    "T": lambda a: a.T,
}


@pytest.mark.parametrize("layout", ["coo", "coalesced"])
@pytest.mark.parametrize("name", OF_COO)
def test_recorded_ops_of_coo(name, layout, metrics):
    both(OF_COO[name], matrices(layout))
    assert fallbacks() == {}


def test_sums_of_sparse_tensors(metrics):
    one, other = coo(), coo()
    both(torch.add, one, other)
    both(lambda a, b: a - 2 * b, one, other.coalesce())
    assert fallbacks() == {}
    both(torch.add, one.coalesce(), other.coalesce())  # coalesced, as the CPU's
    assert fallbacks() == {"add.Tensor": 1}


def test_functions_of_elements(metrics):
    for function in (torch.relu, torch.abs, torch.sin, torch.tanh, lambda a: a.abs().sqrt(), torch.round):
        both(function, coo().coalesce())
        both(function, matrices("csr"))
    assert fallbacks() == {}
    both(torch.relu, coo())  # elements of one place are added first
    assert fallbacks() == {"relu": 1}


ON_THE_HOST = {
    "coalesce": (lambda a: a.coalesce(), {"_coalesce": 1}),
    "softmax": (lambda a: torch.sparse.softmax(a, 1), {"_sparse_softmax": 1}),
    "sparse_sum": (lambda a: torch.sparse.sum(a, 1), {"_coalesce": 1}),
    "product_of_two": (lambda a: torch.sparse.mm(a, torch.eye(5, device=a.device).to_sparse()), {"_sparse_sparse_matmul": 1, "_to_sparse": 1}),
    "to_csr": (lambda a: a.to_sparse_csr(), {"_to_sparse_csr": 1}),
    "index_select": (lambda a: a.index_select(0, torch.tensor([0, 2], device=a.device)), {"index_select": 1}),
    "cat": (lambda a: torch.cat([a, a]), {"cat": 1}),
    "smm": (lambda a: torch.smm(a, torch.ones(5, 2, device=a.device)), {"sspaddmm.out": 1}),
    "pow": (lambda a: a.pow(2), {"pow.Tensor_Scalar": 1}),
}


@pytest.mark.parametrize("name", ON_THE_HOST)
def test_host_steps_are_counted(name, metrics):
    function, counts = ON_THE_HOST[name]
    both(function, coo())
    assert fallbacks() == counts
    assert metrics.counter_value("FallbackBytes") > 0


def test_host_step_with_gradients():
    both(lambda a: torch.sparse.softmax(a, 1), coo().coalesce().requires_grad_())
    both(torch.sparse.mm, coo().coalesce().requires_grad_(), coo(5, 4).coalesce().requires_grad_())


@pytest.mark.parametrize("name", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_dense_tensors_made_sparse(name, metrics):
    both(lambda x: getattr(x, name)(), torch.randn(4, 4).relu())
    assert len(fallbacks()) == 1


def test_block_layouts_are_run_by_the_cpu():
    both(lambda x: x.to_sparse_bsr((2, 2)) @ x, torch.randn(4, 4).relu())


def test_a_policy_forbids_host_steps():
    message = output_of(
        """
        import torch, ltc
        matrix = torch.sparse_coo_tensor(torch.tensor([[1, 1], [0, 0]]), torch.ones(2), (2, 2)).to("ltc")
        print((matrix @ torch.ones(2, 1, device="ltc")).tolist())
        try:
            matrix.coalesce()
        except RuntimeError as error:
            print(error)
        """,
        LTC_FALLBACK="error",
    )
    assert message.startswith("[[0.0], [2.0]]")
    assert "aten::_coalesce" in message and "its operands are sparse; LTC_FALLBACK=error" in message


# ---- making, moving, keeping


def test_made_on_the_device(metrics):
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([1.0, 2, 3])
    made = torch.sparse_coo_tensor(indices, values, (3, 4), device=LTC)
    assert_same(made, torch.sparse_coo_tensor(indices, values, (3, 4)))
    assert_same(torch.sparse_coo_tensor(indices.to(LTC), values.to(LTC)), torch.sparse_coo_tensor(indices, values))
    assert_same(torch.zeros(2, 3, layout=torch.sparse_coo, device=LTC), torch.zeros(2, 3, layout=torch.sparse_coo))
    crow = torch.tensor([0, 1, 3])
    csr = torch.sparse_csr_tensor(crow, indices[1], values, (2, 4), device=LTC)
    assert_same(csr, torch.sparse_csr_tensor(crow, indices[1], values, (2, 4)))
    assert (made._nnz(), made.sparse_dim(), made.dense_dim(), made.is_coalesced()) == (3, 2, 0, False)
    assert csr.crow_indices().device.type == csr.col_indices().device.type == csr.values().device.type == "ltc"
    assert fallbacks() == {}


def test_indices_and_values():
    coalesced = coo().to(LTC).coalesce()
    assert coalesced.indices().device.type == coalesced.values().device.type == "ltc"
    with pytest.raises(RuntimeError, match="uncoalesced"):
        coo().to(LTC).indices()


def test_rows_of_vectors():
    both(lambda v: torch.sparse_coo_tensor(torch.tensor([[0, 2, 0]], device=v.device), v, (4, 2)).to_dense(), torch.randn(3, 2))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(layout):
    matrix = matrices(layout)
    assert_same(matrix.to(LTC).to("cpu").to(LTC), matrix)
    assert_same(copy.deepcopy(matrix.to(LTC)), matrix)
    assert_same(pickle.loads(pickle.dumps(matrix.to(LTC))), matrix)


@pytest.mark.patch("printing")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_printing(layout, metrics):
    matrix = matrices(layout)
    text = str(matrix.to(LTC))
    assert "device='ltc:0'" in text
    assert "".join(text.replace(" device='ltc:0',", "").split()) == "".join(str(matrix).split())
    assert fallbacks() == {}


def test_buffers_and_parameters_of_a_module():
    def module():
        result = nn.Module()
        result.register_buffer("coo", coo())
        result.register_buffer("csr", matrices("csr"))
        result.weight = nn.Parameter(coo().coalesce())
        return result

    torch.manual_seed(1)
    kept = module()
    torch.manual_seed(1)
    moved = module().to(LTC)
    file = io.BytesIO()
    torch.save(moved.state_dict(), file)
    for location in (None, "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert {tensor.device.type for tensor in loaded.values()} == {location or "ltc"}
    other = module().to(LTC)
    other.csr = loaded["csr"].to(LTC)  # PyTorch copies into no CSR tensor of another number of elements
    other.load_state_dict(loaded)
    for name in ("coo", "csr", "weight"):
        assert_same(getattr(moved, name), getattr(kept, name))
        assert_same(getattr(other, name), getattr(kept, name))
    assert_same(moved.double().float().cpu().to(LTC).csr, kept.csr)


def test_results_share_no_memory():
    """Sparse tensors are written through their parts: those of a result are its own."""

    def write(a):
        for change in (lambda b: b.t_(), lambda b: b.mul_(3), lambda b: b.zero_()):
            for result in (a * 2, -a, a.t(), a.clone(), a.coalesce() * 2, torch.ones(6, 5, device=a.device).sparse_mask(a)):
                change(result)
        return a

    both(write, coo())


def test_parts_as_arguments_of_compiled_functions():
    matrix, x = coo(), torch.randn(5, 2)

    @ltc.jit
    def multiply(indices, values, x):
        return torch.sparse_coo_tensor(indices, values, (6, 5)) @ x

    for _ in range(2):
        result = multiply(matrix._indices().to(LTC), matrix._values().to(LTC), x.to(LTC))
        torch.testing.assert_close(result.cpu(), matrix @ x)


def test_a_second_device():
    text = output_of(
        """
        import torch, ltc
        matrix = torch.sparse_coo_tensor(torch.tensor([[1, 1], [0, 0]]), torch.ones(2), (2, 2)).to("ltc:1")
        product = matrix.t() @ torch.ones(2, 1, device="ltc:1")
        coalesced = (matrix.coalesce() * 2).to_sparse_csr() @ torch.ones(2, 1, device="ltc:1")
        print(matrix.device, matrix.coalesce().values().device, product.device, coalesced.device, product.tolist(), coalesced.tolist())
        """,
        LTC_BACKEND="torchscript;torchscript",
    )
    assert text.strip() == "ltc:1 ltc:1 ltc:1 ltc:1 [[2.0], [0.0]] [[0.0], [4.0]]"


# ---- refusals


def test_tensors_elsewhere_are_refused():
    for function in (lambda: coo() @ torch.ones(5, 2, device=LTC), lambda: coo().to(LTC) @ torch.ones(5, 2), lambda: coo().to(LTC) + coo()):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            function()


def test_what_no_device_computes_is_refused():
    with pytest.raises(NotImplementedError, match=r"aten::exp takes no tensor of layout Sparse.*to_dense\(\)"):
        coo().to(LTC).exp()
    with pytest.raises(NotImplementedError, match=r"aten::convolution.*takes no tensor of layout Sparse.*to_dense\(\)"):
        F.conv2d(coo().to(LTC)[None], torch.ones(1, 1, 2, 2, device=LTC))
    with pytest.raises(NotImplementedError, match="ltc.jit take no tensor of layout Sparse"):
        ltc.jit(lambda a, x: a @ x)(coo().to(LTC), torch.ones(5, 2, device=LTC))
