"""libltc_runtime_lean.so: the executables of an archive, by its C functions, without a compiler."""

import ctypes

import numpy as np
import pytest
import torch

import ltc
from test_cli import command
from test_export import BUILD, net

LIBRARY = BUILD / "python/ltc/libltc_runtime_lean.so"
SIZES = 2, 4
F32, RUN_EXECUTABLES = 9, 1  # LTC_F32, LTCR_RUN_EXECUTABLES


class Options(ctypes.Structure):  # ltcr_model_options
    _fields_ = [("struct_size", ctypes.c_size_t), ("backend", ctypes.c_char_p), ("flags", ctypes.c_uint32), ("instances", ctypes.c_uint32)]


class Tensor(ctypes.Structure):  # ltcr_tensor
    _fields_ = [("dtype", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("sizes", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t)]  # fmt: skip


def tensor_of(array):
    assert array.dtype == np.float32 and array.flags.c_contiguous
    return Tensor(F32, array.ndim, (ctypes.c_int64 * array.ndim)(*array.shape), array.ctypes.data, array.nbytes)


class Failed(Exception):
    pass


@pytest.fixture(scope="module")
def lean():
    library = ctypes.CDLL(str(LIBRARY))
    library.ltcr_error_message.restype = ctypes.c_char_p
    library.ltcr_error_message.argtypes = library.ltcr_error_destroy.argtypes = [ctypes.c_void_p]
    for name in ("model_load", "session_create", "session_run"):
        getattr(library, f"ltcr_{name}").restype = ctypes.c_void_p
    for name in ("model_destroy", "session_destroy"):
        getattr(library, f"ltcr_{name}").argtypes = [ctypes.c_void_p]
    return library


def run(library, archive, backend, inputs, result_sizes, flags=RUN_EXECUTABLES):
    """The result of the archive's only function."""

    def check(error):
        if error:
            text = library.ltcr_error_message(error).decode()
            library.ltcr_error_destroy(error)
            raise Failed(text)

    model, session, result = ctypes.c_void_p(), ctypes.c_void_p(), np.empty(result_sizes, np.float32)
    options = Options(ctypes.sizeof(Options), backend.encode(), flags, 1)
    try:
        check(library.ltcr_model_load(str(archive).encode(), ctypes.byref(options), ctypes.byref(model)))
        check(library.ltcr_session_create(model, ctypes.byref(session)))
        tensors = (Tensor * len(inputs))(*map(tensor_of, inputs))
        check(library.ltcr_session_run(session, ctypes.c_size_t(0), tensors, ctypes.c_size_t(len(inputs)),
                                       ctypes.byref(tensor_of(result)), ctypes.c_size_t(1)))  # fmt: skip
    finally:
        library.ltcr_session_destroy(session)
        library.ltcr_model_destroy(model)
    return result


def exported(path, **options):
    model = net().eval()
    with torch.no_grad():
        ltc.export(model, (torch.ones(SIZES),), **options).save(path)
    return model


@pytest.mark.parametrize("backend", ["minimal", "torchscript", "opencl"])
def test_it_runs_what_was_compiled_before(tmp_path, lean, backend):
    if not (BUILD / f"python/ltc/plugins/libltc_{backend}.so").exists():
        pytest.skip(f"plugin {backend} was not built")
    model, archive = exported(tmp_path / "net.ltc"), tmp_path / "net.ltc"
    with pytest.raises(Failed, match="function forward: it is to be compiled, since the archive has no executable that loads for: ltc .*; plugin"):
        run(lean, archive, backend, [np.ones(SIZES, np.float32)], (2, 3))
    assert command("compile", archive, "--backend", backend).returncode == 0
    for value in (1, -2):
        x = np.full(SIZES, value, np.float32)
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(run(lean, archive, backend, [x], (2, 3))), model.cpu()(torch.from_numpy(x)))


def test_it_takes_executables_only_of_those_who_trust_them(tmp_path, lean):
    exported(tmp_path / "net.ltc")
    assert command("compile", tmp_path / "net.ltc", "--backend", "minimal").returncode == 0
    with pytest.raises(Failed, match="since run_executables is not set"):
        run(lean, tmp_path / "net.ltc", "minimal", [np.ones(SIZES, np.float32)], (2, 3), flags=0)


def test_it_refuses_other_sizes_than_the_archive_has(tmp_path, lean):
    exported(tmp_path / "net.ltc", dynamic_shapes=[{0: "rows"}])
    assert command("compile", tmp_path / "net.ltc", "--backend", "minimal").returncode == 0
    assert run(lean, tmp_path / "net.ltc", "minimal", [np.ones(SIZES, np.float32)], (2, 3)).shape == (2, 3)
    with pytest.raises(Failed, match="since executables are for the sizes that the archive has, and libltc_runtime_lean.so has no compiler"):
        run(lean, tmp_path / "net.ltc", "minimal", [np.ones((7, 4), np.float32)], (7, 3))
