"""The interface of any accelerator: ``torch.accelerator``, streams, events, memory statistics, pinned memory, properties."""

import threading
from pathlib import Path

import pytest
import torch

import ltc
from comparing import LTC, output_of

TWO_DEVICES = Path(ltc.__file__).parents[2] / "tests" / "plugins" / "libltc_test_two.so"

# An op that waits in the queue until a test lets it go.
gate = threading.Event()


@torch.library.custom_op("ltc_test::gate", mutates_args=(), device_types="cpu")
def pass_gate(x: torch.Tensor) -> torch.Tensor:
    assert gate.wait(timeout=60)
    return x.clone()


pass_gate.register_fake(torch.empty_like)


@pytest.fixture
def queue_held():
    """Holds the device's queue from `queue_held()` until the test opens the gate or ends."""
    gate.clear()
    ltc.sync()

    def hold():
        x = pass_gate(torch.ones(3, device=LTC))
        ltc.mark_step()
        return x

    yield hold
    gate.set()
    ltc.sync()


# ---- torch.accelerator


def test_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device("ltc")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.ltc.device_count() == 1
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(0)
    torch.accelerator.synchronize()
    with torch.accelerator.device_index(0):
        assert torch.ones(1, device="ltc").device == LTC
    assert torch.get_device_module("ltc") is torch.ltc


def test_accelerator_counts_devices_before_their_first_use():
    assert output_of("""
    import torch, ltc
    print(torch.accelerator.device_count(), torch.accelerator.memory_allocated(), torch.accelerator.is_available())
    """, LTC_BACKEND="torchscript;torchscript") == "2 0 True\n"


def test_capability_and_properties():
    assert {torch.float32, torch.int64, torch.bool} <= torch.accelerator.get_device_capability()["supported_dtypes"]
    assert torch.ltc.get_device_name() == torch.ltc.get_device_properties(LTC).name == "libtorch CPU"
    free, total = torch.ltc.mem_get_info()
    assert 0 < free <= total == torch.ltc.get_device_properties().total_memory


def test_device_of_another_type_is_refused():
    with pytest.raises(ValueError, match="expected a device of type ltc, not cpu"):
        torch.ltc.memory_allocated("cpu")
    with pytest.raises(RuntimeError, match="there is no device ltc:7"):
        torch.ltc.synchronize(7)


# ---- streams: a device has one queue, so it has one stream


def test_streams_are_one():
    one, other = torch.ltc.Stream(), torch.Stream(device="ltc:0")
    assert one == other == torch.ltc.current_stream() == torch.ltc.default_stream(LTC) == torch.accelerator.current_stream()
    assert isinstance(one, torch.ltc.Stream) and isinstance(one, torch.Stream) and one.device == LTC
    assert not isinstance(torch.Stream(device="cpu"), torch.ltc.Stream)


def test_program_with_a_side_stream():
    """The usual shape of a prefetcher."""
    side = torch.ltc.Stream()
    with torch.ltc.stream(side):
        x = torch.arange(4.0).pin_memory().to(LTC, non_blocking=True) * 2
    torch.ltc.current_stream().wait_stream(side)
    x.record_stream(torch.ltc.current_stream())
    with torch.ltc.stream(None), side:
        y = x + 1
    torch.accelerator.set_stream(side)
    torch.ltc.set_stream(side)
    assert y.tolist() == [1, 3, 5, 7]


def test_stream_of_another_device_is_refused():
    with pytest.raises(ValueError, match="expected a stream of device ltc"):
        torch.ltc.set_stream(torch.Stream(device="cpu"))


def test_asking_a_stream_does_not_wait(queue_held):
    x = queue_held()
    assert not torch.ltc.current_stream().query()
    gate.set()
    torch.ltc.current_stream().synchronize()
    assert torch.ltc.current_stream().query() and x.tolist() == [1, 1, 1]


# ---- events


def test_event_is_what_was_recorded_so_far(queue_held):
    before = queue_held()
    event = torch.Event("ltc")
    event.record()
    after = before + 1
    assert not event.query() and not event.query()
    gate.set()
    event.synchronize()
    assert event.query()
    assert after.tolist() == [2, 2, 2]


def test_asking_an_event_ends_the_step_and_recording_does_not(metrics):
    """So sharded training, which records one for each layer, is one program."""
    x = torch.ones(3, device=LTC) * 2
    event = torch.ltc.Event()
    event.record()
    torch.ltc.current_stream().wait_event(event)
    y = x + 1
    ltc.wait_device_ops()
    assert metrics.counter_value("ProgramRuns") == 0
    event.synchronize()
    assert metrics.counter_value("ProgramRuns") == 1
    assert event.query() and y.tolist() == [3, 3, 3]
    assert metrics.counter_value("ProgramRuns") == 1


def test_an_event_with_time_ends_the_step(metrics):
    x = torch.ones(3, device=LTC) * 2
    torch.ltc.Event(enable_timing=True).record()
    ltc.wait_device_ops()
    assert metrics.counter_value("ProgramRuns") == 1 and x.tolist() == [2, 2, 2]


def test_an_event_behind_a_step_that_cannot_be_compiled():
    event = torch.ltc.Event()
    x = torch.ones(3, device=LTC) * 2
    event.record()
    del x
    event.synchronize()  # nobody wants the step's values
    assert event.query()


def test_event_recorded_again_means_the_later_place(queue_held):
    event = torch.ltc.Event()
    event.record()
    event.synchronize()
    queue_held()
    event.record()
    assert not event.query()
    gate.set()
    event.synchronize()


def test_event_outlives_and_is_outlived(queue_held):
    queue_held()
    torch.ltc.Event().record()  # dropped while the queue has not come to it
    events = [torch.ltc.current_stream().record_event() for _ in range(3)]
    gate.set()
    for event in events:
        event.synchronize()
    assert all(event.query() for event in events)


def test_event_that_was_never_recorded():
    event = torch.ltc.Event()
    assert event.query()
    event.synchronize()
    event.wait()
    torch.ltc.current_stream().wait_event(event)
    assert isinstance(event, torch.ltc.Event) and isinstance(event, torch.Event)


def test_elapsed_time(queue_held):
    begin, end = torch.ltc.Event(enable_timing=True), torch.Event("ltc", enable_timing=True)
    begin.record()
    queue_held()
    end.record()
    with pytest.raises(RuntimeError, match="Both events must be completed"):
        begin.elapsed_time(end)
    gate.set()
    end.synchronize()
    assert begin.elapsed_time(end) > 0 > end.elapsed_time(begin)
    with pytest.raises(ValueError, match="enable_timing"):
        begin.elapsed_time(torch.ltc.Event())


def test_events_between_processes_are_refused():
    with pytest.raises(NotImplementedError, match="cannot be shared between processes"):
        torch.ltc.Event(interprocess=True)


def test_events_from_threads(queue_held):
    """One thread waits for what another records."""
    x = queue_held()
    event = torch.ltc.Event()
    event.record()
    seen = []
    waiter = threading.Thread(target=lambda: (event.synchronize(), seen.append(x.tolist())))
    waiter.start()
    assert not seen
    gate.set()
    waiter.join(timeout=60)
    assert seen == [[1, 1, 1]]


def test_failed_work_ends_an_event():
    """The error stays with the value; the event says that the work is over."""
    x = torch.nn.functional.embedding(torch.tensor([5], device=LTC), torch.randn(3, 2).to(LTC))
    event = torch.ltc.Event()
    event.record()
    event.synchronize()
    assert event.query()
    with pytest.raises(IndexError, match="index out of range"):
        x.cpu()


# ---- memory


@pytest.fixture
def held():
    """Bytes on the device beyond those when the test began."""
    ltc.sync()
    before = torch.ltc.memory_allocated()

    def bytes_held():
        ltc.sync()
        return torch.ltc.memory_allocated() - before

    return bytes_held


def test_memory_follows_the_values(held):
    x = torch.ones(1000, device=LTC)
    assert held() == 4000
    view = x[:10]
    copy = x.clone()  # shares the value
    assert held() == 4000
    copy += 1
    assert held() == 8000
    del x, copy
    assert held() == 4000
    del view
    assert held() == 0


def test_uploads_take_memory(held):
    small, large = torch.ones(100).to(LTC) + 0, torch.ones(1 << 20).to(LTC)
    assert held() >= 4 << 20
    del small, large
    assert held() == 0


def test_donated_memory_is_counted_once(held):
    x = torch.ones(1000, device=LTC)
    for _ in range(5):
        x += 1
        ltc.mark_step()
    assert held() == 4000 and x[0].item() == 6


def test_peak_and_sums(held):
    base = torch.ltc.memory_allocated()
    torch.ltc.reset_peak_memory_stats()
    torch.ltc.reset_accumulated_memory_stats()
    x = torch.ones(1000, device=LTC)
    assert held() == 4000
    del x
    assert held() == 0
    assert torch.ltc.max_memory_allocated() >= base + 4000
    stats = torch.ltc.memory_stats()
    assert stats["allocated_bytes.all.current"] == base
    assert stats["allocated_bytes.all.allocated"] == stats["allocated_bytes.all.freed"] >= 4000
    assert stats["allocation.all.allocated"] == stats["num_device_alloc"] >= 1
    torch.ltc.reset_peak_memory_stats()
    assert torch.ltc.max_memory_allocated() == base
    torch.ltc.reset_accumulated_memory_stats()
    assert torch.ltc.memory_stats()["allocated_bytes.all.freed"] == 0


def test_reserved_memory_is_the_plugins_figure(held):
    x = torch.ones(1000, device=LTC)
    assert held() == 4000
    assert torch.ltc.max_memory_reserved() >= torch.ltc.memory_reserved() >= 4000
    torch.ltc.empty_cache()
    assert x.sum().item() == 1000


def test_memory_of_two_devices():
    assert output_of("""
    import torch, ltc
    x = torch.ones(1000, device="ltc:1")
    ltc.sync()
    torch.accelerator.set_device_index(1)
    print(torch.ltc.memory_allocated(0), torch.ltc.memory_allocated("ltc:1"), torch.accelerator.memory_allocated())
    with torch.ltc.device(0):
        print(torch.accelerator.current_stream().device, torch.ltc.Stream(1).device)
    """, LTC_BACKEND="torchscript;torchscript") == "0 4000 4000\nltc:0 ltc:1\n"


@pytest.mark.skipif(not TWO_DEVICES.exists(), reason="no unit tests in this build")
def test_copies_from_one_device_to_another():
    """Whole tensors, views and other dtypes; not through the host, where the plugin copies itself."""
    assert output_of("""
    import torch, ltc
    x = torch.arange(12.0).view(3, 4)
    a = x.to("ltc:0").neg()
    b = a.to("ltc:1")
    view = a[1:, ::2].t().to("ltc:1")
    c = torch.zeros(3, 4, dtype=torch.float64, device="ltc:1").copy_(a[0])
    ltc.wait_device_ops()
    ltc.metrics.reset()
    d = a.to("ltc:1").to("ltc:0")
    ltc.wait_device_ops()
    print(ltc.metrics.counter_value("BytesBetweenDevices"), ltc.metrics.counter_value("BytesFromDevice"))
    print(b.device, torch.equal(b.cpu(), -x), torch.equal(view.cpu(), -x[1:, ::2].t()), torch.equal(d.cpu(), -x))
    print(c.dtype, torch.equal(c.cpu(), (-x[0]).double().expand(3, 4)))
    """, LTC_BACKEND=str(TWO_DEVICES)) == "96 0\nltc:1 True True True\ntorch.float64 True\n"


# ---- pinned memory


def test_pinned_memory():
    x = torch.arange(6.0)
    pinned = x.pin_memory()
    assert not x.is_pinned() and pinned.is_pinned() and pinned[2:].is_pinned()
    assert pinned.pin_memory().data_ptr() == pinned.data_ptr()
    assert torch.empty(3, pin_memory=True).is_pinned() and torch.empty(0, pin_memory=True).numel() == 0
    assert pinned.to(LTC, non_blocking=True).cpu().equal(x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.to(LTC).pin_memory()


def test_type_of_device():
    for device in (LTC, torch.device("ltc"), torch.ones(1, device=LTC).device):
        assert device.type == "ltc" and type(device.type) is str
    assert [torch.device(name).type for name in ("cpu", "meta", "cuda:1")] == ["cpu", "meta", "cuda"]
    attribute = torch.device.type
    assert attribute.__name__ == "type" and attribute.__objclass__ is torch.device
    with pytest.raises(TypeError):
        attribute.__get__(1)
    with pytest.raises(AttributeError):
        LTC.type = "cpu"


@pytest.mark.patch("data_parallel")
def test_data_parallel_runs_a_model_where_it_is():
    """PyTorch takes this device for one of CUDA's kind there, whose copies it does not have."""
    torch.manual_seed(0)
    model, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    expected = model(x)
    parallel = torch.nn.DataParallel(model)
    assert parallel.module is model and parallel(x).device.type == "cpu"
    torch.testing.assert_close(parallel(x), expected)
    parallel(x).sum().backward()
    on_device = torch.nn.DataParallel(torch.nn.Linear(4, 2).to("ltc"))
    on_device.load_state_dict(parallel.state_dict())
    for inputs in (x, x.to("ltc")):
        torch.testing.assert_close(on_device(inputs).cpu(), expected, rtol=1e-5, atol=1e-6)
    on_device(x).sum().backward()
    torch.testing.assert_close(on_device.module.weight.grad.cpu(), model.weight.grad, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.nn.DataParallel(model, device_ids=[0])(x), expected)
