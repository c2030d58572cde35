"""Random chains of views, in-place writes through them, and arithmetic, forward and backward.

Each line of a program is tried on the CPU while the program is made, so sizes are known and a line that PyTorch refuses is left out.
No line writes where PyTorch leaves the result open: to elements that share a place, or from memory that overlaps the target.
All numbers are small and whole: results are compared exactly.

In a sliding program the slices of a step lie one element behind those of the step before, up to SLIDES of them.
"""

import math
import random

import torch

from program import Program, Run

MOST_ELEMENTS, MOST_DIMS, SLIDES = 1500, 6, 3


def generate(seed):
    return _Maker(random.Random(seed)).program(seed)


def factors(pick, count, most=4):
    """Random sizes with that product."""
    sizes = []
    while count > 1 and len(sizes) < most - 1:
        divisor = pick.choice([d for d in range(1, count + 1) if count % d == 0])
        sizes.append(divisor)
        count //= divisor
    sizes.append(count)
    pick.shuffle(sizes)
    return sizes


def some_index(pick, x):
    """x[...] with numbers, lists of them, slices with steps, None and an ellipsis."""
    parts = []
    for size in x.shape[:pick.randint(1, max(1, x.dim()))]:
        kind = pick.random()
        if pick.slides and size > SLIDES and kind < 0.6:
            start = pick.randint(0, size - SLIDES - 1)
            end = pick.randint(start + 1, size - SLIDES)
            parts.append(f"{start} + step" if kind < 0.2 else f"{start} + step:{end} + step")
        elif kind < 0.25 and size:
            parts.append(str(pick.randint(-size, size - 1)))
        elif kind < 0.32 and size:
            parts.append(str([pick.randint(-size, size - 1) for _ in range(2)]))
        elif kind < 0.75:
            start, end = sorted((pick.randint(-1, size), pick.randint(0, size + 1)))
            start = "" if pick.random() < 0.3 else str(start)
            parts.append(f"{start}:{'' if pick.random() < 0.3 else end}:{pick.choice(['', '', 2, 3])}")
        else:
            parts.append(":")
    if pick.random() < 0.2:
        parts.insert(pick.randint(0, len(parts)), "None")
    if pick.random() < 0.2:
        parts.insert(0, "...")
    return ", ".join(parts)


def strided(pick, x):
    """Sizes, strides and an offset within the memory of x, which may overlap."""
    room = x.untyped_storage().nbytes() // x.element_size()
    if room == 0:
        return "(0,), (1,), 0"
    offset = pick.randint(0, min(room - 1, 6))
    left, sizes, strides = room - 1 - offset, [], []
    for _ in range(pick.randint(1, 4)):
        stride = pick.choice([0, 1, 1, 2, 3, 4, 6, 12])
        size = pick.randint(1, max(1, min(5, 1 + left // stride if stride else 3)))
        left -= (size - 1) * stride
        sizes.append(size)
        strides.append(stride)
    return f"{sizes}, {strides}, {offset}"


def windows(pick, x):
    """A dim or two cut into windows, as einops writes `b (h p) (w q) c -> (b h w) p q c` and back."""
    dims = [d for d in range(x.dim()) if x.shape[d] % 2 == 0 or x.shape[d] % 3 == 0]
    dims = sorted(pick.sample(dims, min(len(dims), pick.randint(1, 2))))
    sizes, outer, inner, place = [], [], [], 0
    for d, size in enumerate(x.shape):
        if d in dims and size:
            part = pick.choice([p for p in (2, 3) if size % p == 0])
            sizes += [size // part, part]
            outer.append(place)
            inner.append(place + 1)
            place += 2
        else:
            sizes.append(size)
            pick.choice([outer, inner]).append(place)
            place += 1
    order = outer + inner
    moved = [sizes[i] for i in order]
    cut = len(outer)
    end = pick.choice([moved, [math.prod(moved[:cut]), *moved[cut:]], [*moved[:cut], math.prod(moved[cut:])]])
    return f".{pick.choice(['reshape', 'view'])}({sizes}).permute({order}).reshape({end})"


def dims_of(pick, x, most=2):
    return pick.sample(range(x.dim()), pick.randint(1, min(most, x.dim()))) if x.dim() else []


def a_dim(pick, x):
    return pick.randint(-x.dim(), x.dim() - 1) if x.dim() else 0


def shuffled(pick, x):
    order = list(range(x.dim()))
    pick.shuffle(order)
    return order


def narrow(pick, x):
    d = a_dim(pick, x)
    size = x.shape[d] if x.dim() else 1
    if pick.slides and size > SLIDES:
        start = pick.randint(0, size - SLIDES)
        return f".narrow({d}, {start} + step, {pick.randint(0, size - SLIDES - start)})"
    start = pick.randint(0, size)
    return f".narrow({d}, {start}, {pick.randint(0, size - start)})"


def unfold(pick, x):
    d = a_dim(pick, x)
    size = pick.randint(1, max(1, x.shape[d] if x.dim() else 1))
    return f".unfold({d}, {size}, {pick.randint(1, 3)})"


def expanded(pick, x):
    more = [pick.randint(1, 3) for _ in range(pick.randint(0, 2))]
    return f".expand({more + [pick.randint(1, 3) if size == 1 else pick.choice([size, -1]) for size in x.shape]})"


def index_of(pick, x, d):
    size = x.shape[d] if x.dim() else 1
    return f"torch.tensor({[pick.randint(0, size - 1) for _ in range(pick.randint(1, 4))] if size else []}, device={{x}}.device)"


def selected(pick, x):
    d = a_dim(pick, x)
    return f".index_select({d}, {index_of(pick, x, d).format(x='{x}')})"


def overlaps_itself(x):
    """Whether two elements lie in one place: PyTorch leaves open what a write then gives."""
    places = torch.zeros(x.shape, dtype=torch.long)
    for d, (size, stride) in enumerate(zip(x.shape, x.stride())):
        places += (torch.arange(size) * stride).reshape([-1] + [1] * (x.dim() - d - 1))
    return places.unique().numel() < x.numel()


def rolled(pick, x):
    dims = dims_of(pick, x)
    return f".roll({[pick.randint(-3, 3) for _ in dims]}, {dims})"


VIEWS = [
    lambda pick, x: f".permute({shuffled(pick, x)})",
    lambda pick, x: f".transpose({a_dim(pick, x)}, {a_dim(pick, x)})",
    lambda pick, x: f".movedim({a_dim(pick, x)}, {a_dim(pick, x)})",
    lambda pick, x: f".view({factors(pick, x.numel())})",
    lambda pick, x: f".unsqueeze({pick.randint(-x.dim() - 1, x.dim())})",
    lambda pick, x: pick.choice([".squeeze()", f".squeeze({a_dim(pick, x)})"]),
    lambda pick, x: f"[{some_index(pick, x)}]",
    lambda pick, x: f"[{some_index(pick, x)}]",
    lambda pick, x: f".select({(d := a_dim(pick, x))}, {pick.randint(0, max(0, x.shape[d] - 1) if x.dim() else 0)})",
    narrow,
    unfold,
    expanded,
    lambda pick, x: f".diagonal({pick.randint(-1, 2)}, {a_dim(pick, x)}, {a_dim(pick, x)})",
    lambda pick, x: f".as_strided({strided(pick, x)})",
    lambda pick, x: f".unflatten({(d := a_dim(pick, x))}, {factors(pick, x.shape[d] if x.dim() else 1, 2)})",
    lambda pick, x: pick.choice([".mT", ".t()", ".detach()", ".view_as({x})", ".swapaxes(0, -1)", ".adjoint()", ".ravel()"]),
    lambda pick, x: f".{pick.choice(['split', 'chunk'])}({pick.randint(1, 3)}, {a_dim(pick, x)})[{pick.choice([0, -1])}]",
    lambda pick, x: f".unbind({a_dim(pick, x)})[{pick.choice([0, -1])}]",
    lambda pick, x: f".tensor_split({pick.randint(1, 3)}, {a_dim(pick, x)})[{pick.choice([0, -1])}]",
]
COPIES = [
    lambda pick, x: f".reshape({factors(pick, x.numel())})",
    lambda pick, x: f".flatten({pick.choice(['', 1, '0, 1'])})",
    windows,
    windows,
    lambda pick, x: f".flip({dims_of(pick, x)})",
    rolled,
    lambda pick, x: f".repeat({[pick.randint(1, 2) for _ in range(x.dim() + pick.randint(0, 1))]})",
    lambda pick, x: f".repeat_interleave({pick.randint(1, 3)}, {a_dim(pick, x)})",
    lambda pick, x: pick.choice([".clone()", ".contiguous()", ".rot90(1, (0, 1))", ".tril()", ".triu(1)", ".fliplr()", ".diag_embed()"]),
    lambda pick, x: f".sum({pick.choice([(), dims_of(pick, x)])}{pick.choice(['', ', keepdim=True'])})",
    lambda pick, x: f".cumsum({a_dim(pick, x)})",
    selected,
    lambda pick, x: f".take(torch.tensor({[pick.randint(0, x.numel() - 1) for _ in range(3)] if x.numel() else []}, device={{x}}.device))",
    lambda pick, x: f".view(torch.uint8).flip(0).view({{x}}.dtype)",
    lambda pick, x: f"[{{x}} > {pick.choice([0, 9])}]",
    lambda pick, x: f" * {pick.choice([-2, -1, 2])}",
    lambda pick, x: " + 1",
]
WHOLE = [
    lambda pick, x: f"-{x}",
    lambda pick, x: f"torch.cat([{x}, {x}.flip(0)], {pick.choice([0, -1])})",
    lambda pick, x: f"torch.stack([{x}, -{x}], {pick.choice([0, -1, 1])})",
    lambda pick, x: f"F.pad({x}, {[pick.randint(-1, 2) for _ in range(2 * pick.randint(1, 2))]})",
    lambda pick, x: f"torch.where({x} > 0, {x}, {pick.choice([0, 5])})",
    lambda pick, x: f"{x}.masked_fill({x} < 0, {pick.choice([0, 7])})",
    lambda pick, x: f"F.pixel_shuffle({x}, 2)",
    lambda pick, x: f"F.pixel_unshuffle({x}, 2)",
    lambda pick, x: f"{x}.gather(-1, {x}.argsort(-1, stable=True))",
    lambda pick, x: f"{x}.new_zeros({x}.shape).copy_({x})",
]
WRITES = [
    "{x}.add_({n})", "{x}.mul_({n})", "{x}.neg_()", "{x}.zero_()", "{x}.fill_({n})", "{x}.clamp_(-2, 2)", "{x}.masked_fill_({x} > 1, {n})",
    "{x}.add_({x}.flip({f}))", "{x}.copy_({x}.flip({f}))", "{x}[{i}] = {n}", "{x}[{i}] += {n}", "{x}[{i}].mul_({n})", "{x}.add_({y})",
    "{x}.copy_({y})", "{x}[{i}] = {y}", "{x}[{i}].copy_({y}[{i}])", "{x}.sub_({y}, alpha=2)", "{x} += {y}", "{x}.index_fill_(0, torch.tensor([0], "
    "device={x}.device), {n})", "{x}.transpose_(0, -1)", "{x}.unsqueeze_(0)", "{x}.squeeze_()", "{x}.t_()", "{x}.detach().add_({n})",
    "{x}.cumsum_(0)", "{x}.tril_()", "{x}.index_add_(0, torch.tensor([0, 0], device={x}.device), {y}[:1].clone().expand(2, *{y}.shape[1:]))",
    "{x}.swapdims_(0, 1)", "{x}.fill_diagonal_({n})", "{x}.as_strided_({s})", "{x}.resize_as_({x})", "{x}.data.mul_({n})",
    "{x}.select(0, 0).copy_({x}.select(0, -1))", "{x}.set_({y})", "with torch.no_grad(): {x}[{i}].add_({n})", "{x}[{i}] *= {y}[{i}]",
    "{x}.index_put_((torch.tensor([0, 0], device={x}.device),), {x}[0].detach().clone(), accumulate=True)", "{x}[{x} > 1] = {n}",
    "{x}.scatter_add_(0, torch.zeros({x}.shape, dtype=torch.long, device={x}.device), {x}.detach().clone())", "{x} = {x}[{i}]",
    "{x}.view(-1)[::2].zero_()", "{x}.diagonal().add_({n})", "{x}.unbind()[0].mul_({n})",
]
PAIRS = ["{x} + {y}", "{x} - {y}", "{x} * {y}", "torch.cat([{x}, {y}], {d})", "torch.where({x} > {y}, {x}, {y})", "{x}.maximum({y})", "{x}.matmul({y})", "torch.einsum('...ij,...jk->...ik', {x}, {y})"]


class _Maker:
    def __init__(self, pick):
        self.pick, self.run = pick, Run("cpu", torch.float64)
        self.names, self.lines, self.count = {**self.run.names(), "step": 0}, [], 0

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def tensors(self):
        return [name for name, value in self.names.items() if name[0] == "v" and name[1:].isdigit() and isinstance(value, torch.Tensor)]

    def attempt(self, line):
        """Runs the line here; keeps it if it is legal and its tensors stay small."""
        try:
            exec(line, self.names)  # noqa: S102
            assert all(self.names[name].numel() <= MOST_ELEMENTS and self.names[name].dim() <= MOST_DIMS for name in self.tensors())
        except Exception:  # noqa: BLE001
            self.names = {**self.run.names(), "step": 0}
            for each in [*self.setup, *self.lines]:
                exec(each, self.names)  # noqa: S102
            return False
        self.lines.append(line)
        return True

    def expression(self):
        pick = self.pick
        name = pick.choice(self.tensors()[-3:] if pick.random() < 0.7 else self.tensors())
        x = self.names[name]
        kind = pick.random()
        if kind < 0.6:
            return name + pick.choice(VIEWS)(pick, x).replace("{x}", name)
        if kind < 0.8:
            return name + pick.choice(COPIES)(pick, x).replace("{x}", name)
        if kind < 0.88:
            return pick.choice(WHOLE)(pick, name)
        return pick.choice(PAIRS).format(x=name, y=pick.choice(self.tensors()), d=a_dim(pick, x))

    def write(self):
        pick, name, other = self.pick, *self.pick.choices(self.tensors(), k=2)
        x = self.names[name]
        if overlaps_itself(x):
            return "x is no target"
        if x.untyped_storage().data_ptr() == self.names[other].untyped_storage().data_ptr():
            other += ".clone()"
        return pick.choice(WRITES).format(x=name, y=other, n=pick.choice([-2, -1, 2, 3]), i=some_index(pick, x) if x.dim() else "...",
                                          f=dims_of(pick, x), s=strided(pick, x))

    def sizes(self):
        some = [1, 2, 2, 3, 4, 4, 5, 6] + [7, 8] * self.pick.slides
        shape = [self.pick.choice(some) for _ in range(self.pick.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4]))]
        if math.prod(shape) > MOST_ELEMENTS:
            shape.pop()
        return [0 if self.pick.random() < 0.01 else size for size in shape]

    def program(self, seed):
        pick = self.pick
        grads = pick.random() < 0.6
        pick.slides = pick.random() < 0.25
        self.setup = setup = [f"torch.manual_seed({seed})"]
        for i in range(pick.randint(1, 2)):
            setup.append(f"x{i} = integers({', '.join(map(str, self.sizes()))}{', grad=True' if grads else ''})".replace("(, ", "("))
        for line in setup:
            exec(line, self.names)  # noqa: S102
        leaves = len(setup) - 1
        for i in range(leaves):
            self.attempt(f"{self.fresh()} = x{i}{pick.choice([' * 1', '.clone()', '.permute([*reversed(range(x%d.dim()))]).clone()' % i, ''])}")
        for _ in range(pick.randint(3, pick.choice([12, 25]))):
            for _ in range(20):
                kind = pick.random()
                line = "sync()" if kind < 0.04 else self.write() if kind < 0.3 else f"{self.fresh()} = {self.expression()}"
                if self.attempt(line):
                    break
        made = self.tensors()
        outputs = pick.sample(made, min(len(made), pick.choice([1, 2, 4, 12])))
        if grads:
            wanted = [name for name in made if self.names[name].requires_grad]
            wanted = pick.sample(wanted, min(len(wanted), pick.randint(1, 3)))
            total = " + ".join(f"({name} * {pick.choice([1, 2, -1])}).sum()" for name in wanted)
            if wanted:
                self.lines.append(f"({total}).backward()")
                outputs += [f"x{i}.grad" for i in range(leaves)]
        if pick.slides:
            self.lines.append("sync()")
        return Program(setup, self.lines, outputs, steps=1 + SLIDES if pick.slides else pick.choice([1, 1, 2]))
