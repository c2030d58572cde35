"""Objects of tensors go as PyTorch lets them go, and what is kept of them for the next ones is as new."""

import gc
import threading
import weakref

import pytest
import torch

import ltc

LTC = "ltc"


@pytest.fixture
def x():
    tensor = torch.arange(6.0).reshape(2, 3).to(LTC)
    ltc.sync(wait=True)
    return tensor


class Noted(torch.Tensor):
    """Says what it held when it was released."""

    seen = []

    def __del__(self):
        Noted.seen.append(self.tolist())


def test_weak_references_and_attributes_go(x):
    y, seen = x + 1, []
    y.note = held = Noted.__new__(Noted)
    watched, note = weakref.ref(y, seen.append), weakref.ref(held)
    del y, held
    assert seen == [watched] and watched() is None and note() is None


def test_finalizers_see_the_tensor(x):
    Noted.seen.clear()
    y = (x + 1).as_subclass(Noted)
    del y
    assert Noted.seen == [[[1, 2, 3], [4, 5, 6]]]


def test_cycles_are_collected(x):
    y = x + 1
    y.me = y
    watched = weakref.ref(y)
    del y
    gc.collect()
    assert watched() is None


def test_hooks_go(x):
    def hook(grad):
        return grad * 2

    watched = weakref.ref(hook)
    leaf = x.clone().requires_grad_()
    y = leaf * 3
    y.register_hook(hook)
    y.retain_grad()
    loss = y.sum()
    del y, hook
    loss.backward()
    assert leaf.grad.tolist() == [[6] * 3] * 2
    del loss
    gc.collect()
    assert watched() is None


def test_gradients_outlive_the_objects(x):
    leaf = x.clone().requires_grad_()
    y = leaf
    for _ in range(5):
        y = y * 2 + leaf  # each y is released when the next is there
    y.sum().backward()
    assert leaf.grad.tolist() == [[63] * 3] * 2


def test_graph_goes_with_the_last_object(x):
    class Held(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.held = token
            return value * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    token = Noted.__new__(Noted)
    watched = weakref.ref(token)
    y = Held.apply(x.clone().requires_grad_()) + 1
    del token
    gc.collect()
    assert watched() is not None
    del y
    assert watched() is None


def test_memory_goes(x, metrics):
    y = x + 1
    gc.collect()
    ltc.sync(wait=True)
    before = torch.ltc.memory_allocated()
    z = torch.zeros(1000, device=LTC) + 1
    part = z[:10]
    ltc.sync(wait=True)
    assert torch.ltc.memory_allocated() >= before + 4000
    del z
    assert part.tolist() == [1] * 10
    del part
    assert torch.ltc.memory_allocated() == before
    assert y.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_what_is_released_is_not_computed(x, metrics):
    y = x + 1
    z = x + 2
    del z
    ltc.sync(wait=True)
    assert y.tolist() == [[1, 2, 3], [4, 5, 6]]
    text = [x + 3, x + 4]
    del text[0]
    assert ltc.graph().count("aten::add") == 1, ltc.graph()


def test_counters_begin_at_zero(x):
    for _ in range(3):
        y = x + 1
        assert y._version == 0
        y.add_(1)
        y.mul_(2)
        assert y._version == 2
        view = y[0]
        del y
        assert view._version == 2
        view.add_(1)
        assert view._version == 3 and view.tolist() == [5, 7, 9]
        del view


def test_saved_tensors_keep_their_counters(x):
    leaf = x.clone().requires_grad_()
    y = leaf.exp()
    saved_version = y._version
    loss = (y * y).sum()
    y.detach().add_(1)
    assert y._version == saved_version + 1
    del y
    others = [x + i for i in range(50)]  # none of them has the counter that the node still reads
    assert [other._version for other in others] == [0] * 50
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_keys_are_those_of_other_constructors(x):
    cpu = torch.ones(2)

    def names(tensor):
        return str(torch._C._dispatch_keys(tensor)).replace("PrivateUse1", "CPU")

    assert names(x + 1) == names(cpu + 1)
    with torch.inference_mode():
        y, z = x + 1, cpu + 1
        assert names(y) == names(z) and y.is_inference()
    assert not (x + 1).is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors"):
        y._version


def test_threads_release_what_others_record(x):
    ready, errors = threading.Barrier(3), []

    def work(i):
        try:
            ready.wait()
            for step in range(300):
                kept = [x + (i + k) for k in range(5)]
                leaf = kept[0].clone().requires_grad_()
                (leaf * 2).sum().backward()
                if step % 50 == i:
                    ltc.sync()
                shared[(i + 1) % 3] = kept  # somebody else's list goes here
                if step % 100 == 99:
                    assert leaf.grad.tolist() == [[2] * 3] * 2
                    assert kept[4].tolist() == (torch.arange(6.0).reshape(2, 3) + i + 4).tolist()
        except Exception as error:  # noqa: BLE001  of another thread
            errors.append(error)

    shared = [None] * 3
    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
