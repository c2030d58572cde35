"""The sides that are timed: eager PyTorch, device ltc in its forms, and the other ways to run the same script."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Side:
    """One process of its own, so that sides that exclude each other can take turns.

    compile  arguments of `torch.compile`, through which the workload's model or function is sent; None: as it is
    env      of the process, beyond what all have
    marks    whether the program ends its steps with mark_step()
    """

    name: str
    about: str
    device: str
    compile: dict | None = None
    env: dict = field(default_factory=dict)
    marks: bool = True


SIDES = [
    Side("eager", "PyTorch on the CPU, op by op: what all others are divided by unless --against names another", "cpu"),
    Side("ltc", "device ltc", "ltc"),
    Side("ltc_unmarked", "device ltc, without mark_step(): the results of a block's steps are kept to its end", "ltc", marks=False),
    Side("pjrt", "device ltc on the plugin pjrt: XLA", "ltc", env={"LTC_BACKEND": "pjrt"}),
    Side("pjrt_interim", "the same; the host computes steps while their program is compiled", "ltc",
         env={"LTC_BACKEND": "pjrt", "LTC_BACKGROUND_COMPILE": "1"}),
    Side("ltc_unpatched", "device ltc, PyTorch left as it is", "ltc", env={"LTC_PATCHES": "none"}),
    Side("ltc_compile", 'device ltc, the model through torch.compile(backend="ltc")', "ltc", {"backend": "ltc"}),
    Side("inductor", "the CPU, the model through torch.compile", "cpu", {}),
    Side("intree_lazy", "PyTorch's own lazy tensors on TorchScript", "lazy"),
    Side("noise", "eager once more: what a ratio is worth on this machine", "cpu"),
    Side("cuda", "PyTorch on the GPU, op by op", "cuda"),
    Side("cuda_compile", "the GPU, the model through torch.compile", "cuda", {}),
    Side("cuda_graphs", "the same in CUDA graphs", "cuda", {"mode": "reduce-overhead"}),
]


class Device:
    """How a side ends a step and waits, inside its process."""

    def __init__(self, side):
        import torch

        self.name = side.device
        self.compile = (lambda f: f) if side.compile is None else (lambda f: torch.compile(f, **side.compile))
        self.mark_step = self.wait = lambda: None
        self._metrics = None
        self.marks = side.marks
        if side.device == "ltc":
            import ltc

            self.mark_step, self.wait, self._metrics = ltc.mark_step, ltc.wait_device_ops, ltc.metrics
            if not side.marks:
                self.mark_step, self.wait = (lambda: None), ltc.sync
        elif side.device == "lazy":
            import torch._lazy
            import torch._lazy.ts_backend

            torch._lazy.ts_backend.init()
            self.mark_step, self.wait = torch._lazy.mark_step, torch._lazy.wait_device_ops
        elif side.device == "cuda":
            # The memory of a graph's results is used again in the next step.
            self.mark_step, self.wait = torch.compiler.cudagraph_mark_step_begin, torch.cuda.synchronize

    def disturbances(self):
        """Compiles and fallbacks so far, by counter name; a steady state adds none."""
        if not self._metrics:
            return {}
        names = [name for name in self._metrics.counter_names() if name == "UncachedCompile" or name.startswith("aten::")]
        return {name: self._metrics.counter_value(name) for name in names}
