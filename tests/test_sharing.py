"""Tensors on their way to somebody else: data loaders, other processes, numpy, DLPack."""

import pickle
from multiprocessing.reduction import ForkingPickler

import numpy
import pytest
import torch

import ltc  # noqa: F401
from comparing import LTC, assert_same, output_of, run_program

TO_SEND = "cannot be shared with another process: send tensor.cpu()"

LAZY_DATASET = """
import torch, ltc
from torch.utils.data import DataLoader, Dataset

class Lazy(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((2,), float(index), device="ltc")

def first(**options):
    try:
        return next(iter(DataLoader(Lazy(), **options)))
    except RuntimeError as error:
        return str(error)

if __name__ == "__main__":
"""


# ---- data loaders


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}, {"multiprocessing_context": "spawn"}], ids=str)
def test_workers_and_pinned_memory(options, tmp_path):
    program = f"""
import torch, ltc
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    x = torch.ones(3, device="ltc") + 1
    ltc.sync()
    loader = DataLoader(TensorDataset(torch.arange(40.0)), batch_size=4, num_workers=2, pin_memory=True, **{options!r})
    for _ in range(2):
        batches = [batch for (batch,) in loader]
        assert all(batch.is_pinned() for batch in batches)
        print(sum(batch.to("ltc", non_blocking=True).sum().item() for batch in batches), x.sum().item())
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    assert output_of(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')") == "780.0 6.0\n" * 2


def test_pin_memory_device():
    assert output_of("""
    import torch, ltc
    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=4, pin_memory=True, pin_memory_device="ltc")
    print([batch.is_pinned() for (batch,) in loader])
    """) == "[True, True]\n"


def test_lazy_tensors_without_workers():
    assert output_of(LAZY_DATASET + "    print(first(batch_size=2).tolist())") == "[[0.0, 0.0], [1.0, 1.0]]\n"


@pytest.mark.patch("multiprocessing")
@pytest.mark.parametrize("options", ["batch_size=2", "batch_size=None", "batch_size=2, pin_memory=True"])
def test_worker_that_returns_a_lazy_tensor(options):
    """An error that says what to do, in the process that waits for the batch."""
    assert TO_SEND in output_of(LAZY_DATASET + f"    print(first(num_workers=1, {options}))") or "pin_memory" in options


def test_worker_that_uses_the_device_of_its_parent():
    output = output_of(LAZY_DATASET + "    torch.ones(1, device='ltc').item()\n    print(first(num_workers=1))")
    assert "cannot use ltc in a forked process" in output and "spawn" in output


# ---- other processes


@pytest.mark.patch("multiprocessing")
def test_sharing_memory_is_refused():
    x = torch.ones(3, device=LTC)
    for share in (x.share_memory_, torch.nn.Linear(2, 2, device=LTC).share_memory, x.untyped_storage().share_memory_):
        with pytest.raises(RuntimeError, match=TO_SEND):
            share()
    assert not x.is_shared() and not torch.ones(3).is_shared()
    assert torch.ones(3).share_memory_().is_shared()


@pytest.mark.patch("multiprocessing")
def test_sending_is_refused():
    for value in (torch.ones(3, device=LTC), torch.nn.Parameter(torch.ones(3, device=LTC)), torch.ones(3, device=LTC).untyped_storage()):
        with pytest.raises(RuntimeError, match=TO_SEND):
            ForkingPickler.dumps(value)
    assert pickle.loads(ForkingPickler.dumps(torch.ones(3))).tolist() == [1, 1, 1]


@pytest.mark.patch("multiprocessing")
def test_queue_tells_the_receiver():
    """A queue pickles in a thread, whose errors nobody sees: the receiver must not wait for ever."""
    assert output_of(f"""
    import torch, torch.multiprocessing as mp, ltc
    queue = mp.get_context("fork").Queue()
    queue.put(torch.ones(3, device="ltc"))
    try:
        queue.get(timeout=60)
    except RuntimeError as error:
        print({TO_SEND!r} in str(error))
    queue.put(torch.ones(3))
    print(queue.get(timeout=60).tolist())
    """) == "True\n[1.0, 1.0, 1.0]\n"


@pytest.mark.patch("multiprocessing")
def test_argument_of_a_spawned_process():
    run = run_program("""
    import torch, torch.multiprocessing as mp, ltc
    if __name__ == "__main__":
        mp.get_context("spawn").Process(target=print, args=(torch.ones(3, device="ltc"),)).start()
    """)
    assert run.returncode != 0 and TO_SEND in run.stderr


@pytest.mark.patch("pickle")
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_protocols(protocol):
    x = torch.arange(6.0).view(2, 3)
    parameter = torch.nn.Parameter(x.to(LTC).t())
    loaded, again = pickle.loads(pickle.dumps((parameter, parameter), protocol=protocol))
    assert loaded is again and isinstance(loaded, torch.nn.Parameter)
    assert_same(loaded.detach(), x.t())


# ---- numpy and DLPack


def test_numpy():
    x = torch.arange(3.0, device=LTC)
    for convert in (x.numpy, lambda: numpy.asarray(x), lambda: numpy.add(x, 1)):
        with pytest.raises(TypeError, match=r"can't convert ltc:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
            convert()
    assert x.numpy(force=True).tolist() == x.cpu().numpy().tolist() == [0, 1, 2]
    assert_same(torch.from_numpy(numpy.ones(3)).to(LTC), torch.ones(3, dtype=torch.float64))


@pytest.mark.patch("dlpack")
def test_dlpack_does_not_give_the_address_away():
    x = torch.arange(3.0, device=LTC)
    exports = (torch.utils.dlpack.to_dlpack, torch.to_dlpack, torch.from_dlpack, numpy.from_dlpack, lambda x: x.__dlpack__())
    for export in exports:
        with pytest.raises(BufferError, match="has no address to share through DLPack: export tensor.cpu()"):
            export(x)
    with pytest.raises(BufferError, match="export tensor.cpu"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


@pytest.mark.patch("dlpack")
def test_dlpack_copies_where_it_is_asked_to():
    x = torch.arange(3.0, device=LTC)
    assert numpy.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0))).tolist() == [0, 1, 2]
    assert_same(torch.from_dlpack(numpy.arange(3.0), device="ltc"), torch.arange(3.0, dtype=torch.float64))


def test_dlpack_of_the_cpu_is_as_before():
    x = torch.arange(3.0)
    for y in (torch.from_dlpack(x), torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)), torch.from_numpy(numpy.from_dlpack(x))):
        assert y.data_ptr() == x.data_ptr()


def test_cuda_array_interface_is_absent():
    with pytest.raises(AttributeError):
        torch.ones(3, device=LTC).__cuda_array_interface__
