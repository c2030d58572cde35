"""Files: ltc.save and ltc.load, torch.save and torch.load, safetensors; what a bad file and a full disk do."""

import errno
import os

import pytest
import torch
from torch.utils._pytree import tree_leaves

import ltc
from comparing import LTC, assert_same, output_of


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 2))


def state(device=LTC):
    """All that a checkpoint holds: tensors of several types and geometries, one storage twice, plain values."""
    torch.manual_seed(2)
    base = torch.randn(3, 4).to(device)
    return {
        "model": dict(model().to(device).state_dict()),
        "base": base,
        "view": base.t()[1:],
        "empty": torch.zeros(0, 3).to(device),
        "types": [torch.tensor([1, 0, 3]).to(dtype).to(device) for dtype in (torch.bool, torch.uint8, torch.bfloat16, torch.int64, torch.complex64)],
        "step": 7,
        "name": "run",
    }


# ---- round trips


@pytest.mark.parametrize("write", [ltc.save, torch.save], ids=["ltc.save", "torch.save"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_to_the_same_device(tmp_path, write, weights_only):
    path = tmp_path / "checkpoint.pt"
    write(state(), path)
    for loaded in (ltc.load(path, weights_only=weights_only), torch.load(path, weights_only=weights_only)):
        assert_same(loaded, state("cpu"))
        loaded["base"].zero_()
        assert loaded["view"].abs().sum().item() == 0  # one storage, as saved


@pytest.mark.parametrize("weights_only", [True, False])
def test_to_the_cpu_and_from_it(tmp_path, weights_only):
    path = tmp_path / "checkpoint.pt"
    ltc.save(state(), path)
    for on_cpu in (torch.load(path, map_location="cpu", weights_only=weights_only), ltc.load(path, "cpu", weights_only=weights_only)):
        for loaded, made in zip(tree_leaves(on_cpu), tree_leaves(state("cpu")), strict=True):
            assert loaded == made if not isinstance(made, torch.Tensor) else loaded.equal(made) and loaded.stride() == made.stride()
    ltc.save(state("cpu"), path)
    assert_same(ltc.load(str(path), "ltc", weights_only=weights_only), state("cpu"))
    assert_same(torch.load(path, map_location="ltc", weights_only=weights_only), state("cpu"))
    assert torch.load(path, weights_only=weights_only)["base"].device.type == "cpu"


def test_mapped_file(tmp_path):
    path = tmp_path / "checkpoint.pt"
    ltc.save(state(), path)
    assert_same(torch.load(path, map_location="ltc", mmap=True), state("cpu"))


def test_whole_module_and_subclasses(tmp_path):
    path = tmp_path / "module.pt"
    module = model().to(LTC)
    ltc.save(module, path)
    with pytest.raises(Exception, match="weights_only"):
        ltc.load(path)
    loaded = ltc.load(path, weights_only=False)
    assert isinstance(loaded[0].weight, torch.nn.Parameter) and loaded[0].weight.requires_grad
    x = torch.randn(4, 6, device=LTC)
    assert_same(loaded(x), module.cpu()(x.cpu()))


def test_checkpoint_of_a_device_that_is_not_there(tmp_path):
    path = str(tmp_path / "checkpoint.pt")
    program = f"import torch, ltc; torch.save(torch.ones(3, device='ltc:1'), {path!r})"
    output_of(program, LTC_BACKEND="torchscript;torchscript")
    with pytest.raises(RuntimeError, match="ltc:?1|device_count|index 1"):
        torch.load(path)
    assert ltc.load(path).tolist() == [1, 1, 1]  # to the device that it is told


def test_loaded_model_compiles_what_a_made_one_does(tmp_path, metrics):
    """Storages come as bytes; their first reader gives them a type, after which nothing is converted."""
    path = tmp_path / "checkpoint.pt"
    ltc.save(model().eval().to(LTC), path)
    x = torch.randn(4, 6).to(LTC)
    loaded = ltc.load(path, weights_only=False)
    for _ in range(2):
        loaded(x)
        ltc.mark_step()
    loaded(x)
    assert "u8" not in ltc.graph()
    assert_same([p.detach() for p in loaded.parameters()], [p.detach() for p in model().parameters()])


def test_bytes_stay_bytes():
    storage = torch.UntypedStorage(12, device=LTC)
    storage.copy_(torch.arange(3, dtype=torch.int32).untyped_storage())
    ints, raw = torch.empty(0, dtype=torch.int32, device=LTC).set_(storage, 0, (3,)), torch.empty(0, dtype=torch.uint8, device=LTC).set_(storage)
    halves = torch.empty(0, dtype=torch.int16, device=LTC).set_(storage)
    assert (ints + 1).tolist() == [1, 2, 3]
    assert (raw + 0).tolist() == [0] * 4 + [1, 0, 0, 0] + [2, 0, 0, 0]
    raw[0] = 9
    assert (ints + 0).tolist() == [9, 1, 2] and (halves + 0).tolist() == [9, 0, 1, 0, 2, 0]


# ---- memory


# Blocks that are freed go back to the system at once: without it, glibc keeps some for later and the figures say less.
EXACT_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1000000", "LTC_BACKEND": "torchscript"}


def test_large_checkpoint_is_streamed(tmp_path):
    """Beside the model itself, which on this device is in the host's memory too, saving and loading take a few tensors."""
    assert output_of(f"""
    import resource, torch, ltc
    path, count, size = {str(tmp_path / "large.pt")!r}, 20, 16 << 20

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / size

    tensors = {{str(k): torch.full((size // 4,), float(k), device="ltc") for k in range(count)}}
    ltc.sync()
    begin = peak()
    ltc.save(tensors, path)
    assert peak() - begin < 4, peak() - begin
    del tensors
    loaded = ltc.load(path)
    ltc.sync()
    assert peak() - begin < 6, peak() - begin
    print([value[3].item() for value in loaded.values()] == [float(k) for k in range(count)])
    """, **EXACT_MALLOC) == "True\n"


def test_uploads_are_bounded():
    """Copies that wait to be sent, while the queue is busy with something else, do not add up to a second model."""
    assert output_of("""
    import resource, threading, torch, ltc

    gate = threading.Event()

    @torch.library.custom_op("ltc_test::gate", mutates_args=(), device_types="cpu")
    def pass_gate(x: torch.Tensor) -> torch.Tensor:
        gate.wait()
        return x.clone()

    pass_gate.register_fake(torch.empty_like)
    held = pass_gate(torch.ones(3, device="ltc"))
    ltc.mark_step()
    size, count = 32 << 20, 20
    x = torch.ones(size // 4)
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    copies = []
    uploads = threading.Thread(target=lambda: [copies.append(x.to("ltc")) for _ in range(count)])
    uploads.start()
    uploads.join(timeout=3)  # long enough for all, were they not held up
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - begin) / size
    gate.set()
    uploads.join()
    ltc.sync()
    print(len(copies), grown < 12, held.tolist())
    """, **EXACT_MALLOC) == "20 True [1.0, 1.0, 1.0]\n"


# ---- what goes wrong


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "checkpoint.pt"
    ltc.save({"x": torch.ones(3, device=LTC)}, path)
    return path


def only_file(path):
    return os.listdir(path.parent) == [path.name]


def test_failing_save_keeps_the_previous_file(saved):
    with pytest.raises(Exception, match="pickle"):
        ltc.save({"x": torch.ones(3, device=LTC), "y": lambda: None}, saved)
    assert ltc.load(saved)["x"].tolist() == [1, 1, 1] and only_file(saved)


def test_full_disk_keeps_the_previous_file(saved):
    """A limit on the size of files stands for a full disk."""
    assert output_of(f"""
    import resource, torch, ltc
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    try:
        ltc.save(torch.ones(1 << 20, device="ltc"), {str(saved)!r})
    except OSError as error:
        print(error.errno, error.filename.endswith("checkpoint.pt"), "cannot save the checkpoint" in str(error))
    """) == f"{errno.EFBIG} True True\n"
    assert ltc.load(saved)["x"].tolist() == [1, 1, 1] and only_file(saved)


def test_error_of_the_device_keeps_the_previous_file(saved):
    bad = torch.nn.functional.embedding(torch.tensor([5], device=LTC), torch.randn(3, 2).to(LTC))
    ltc.mark_step()
    with pytest.raises(Exception, match="index out of range"):
        ltc.save(bad, saved)
    assert ltc.load(saved)["x"].tolist() == [1, 1, 1] and only_file(saved)


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ltc.save({}, tmp_path / "nowhere" / "checkpoint.pt")
    with pytest.raises(FileNotFoundError, match="nothing.pt"):
        ltc.load(tmp_path / "nothing.pt")


@pytest.mark.parametrize("share", [0.2, 0.9, 0.999])
def test_truncated_file(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="checkpoint.pt': the file is truncated or damaged"):
        ltc.load(saved)


@pytest.mark.parametrize(("content", "reason"), [(b"", "the file is empty"), (b"weights: 3\n", "not a checkpoint"), (bytes(4096), "not a checkpoint")])
def test_file_that_is_no_checkpoint(tmp_path, content, reason):
    path = tmp_path / "weights.pt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"weights.pt': {reason}"):
        ltc.load(path)


def test_saved_files_have_ordinary_rights(saved):
    assert os.stat(saved).st_mode & 0o777 == 0o666 & ~umask()


def test_the_process_umask_is_left_alone(tmp_path, monkeypatch):
    """It is every thread's: a file that another one makes meanwhile would be open to all."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
    ltc.save({"x": torch.ones(2, device="ltc")}, tmp_path / "x.pt")
    assert ltc.load(tmp_path / "x.pt")["x"].tolist() == [1, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt"]


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- safetensors


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "model.safetensors"
    module = model()
    safetensors.save_model(model().to(LTC), str(path))
    safetensors.load_model(module, str(path))
    assert all(p.device.type == "cpu" for p in module.parameters())
    on_device = model().to(LTC)
    with torch.no_grad():
        on_device[0].weight.zero_()
    safetensors.load_model(on_device, str(path))
    assert_same(dict(on_device.state_dict()), dict(model().state_dict()))
    assert_same({k: v.to(LTC) for k, v in safetensors.load_file(str(path)).items()}, dict(model().state_dict()))
