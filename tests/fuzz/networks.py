"""Random small networks: layers in any order, parts frozen or shared, several results, forward, backward and an optimizer's steps.

A layer is a line of `setup` that makes its module, and a line of `body` that calls it, or the latter alone. Both are tried on the CPU while
the program is made, so sizes are known and layers that do not fit are left out.
"""

import random

import torch

from program import Program, Run

MOST_ELEMENTS = 20_000

ACTIVATIONS = ["F.relu({h})", "F.gelu({h})", "F.gelu({h}, approximate='tanh')", "F.silu({h})", "torch.tanh({h})", "torch.sigmoid({h})", "F.elu({h})",
               "F.selu({h})", "F.leaky_relu({h}, 0.2)", "F.hardtanh({h})", "F.hardswish({h})", "F.softplus({h})", "F.mish({h})", "F.relu6({h})",
               "F.softmax({h}, -1)", "F.log_softmax({h}, -1)", "F.softmax({h}, 1)", "F.normalize({h}, dim=-1)", "{h}.square()", "{h} * 0.5", "{h} + 1",
               "{h}.clamp(-1, 1)", "F.dropout({h}, 0.0)", "torch.sin({h})", "F.logsigmoid({h})", "F.softsign({h})", "F.glu({h}, -1)", "F.glu({h}, 1)",
               "{h} * torch.sigmoid({h})", "{h} - {h}.mean(-1, keepdim=True)", "{h} / ({h}.std(-1, keepdim=True) + 1)", "F.layer_norm({h}, {h}.shape[-1:])",
               "{h} * {h}.square().mean(-1, keepdim=True).add(1e-3).rsqrt()", "{h}.detach()", "F.relu({h}.clone(), inplace=True)", "{h}.flip(-1)",
               "{h}.roll(1, -1)", "torch.where({h} > 0, {h}, {h} * 0.1)", "{h}.cumsum(-1) * 0.3", "{h}.exp().clamp(max=4)", "{h}.max(-1, keepdim=True)[0] - {h}",
               "torch.var_mean({h}, -1, keepdim=True)[0] + {h}", "torch.std_mean({h}, 1, keepdim=True)[1] + {h}", "{h}.sort(-1)[0]", "{h}.topk(1, -1)[0] + {h}",
               "{h}.logsumexp(-1, keepdim=True) - {h}"]

# By rank of what they take: what a module is made as, and how it is called.
IMAGES = ["nn.Conv2d({c}, {o}, {k}, padding={p}, bias={b})", "nn.Conv2d({c}, {o}, {k}, padding={p}, stride={s}, dilation={d})", "nn.Conv2d({c}, {o}, 1)",
          "nn.Conv2d({c}, {c}, 3, padding=1, groups={c}, bias={b})", "nn.Conv2d({c}, {o}, 3, padding=1, padding_mode='{mode}')", "nn.Conv2d({c}, {c}, {k}, padding={p})",
          "nn.ConvTranspose2d({c}, {o}, {k}, stride={s}, padding={p2}, bias={b})", "nn.BatchNorm2d({c}, affine={b}, track_running_stats={b2})", "nn.BatchNorm2d({c})",
          "nn.GroupNorm({g}, {c}, affine={b})", "nn.InstanceNorm2d({c}, affine={b})", "nn.LayerNorm({tail})", "nn.MaxPool2d({k2}, {s})", "nn.AvgPool2d({k2}, {s}, "
          "count_include_pad={b})", "nn.AvgPool2d(3, 1, 1, count_include_pad={b})", "nn.MaxPool2d(3, 1, 1, dilation={d2})", "nn.AdaptiveAvgPool2d({a})",
          "nn.AdaptiveMaxPool2d({a})", "nn.Upsample(scale_factor=2, mode='nearest')", "nn.Upsample(size=({a}, 5), mode='bilinear', align_corners={b})", "nn.PixelShuffle(2)",
          "nn.PixelUnshuffle(2)", "nn.Dropout2d(0.0)", "nn.PReLU({c})", "nn.ReflectionPad2d(1)", "nn.ReplicationPad2d(1)", "nn.ZeroPad2d(({p}, 1, 0, 2))",
          "nn.ChannelShuffle({g})", "nn.LPPool2d(2, 2)", "nn.Sequential(nn.Conv2d({c}, {o}, 3, padding=1, bias=False), nn.BatchNorm2d({o}), nn.ReLU())",
          "nn.utils.parametrizations.weight_norm(nn.Conv2d({c}, {o}, 3, padding=1))", "nn.Flatten()", "nn.LazyConv2d({o}, 2)"]
SEQUENCES = ["nn.Linear({last}, {o}, bias={b})", "nn.Linear({last}, {last})", "nn.LayerNorm({last}, elementwise_affine={b})", "nn.LayerNorm({tail})", "nn.RMSNorm({last})",
             "nn.Conv1d({c}, {o}, {k}, padding={p}, bias={b})", "nn.Conv1d({c}, {c}, 3, padding=1, groups={c})", "nn.ConvTranspose1d({c}, {o}, {k}, stride={s})",
             "nn.BatchNorm1d({c}, affine={b})", "nn.GroupNorm({g}, {c})", "nn.InstanceNorm1d({c}, affine={b})", "nn.MaxPool1d({k2}, {s})", "nn.AvgPool1d({k2}, {s})",
             "nn.AdaptiveAvgPool1d({a})", "nn.Upsample(scale_factor=2, mode='linear')", "nn.TransformerEncoderLayer({last}, {heads}, {o}, 0.0, batch_first=True, "
             "norm_first={b})", "nn.Flatten()", "nn.Dropout(0.0)", "nn.PReLU()", "nn.Fold((4, 4), 2)"]
ROWS = ["nn.Linear({last}, {o}, bias={b})", "nn.Linear({last}, {last})", "nn.LayerNorm({last}, bias={b})", "nn.BatchNorm1d({last}, affine={b})", "nn.RMSNorm({last})", "nn.GroupNorm({g}, {last})",
        "nn.PReLU()", "nn.Unflatten(1, (2, -1))", "nn.Dropout(0.0)", "nn.utils.parametrizations.weight_norm(nn.Linear({last}, {o}))", "nn.Sequential(nn.Linear({last}, {o}), nn.GELU(), "
        "nn.Linear({o}, {last}))"]
# With calls of their own; the value of further results is unused, or used by the line itself.
CALLS = {4: [("nn.Conv2d({c}, {c}, 1)", "{h} * torch.sigmoid({m}({h}.mean((2, 3), keepdim=True)))"), (None, "{h}.mean((2, 3))"), (None, "{h}.flatten(2).transpose(1, 2)"),
             (None, "{h}.contiguous(memory_format=torch.channels_last)"), (None, "{h}.amax((2, 3))"), (None, "{h}[:, :, ::2, 1:]"), (None, "{h}.permute(0, 2, 3, 1)"),
             (None, "F.unfold({h}, 2)"), (None, "F.scaled_dot_product_attention({h}, {h}, {h}, is_causal={b})"), (None, "F.max_pool2d({h}, 2, return_indices=True)[0]"),
             ("nn.Linear({last}, {last})", "{m}({h})"), (None, "F.interpolate({h}, scale_factor=0.5, mode='bilinear')"), (None, "{h}.unflatten(2, (2, -1)).mean(2)")],
         3: [("nn.MultiheadAttention({last}, {heads}, batch_first=True)", "{m}({h}, {h}, {h}, need_weights={b})[0]"), (None, "{h}.transpose(1, 2)"), (None, "{h}.mean(1)"),
             ("nn.MultiheadAttention({last}, {heads})", "{m}({h}, {h}, {h})[{bit}]"), ("nn.GRU({last}, {o}, num_layers={bit} + 1, batch_first={b})", "{m}({h})[0]"),
             ("nn.LSTM({last}, {o}, num_layers={bit} + 1, bidirectional={b})", "{m}({h})[0]"), ("nn.LSTM({last}, {o}, batch_first=True)", "{m}({h})[1][{bit}]"),
             ("nn.RNN({last}, {o})", "{m}({h})[0]"), (None, "{h}.unflatten(-1, ({heads}, -1)).transpose(1, 2)"), (None, "{h}[:, -1]"), (None, "{h} @ {h}.mT * 0.2"),
             (None, "torch.einsum('blc,bmc->blm', {h}, {h})"), (None, "{h}.unsqueeze(1)"), (None, "{h}[:, 1:] - {h}[:, :-1]"), (None, "{h}.max(1)[0]"), (None, "{h}.flatten(1)"),
             ("nn.Linear({last}, 3 * {last})", "torch.cat({m}({h}).chunk(3, -1)[:2], 1)"), (None, "F.scaled_dot_product_attention({h}, {h}, {h})"),
             (None, "torch.bmm({h}.softmax(-1).mT, {h})"), (None, "F.pad({h}, (1, 1), mode='replicate')"), (None, "{h}.unfold(1, 2, 1).mean(-1)")],
         2: [("nn.Bilinear({last}, {last}, {o})", "{m}({h}, {h})"), (None, "{h}[:, None] - {h}[None]"), (None, "{h} @ {h}.t() * 0.2"), (None, "torch.cdist({h} + 1, {h} * 2)"),
             (None, "{h}.unsqueeze(1)"), (None, "torch.cat([{h}, {h}.square()], 1)"), ("nn.Linear({last}, {last})", "{m}({m}({h}).tanh())"), (None, "{h}.reshape({h}.shape[0], 1, -1, 1)")]}
# foreach: that form of nesterov's step changes the gradients too, and is not the default on the CPU.
OPTIMIZERS = ["SGD({p}, lr=0.05)", "SGD({p}, lr=0.05, momentum=0.9, weight_decay=0.01)", "SGD({p}, lr=0.05, momentum=0.9, nesterov=True, foreach=True)", "Adam({p}, lr=0.01, eps=0.01)",
              "AdamW({p}, lr=0.01, eps=0.01)", "RMSprop({p}, lr=0.01, eps=0.1)", "Adagrad({p}, lr=0.01, eps=0.1)", "Adam({p}, lr=0.01, eps=0.01, amsgrad=True)"]


def generate(seed):
    return _Maker(random.Random(seed)).program(seed)


class _Maker:
    def __init__(self, pick):
        self.pick, self.run = pick, Run("cpu", torch.float64)
        self.names, self.setup, self.lines, self.count = {**self.run.names(), "step": 0}, [], [], 0

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def values(self):
        return [name for name, value in self.names.items() if name[0] in "hx" and name[1:].isdigit() and isinstance(value, torch.Tensor) and value.is_floating_point()]

    def modules(self):
        return [name for name, value in self.names.items() if name[0] == "m" and name[1:].isdigit() and isinstance(value, torch.nn.Module)]

    def attempt(self, made, line):
        """Runs a module's line, if there is one, and its call here; keeps them if they fit and the result stays small."""
        name = line.split(" = ")[0]
        try:
            if made:
                exec(made, self.names)  # noqa: S102
            exec(line, self.names)  # noqa: S102
            value = self.names[name]
            assert isinstance(value, torch.Tensor) and 1 < value.numel() <= MOST_ELEMENTS and value.dim() in CALLS and value.isfinite().all()
        except Exception:  # noqa: BLE001
            self.names.pop(name, None)
            if made:
                self.names.pop(made.split(" = ")[0], None)
            return False
        self.setup += [made] if made else []
        self.lines.append(line)
        return True

    def numbers(self, h):
        pick, c = self.pick, h.shape[1]
        return {"c": c, "o": pick.choice([2, 3, 4, 4, 6, 8]), "k": pick.choice([1, 2, 3, 3, 5]), "p": pick.choice([0, 1, 1, 2]), "s": pick.choice([1, 1, 2]), "d": pick.choice([1, 2]),
                "b": pick.random() < 0.5, "b2": pick.random() < 0.5, "mode": pick.choice(["reflect", "circular", "replicate"]), "p2": pick.choice([0, 1]),
                "g": pick.choice([g for g in range(1, c + 1) if c % g == 0]), "tail": list(h.shape[1:]), "k2": pick.choice([2, 3]), "d2": pick.choice([1, 1, 2]),
                "a": pick.choice([1, 2, 3]), "last": h.shape[-1], "heads": pick.choice([n for n in (1, 2, 4) if h.shape[-1] % n == 0]), "bit": pick.choice([0, 1])}

    def layer(self):
        pick = self.pick
        values = self.values()
        h = pick.choice(values[-1:] * 6 + values)
        value, result, made = self.names[h], self.fresh("h"), None
        numbers = self.numbers(value)
        kind = pick.random()
        if kind < 0.25:
            call = pick.choice(ACTIVATIONS)
        elif kind < 0.33:
            alike = [name for name in values if name != h and self.names[name].shape == value.shape]
            call = pick.choice(["{h} + {y}", "{h} * {y}", "torch.cat([{h}, {y}], 1)", "torch.stack([{h}, {y}]).mean(0)", "{h}.add({y}, alpha=0.5)"]).replace("{y}", pick.choice(alike or [h]))
        elif kind < 0.38 and self.modules():
            call = f"{pick.choice(self.modules())}({{h}})"
        elif kind < 0.6:
            made, call = pick.choice(CALLS[value.dim()])
        else:
            made, call = pick.choice({4: IMAGES, 3: SEQUENCES, 2: ROWS}[value.dim()]), "{m}({h})"
        if made and "GroupNorm" in made and not value.requires_grad:
            return self.layer()
        if not made:
            return None, f"{result} = {call.format(h=h, **numbers)}"
        m = self.fresh("m")
        frozen = ", frozen=True" if pick.random() < 0.2 else ""
        return f"{m} = module({made.format(**numbers)}{frozen})", f"{result} = {call.format(h=h, m=m, **numbers)}"

    def inputs(self):
        pick, grad = self.pick, ", grad=True" if self.pick.random() < 0.4 else ""
        kind = pick.choice(["image", "image", "sequence", "rows", "tokens"])
        n = pick.choice([1, 2, 3, 4])
        if kind == "image":
            yield f"x0 = normal({n + 1}, {pick.choice([1, 2, 3, 4])}, {pick.choice([4, 5, 6, 8])}, {pick.choice([4, 6, 7, 8])}{grad})"
        elif kind == "sequence":
            yield f"x0 = normal({n}, {pick.choice([2, 3, 4, 5])}, {pick.choice([4, 6, 8])}{grad})"
        elif kind == "rows":
            yield f"x0 = normal({n + 1}, {pick.choice([3, 4, 6, 8])}{grad})"
        else:
            yield f"t0 = tokens(7, {n}, {pick.choice([2, 3, 5])})"
            yield f"m0 = module(nn.Embedding(7, {pick.choice([4, 8])}{pick.choice(['', ', padding_idx=0', ', max_norm=None'])}))"
            self.lines.append("h0 = m0(t0)")

    def loss(self, wanted):
        terms = []
        for name in wanted:
            value = self.names[name]
            terms.append(self.pick.choice([f"{name}.square().mean()", f"{name}.sum() * 0.1", f"F.mse_loss({name}, torch.zeros_like({name}))", f"({name} * {name}.detach()).mean()",
                                           f"F.smooth_l1_loss({name}, torch.ones_like({name}))"] + ([f"F.cross_entropy({name}, {name}.argmin(1))"] if value.dim() == 2 else [])))
        return " + ".join(terms)

    def program(self, seed):
        pick = self.pick
        self.setup = [f"torch.manual_seed({seed})", *self.inputs()]
        for line in [*self.setup, *self.lines]:
            exec(line, self.names)  # noqa: S102
        for _ in range(pick.randint(2, 9)):
            for _ in range(20):
                if self.attempt(*self.layer()):
                    break
        if pick.random() < 0.3:
            self.setup += [f"{m}.eval()" for m in self.modules()]
        made = self.values()
        trained = [name for name in made if self.names[name].requires_grad]
        outputs = pick.sample(made, min(len(made), pick.choice([1, 2, 4]))) + ["x0.grad"] * ("x0" in self.names)
        if trained:
            wanted = dict.fromkeys([trained[-1], *pick.sample(trained, min(len(trained), pick.choice([0, 0, 1, 2])))])
            self.train(list(wanted), outputs)
        return Program(self.setup, self.lines, outputs, steps=pick.choice([1, 2, 2, 3]))

    def train(self, wanted, outputs):
        pick = self.pick
        names = [f"*{m}.parameters()" for m in self.modules()]
        parameters = [p for m in self.modules() for p in self.names[m].parameters() if p.requires_grad]
        self.setup.append(f"p0 = [p for p in dict.fromkeys([{', '.join(names)}]) if p.requires_grad]")
        if parameters and pick.random() < 0.8:
            self.setup.append(f"o0 = torch.optim.{pick.choice(OPTIMIZERS).format(p='p0')}")
            self.lines.append(pick.choice(["o0.zero_grad()", "o0.zero_grad(set_to_none=False)"]))
        self.lines.append(f"l0 = {self.loss(wanted)}")
        self.lines.append("l0.backward()")
        if self.setup[-1].startswith("o0"):
            self.lines.append("o0.step()")
        outputs.append("l0")
        for m in self.modules():
            module = self.names[m]
            outputs += [f"{m}.{name}" for name, _ in module.named_parameters()] + [f"{m}.{name}.grad" for name, _ in module.named_parameters()]
            outputs += [f"{m}.{name}" for name, _ in module.named_buffers()]
