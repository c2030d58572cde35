"""The changes of `import ltc` to PyTorch for the whole process: chosen by LTC_PATCHES, and taken back without a trace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from comparing import output_of, run_program

from ltc import _patches

NAMES = [patch.name for patch in _patches.TABLE]
ROOT = Path(__file__).parents[1]
needs_patches = pytest.mark.skipif(bool(_patches.unknown_version()), reason=_patches.unknown_version())


def active(**environment):
    return output_of("import torch, ltc; print(*ltc._patches.active())", **environment).split()


@needs_patches
def test_the_environment_chooses():
    assert active(LTC_PATCHES=None, LTC_EAGER=None) == NAMES
    assert active(LTC_PATCHES="all") == NAMES
    assert active(LTC_PATCHES="none") == []
    assert active(LTC_PATCHES="operators,dealloc") == ["dealloc", "operators"]
    assert active(LTC_PATCHES="all", LTC_EAGER="1") == []


def test_an_unknown_name_is_refused():
    program = run_program("import torch, ltc", LTC_PATCHES="operators,dealoc")
    assert program.returncode != 0
    assert "LTC_PATCHES is 'operators,dealoc', and there is no patch 'dealoc'; it may be all, none, or names" in program.stderr


@needs_patches
def test_one_line_of_the_log_tells_which_are_active():
    lines = run_program("import torch, ltc", LTC_PATCHES="dlpack,tensor_to", LTC_LOG="info").stderr.splitlines()
    assert [line.partition("patches: ")[2] for line in lines if "patches: " in line] == ["tensor_to, dlpack"]


@pytest.mark.parametrize("change", ["_patches.PYTORCH = ('1.0',)", "_patches.PYTHON = ('2.7',)"])
def test_an_unknown_version_gets_none(change):
    program = run_program(f"""
        import torch, ltc
        from ltc import _patches
        _patches.uninstall()
        {change}
        _patches.install(_patches.wanted())
        print(_patches.active(), (torch.ones(2, device="ltc") + 1).tolist())
    """, LTC_LOG="info", LTC_PATCHES="all")
    assert program.stdout == "() [2.0, 2.0]\n"
    assert re.search(r"patches: none, since (PyTorch|Python) [\d.]+ is not one of (1\.0|2\.7)", program.stderr)


@needs_patches
def test_a_function_that_looks_otherwise_is_left_alone():
    program = run_program("""
        import torch
        def _tensor_str(self, indent, colour): return "theirs"
        torch._tensor_str._tensor_str = _tensor_str
        import ltc
        print("printing" in ltc._patches.active(), torch._tensor_str._tensor_str is _tensor_str)
    """, LTC_LOG="info", LTC_PATCHES="all")
    assert program.stdout == "False True\n"
    assert "not installed: printing (torch._tensor_str._tensor_str takes (self indent colour), not (self indent))" in program.stderr


# All that a patch may change, as a program sees it.
SNAPSHOT = """
    import ctypes, sys, torch, torch.utils.dlpack
    from multiprocessing import reduction
    from torch.optim import _functional, adagrad
    parallel = sys.modules["torch.nn.parallel.data_parallel"]

    def words(object, count):  # the object's memory: slots of types, vectorcalls
        return list((ctypes.c_size_t * count).from_address(id(object)))[1:]  # without the count of references

    def snapshot():
        storage = torch.UntypedStorage
        objects = [
            torch.autograd.Variable._execution_engine, torch._TorchCompileInductorWrapper.__call__, torch._tensor_str._tensor_str,
            torch.nn.modules.linear_cross_entropy_options.LinearCrossEntropyOptions._adjust, _functional.sparse_adam,
            adagrad._single_tensor_adagrad, parallel._get_available_device_type, parallel.DataParallel.forward, torch.Tensor.__dlpack__,
            torch.Tensor.__dlpack_device__, torch.accelerator.memory._snapshot, torch._C._to_dlpack, torch.to_dlpack, torch.utils.dlpack.to_dlpack,
            *(getattr(storage, name) for name in ("_write_file", "_set_from_file", "share_memory_", "is_shared", "_byteswap")),
            reduction.ForkingPickler._extra_reducers[storage], *sys.meta_path]
        methods = [getattr(torch.Tensor, name) for name in "__add__ __radd__ __sub__ __mul__ __rmul__ __truediv__ to".split()]
        ops = torch.ops.profiler
        natives = [(torch._C.TensorBase, 24), (torch.device.type, 6), (ops._record_function_enter_new._op, 7),
                   (ops._record_function_exit._RecordFunction._op, 7), *((method, 7) for method in methods)]
        return [*map(id, objects), *(words(*native) for native in natives), sorted(vars(storage))]
"""


def test_patches_are_taken_back_without_a_trace():
    assert output_of(SNAPSHOT + """
    before = snapshot()
    import ltc
    from ltc import _patches
    names = _patches.active()
    for name in names:
        patched = snapshot()
        _patches.uninstall(name)
        assert snapshot() != patched, name
        assert name not in _patches.active()
    assert snapshot()[:-1] == before[:-1]
    assert set(snapshot()[-1]) == set(before[-1])
    _patches.install(list(names))
    assert _patches.active() == names
    a = torch.ones(2, device="ltc", requires_grad=True)
    (a * 3).sum().backward()
    print(a.grad.tolist())
    """, LTC_PATCHES="all") == "[3.0, 3.0]\n"


@needs_patches
@pytest.mark.parametrize("name, patch", [
    ("printing", "torch._tensor_str._tensor_str = lambda self, indent: 'theirs'"),
    ("byteswap", "torch.UntypedStorage._byteswap = lambda self, *args: None"),
    ("libraries", "import safetensors; safetensors.safe_open = None"),
])
def test_one_that_was_patched_again_stays(name, patch):
    assert output_of(f"""
        import torch, ltc
        from ltc import _patches
        {patch}
        try:
            _patches.uninstall("{name}")
        except _patches.Unexpected as error:
            print(error, "{name}" in _patches.active())
    """, LTC_PATCHES="all") == "another library has patched the same place since True\n"


CPU_ONLY = """
    import io, pickle, torch, warnings
    warnings.simplefilter("ignore")
    {imports}
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((model(torch.randn(5, 4)) * 2 + 1 - 0.5) / 3).square().mean()
        loss.backward()
        optimizer.step()
    table = torch.nn.Embedding(6, 2, sparse=True)
    sparse = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1, 1, 4])).sum().backward()
    sparse.step()
    print(loss, table.weight, torch.device("cpu").type, pickle.loads(pickle.dumps(loss.detach())))
    print(torch.utils.dlpack.from_dlpack(torch.arange(3.)), torch.arange(3).to("cpu"), torch.nn.DataParallel(model)(torch.ones(1, 4)))
    storage = torch.arange(3, dtype=torch.int16).untyped_storage()
    storage.byteswap(torch.int16)
    print(storage.tolist(), torch.ones(3).share_memory_().is_shared())
    print(torch.compile(model, backend="eager")(torch.ones(1, 4)))
"""


@needs_patches
def test_programs_of_the_cpu_are_unchanged():
    alone = output_of(CPU_ONLY.format(imports=""), LTC_BACKEND=None)
    assert alone and output_of(CPU_ONLY.format(imports="import ltc"), LTC_PATCHES="all") == alone


# A quick part of all tests. All of them pass so; those of patches that are missing are skipped.
WITHOUT_PATCHES = ["test_autocast.py", "test_labels.py", "test_release.py", "test_send.py", "test_storages.py", "test_tensors.py",
                   "test_views.py"]


def test_other_tests_pass_without_patches():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *WITHOUT_PATCHES]
    run = subprocess.run(command, cwd=ROOT / "tests", env={**os.environ, "LTC_PATCHES": "none"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
    passed, skipped = (int(re.search(rf"(\d+) {word}", run.stdout)[1]) for word in ("passed", "skipped"))
    assert passed > 5 * skipped > 0


def test_the_document_lists_the_table():
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (ROOT / "docs/patches.md").read_text(), re.M)
    assert rows == [(patch.name, patch.purpose) for patch in _patches.TABLE]
