"""Who is timed beside whom: eager PyTorch, device ltc in its forms, and the other ways to run the same script."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Side:
    """One process of its own, so that sides that exclude each other can take turns.

    backend  of `torch.compile`, through which the workload's model or function is sent; None: as it is
    env      of the process, beyond what all have
    """

    name: str
    about: str
    device: str
    backend: str | None = None
    env: dict = field(default_factory=dict)


SIDES = [
    Side("eager", "PyTorch on the CPU, op by op: what all others are divided by", "cpu"),
    Side("ltc", "device ltc", "ltc"),
    Side("ltc_fast", "device ltc, operators recorded without PyTorch's dispatcher", "ltc", env={"LTC_FAST_OPERATORS": "1"}),
    Side("ltc_compile", 'device ltc, the model through torch.compile(backend="ltc")', "ltc", backend="ltc"),
    Side("inductor", "the CPU, the model through torch.compile", "cpu", backend="inductor"),
    Side("intree_lazy", "PyTorch's own lazy tensors on TorchScript", "lazy"),
    Side("noise", "eager once more: what a ratio is worth on this machine", "cpu"),
]


class Device:
    """How a side ends a step and waits, inside its process."""

    def __init__(self, side):
        import torch

        self.name = side.device
        self.compile = (lambda f: torch.compile(f, backend=side.backend)) if side.backend else (lambda f: f)
        self.mark_step = self.wait = lambda: None
        self._metrics = None
        if side.device == "ltc":
            import ltc

            self.mark_step, self.wait, self._metrics = ltc.mark_step, ltc.wait_device_ops, ltc.metrics
        elif side.device == "lazy":
            import torch._lazy
            import torch._lazy.ts_backend

            torch._lazy.ts_backend.init()
            self.mark_step, self.wait = torch._lazy.mark_step, torch._lazy.wait_device_ops

    def disturbances(self):
        """Compiles and fallbacks so far, by counter name; a steady state adds none."""
        if not self._metrics:
            return {}
        names = [name for name in self._metrics.counter_names() if name == "UncachedCompile" or name.startswith("aten::")]
        return {name: self._metrics.counter_value(name) for name in names}
