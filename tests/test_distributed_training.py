"""PyTorch's wrappers for training in several processes: they work on the device as on the CPU."""

import pytest

from ranks import run_ranks

WRAPPERS = """
    from torch import nn
    torch.set_default_dtype(torch.float64)  # in float32 the device's loops round otherwise than ATen's

    def net():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 2))

    def batch(step, device):
        return torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step + RANK)).to(device)

    def train(model, optimizer, device, steps=4, forward=None):
        losses = []
        for step in range(steps):
            optimizer.zero_grad()
            loss = (forward or (lambda x, _: model(x)))(batch(step, device), step).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return [loss.cpu() for loss in losses]

    def ddp(device, **options):
        return nn.parallel.DistributedDataParallel(net().to(device), **options)

    def adamw(model):
        return torch.optim.AdamW(model.parameters(), lr=0.01)

    def plain(device):
        model = ddp(device)
        return train(model, adamw(model), device)

    def static_graph(device):
        model = ddp(device, static_graph=True, gradient_as_bucket_view=True)
        return train(model, adamw(model), device)

    def no_sync(device):
        model = ddp(device)
        def forward(x, step):
            with model.no_sync():
                model(x + 1).square().mean().backward()
            return model(x)
        return train(model, adamw(model), device, forward=forward)

    def unused_parameters(device):
        class Either(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.other = net(), nn.Linear(8, 2)
            def forward(self, x, step):
                return self.one(x) if step % 2 else self.other(x)
        torch.manual_seed(1)
        model = nn.parallel.DistributedDataParallel(Either().to(device), find_unused_parameters=True)
        return train(model, adamw(model), device, forward=model)

    def join(device):
        model = ddp(device)
        with model.join():
            train(model, adamw(model), device, steps=3 + RANK)
        return [parameter.detach().cpu() for parameter in model.parameters()]

    def zero_redundancy(device):
        from torch.distributed.optim import ZeroRedundancyOptimizer
        model = ddp(device)
        return train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01), device)

    def fully_sharded(device):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        model, mesh = net().to(device), init_device_mesh(device, (RANKS,))
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return train(model, adamw(model), device)

    def tensor_parallel(device):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        model = parallelize_module(net().to(device), init_device_mesh(device, (RANKS,)), plan)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)  # not all parameters are distributed
        return train(model, optimizer, device, forward=lambda x, step: model(torch.ones_like(x) * step))

    def functional(device):
        import torch.distributed._functional_collectives as functional
        x, group = batch(0, device), dist.group.WORLD
        results = [functional.all_reduce(x, "sum", group), functional.all_gather_tensor(x, 0, group),
                   functional.reduce_scatter_tensor(x, "sum", 0, group), functional.broadcast(x, 1, group)]
        return [result.cpu() for result in results]

    def pipeline(device):
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
        layers = net().to(device)
        part = layers[:2] if RANK == 0 else layers[2:]
        stage = PipelineStage(part, RANK, 2, torch.device(device))
        schedule, losses = ScheduleGPipe(stage, 2, loss_fn=lambda out, target: (out - target).square().mean()), []
        if RANK == 0:
            schedule.step(torch.ones(4, 8).to(device))
        else:
            schedule.step(target=torch.zeros(4, 2).to(device), losses=losses)
        return [loss.detach().cpu() for loss in losses] + [parameter.grad.cpu() for parameter in part.parameters()]
"""

SAME_BITS = """
    expected, results = CASE("cpu"), CASE("ltc")
    assert len(expected) == len(results) > 0
    for one, other in zip(expected, results):
        assert torch.equal(one, other), (one - other).abs().max()
    print(json.dumps(ltc.metrics.fallbacks()))
"""

CASES = ["plain", "static_graph", "no_sync", "unused_parameters", "join", "zero_redundancy", "fully_sharded", "tensor_parallel", "functional", "pipeline"]


@pytest.mark.parametrize("case", CASES)
def test_pytorchs_wrappers_train_to_the_same_bits(case):
    assert run_ranks(WRAPPERS + SAME_BITS.replace("CASE", case)) == [[], []]


@pytest.mark.parametrize("case", ["plain", "fully_sharded", "tensor_parallel", "functional"])
def test_four_ranks_train_to_the_same_bits(case):
    assert run_ranks(WRAPPERS + SAME_BITS.replace("CASE", case), ranks=4) == [[]] * 4


MODEL_OF_LIST = """
    from comparing import to_device
    from models import ROWS
    row = next(row for row in ROWS if row.name == {name!r})

    def data_parallel(model):
        return nn.parallel.DistributedDataParallel(model)

    def sharded(model):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        return fully_shard(model, mesh=init_device_mesh(next(model.parameters()).device.type, (RANKS,)))

    def model_of_list(device):
        torch.manual_seed(0)
        model = {wrapper}(row.make(0.0).double().to(device))
        torch.manual_seed(RANK)
        data = {{key: value.double() if value.is_floating_point() else value for key, value in row.batch().items()}}
        data = to_device(data, device)
        optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.01), []
        for _ in range(3):
            optimizer.zero_grad()
            loss = row.run(model, data)[1]
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().cpu())
        return losses
"""


@pytest.mark.parametrize("wrapper", ["data_parallel", "sharded"])
@pytest.mark.parametrize("name", ["GPT-2", "torchvision ResNet-18"])
def test_models_of_the_list_train_to_the_same_bits(name, wrapper):
    program = WRAPPERS + MODEL_OF_LIST.format(name=name, wrapper=wrapper) + SAME_BITS.replace("CASE", "model_of_list")
    assert run_ranks(program) == [[], []]


def test_sharded_training_is_one_program_a_step():
    """It records events around each gather, and takes streams for them."""
    program = """
        from torch import nn
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(4)]).to("ltc")
        for layer in [*model, model]:
            fully_shard(layer, mesh=init_device_mesh("ltc", (RANKS,)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        x = torch.randn(4, 8).to("ltc")
        for step in range(8):
            if step == 4:
                before = ltc.metrics.counter_value("ProgramRuns")
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            ltc.sync()
        print(ltc.metrics.counter_value("ProgramRuns") - before)
    """
    assert run_ranks(program) == [4, 4]


def test_a_pipeline_over_two_plugins():
    """One rank's layers run on torchscript, the other's on opencl."""
    program = WRAPPERS + """
    torch.set_default_dtype(torch.float32)
    expected, results = pipeline("cpu"), pipeline("ltc")
    assert len(expected) == len(results) > 0
    assert all(torch.allclose(one, other, rtol=1e-4, atol=1e-6) for one, other in zip(expected, results))
    print(json.dumps([torch.ltc.get_device_name(), ltc.metrics.fallbacks()]))
    """
    first, second = run_ranks(program, each=[{"LTC_BACKEND": name} for name in ("torchscript", "opencl")])
    assert first == ["libtorch CPU", []]
    assert second[0] != first[0] and second[1] == []


def test_a_checkpoint_of_four_ranks_is_loaded_by_two(tmp_path):
    program = """
        import torch.distributed.checkpoint as dcp
        from torch import nn
        from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        def trained(steps):
            torch.manual_seed(0 if steps else 1)
            model = fully_shard(nn.Linear(8, 8).double().to("ltc"), mesh=init_device_mesh("ltc", (RANKS,)))
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            for step in range(steps):
                model(torch.full((2, 8), step + 1.0, dtype=torch.double).to("ltc")).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            return model, optimizer

        def as_lists(model, optimizer):
            whole = [*model.state_dict().values(), *(value for state in optimizer.state.values() for value in state.values())]
            return [(value.full_tensor() if hasattr(value, "full_tensor") else value).cpu().tolist() for value in whole]

        model, optimizer = trained(steps=3 if RANKS == 4 else 0)
        states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
        if RANKS == 4:
            dcp.save(states, checkpoint_id=FOLDER)
        else:
            dcp.load(states, checkpoint_id=FOLDER)
            set_state_dict(model, optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
        print(json.dumps(as_lists(model, optimizer)), flush=True)
        dist.destroy_process_group()
    """.replace("FOLDER", repr(str(tmp_path)))
    saved, loaded = run_ranks(program, ranks=4), run_ranks(program, ranks=2)
    assert len(saved[0]) == 8 and loaded == saved[:2]


def test_batch_norm_of_all_ranks():
    """Eager PyTorch has it for devices only, so the whole batch on one CPU is the measure."""
    results = run_ranks("""
        from torch import nn
        torch.set_default_dtype(torch.float64)
        def net():
            torch.manual_seed(0)
            return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
        x = torch.randn(4 * RANKS, 6, generator=torch.Generator().manual_seed(2))
        whole = net()
        whole(x).square().mean().backward()
        model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net().to("ltc")))
        model(x[4 * RANK : 4 * RANK + 4].to("ltc")).square().mean().backward()
        pairs = zip(whole.parameters(), model.module.parameters())
        torch.testing.assert_close(model.module[1].running_var.cpu(), whole[1].running_var)
        print(json.dumps(max((one.grad - other.grad.cpu()).abs().max().item() for one, other in pairs)))
    """)
    assert max(results) < 1e-12


def test_optimizers_of_torchscript_are_still_compiled():
    """torch.distributed.optim compiles PyTorch's functional optimizers with TorchScript."""
    from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: F401
