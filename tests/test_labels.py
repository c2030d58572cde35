"""record_function, the labels of a profiler: what it gives, and that everybody who is to see a label still does."""

import concurrent.futures

import pytest
import torch
from torch.autograd.profiler import record_function
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from comparing import LTC, output_of

OPS = torch.ops.profiler
ENTER, EXIT = OPS._record_function_enter_new, OPS._record_function_exit._RecordFunction


def trained(device):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 3, device=device)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def labels(seen):
    return [event.name for event in seen.events() if event.name in ("one", "two") or event.name.startswith("Optimizer")]


@pytest.mark.patch("record_function")
def test_what_a_label_holds():
    with record_function("one") as label:
        record = label.record
        assert isinstance(record, torch.ScriptObject) and "_RecordFunction" in str(record._type())
    assert EXIT(record) is None
    assert ENTER("two", None) is record  # as long as nobody sees them
    assert isinstance(ENTER("one"), torch.ScriptObject) and isinstance(ENTER("é", "args"), torch.ScriptObject)


@pytest.mark.parametrize("device", ["cpu", LTC], ids=str)
def test_profiler_sees_labels(device):
    model, optimizer = trained(device)
    for _ in range(2):  # those between profiles are not seen
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            with record_function("one"), record_function("two", "args"):
                optimizer.step()
            optimizer.zero_grad()
        assert labels(seen) == ["one", "two", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"]
        with record_function("one"):
            optimizer.step()


def test_profiler_begins_and_ends_within_labels():
    outer = record_function("one")
    outer.__enter__()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        inner = record_function("two")
        inner.__enter__()
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert "one" not in labels(seen)
    with profile(activities=[ProfilerActivity.CPU]) as seen, record_function("two"):
        pass
    assert labels(seen) == ["two"]


def test_modes_see_labels():
    seen = []

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            seen.append(str(op))
            return op(*args, **(kwargs or {}))

    expected = ["profiler._record_function_enter_new", "profiler._record_function_exit._RecordFunction"]
    with Function(), record_function("one"):
        pass
    assert [name for name in seen if name.startswith("profiler")] == expected
    seen.clear()
    with Dispatch(), record_function("one"):
        pass
    assert seen == ["profiler._record_function_enter_new.default", expected[1]]


def test_futures():
    future = torch.futures.Future()
    with record_function("one") as label:
        seen = label._call_end_callbacks_on_future(future)
    future.set_result(3)
    assert seen.wait() == 3


def test_threads():
    def step(i):
        with record_function(f"label {i}") as label:
            return isinstance(label.record, torch.ScriptObject)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(step, range(500)))


@pytest.mark.parametrize("args", [(), (1,), ("one", 1), ("one", None, 2), ("\ud800", None), (None, None)], ids=repr)
def test_errors_are_pytorchs(args):
    with pytest.raises((RuntimeError, UnicodeError)):
        ENTER(*args)
    with pytest.raises(RuntimeError):
        EXIT(*args)


def test_names_are_the_objects_they_were():
    assert output_of("""
    import torch
    enter = torch.ops.profiler._record_function_enter_new
    leave = torch.ops.profiler._record_function_exit._RecordFunction
    before = [enter, leave, enter._op, leave._op]
    hashes = [hash(one) for one in before]
    import ltc
    print(before == [enter, leave, enter._op, leave._op] and hashes == [hash(one) for one in before])
    """) == "True\n"


def test_import_under_a_profiler():
    assert output_of("""
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        import ltc
        with torch.profiler.record_function("one"):
            torch.ones(2, device="ltc") + 1
    with torch.profiler.record_function("two"):
        pass
    print([event.name for event in seen.events() if event.name in ("one", "two")])
    """) == "['one']\n"
