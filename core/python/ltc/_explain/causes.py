"""The known causes of costs, each with the sign that tells it and what to do.

A cost has the first cause of the table that fits it, so special ones stand before general ones. To add a cause, add a row here and a
script to tests/causes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .costs import Cost
from .record import Record

Sign = Callable[[Cost, Record], object]


@dataclass(frozen=True)
class Cause:
    """``sign`` is asked for costs of the kinds in ``kinds``, or once for the whole run where there are none. ``advice`` is empty where nothing
    is to be done."""

    name: str
    kinds: tuple[str, ...]
    sign: Sign
    what: str
    advice: str


@dataclass(frozen=True)
class Finding:
    cause: Cause
    cost: Cost

    def text(self) -> str:
        detail = next(iter(self.cost.details), "") if len(self.cost.details) == 1 else self.cost.detail
        return self.cause.what.format(reason=self.cost.reason, detail=detail, count=self.cost.count, runs=self.cost.runs)


# ---- signs

READ, WAIT, SEND, COMPILE, BARRIER, HOST = ("read",), ("wait",), ("send",), ("compile", "load"), ("barrier",), ("fallback", "host_step")
DATA_DEPENDENT = r"::(nonzero|masked_select|_?unique|index|argwhere|bincount|repeat_interleave|_local_scalar|where$|histc)"
LINEAR_ALGEBRA = r"::(_?linalg|linalg_|svd|qr|cholesky|lstsq|geqrf|lu_|ormqr|triangular_solve|_linalg)"
FREQUENT = 3  # steps and more: what happens as often as steps do is of each step


def via(pattern: str) -> Sign:
    """Library functions between the user's line and the device."""
    return lambda cost, record: re.search(pattern, cost.detail)


def line(pattern: str) -> Sign:
    """The text of the user's line."""
    return lambda cost, record: re.search(pattern, cost.source)


def reason(pattern: str) -> Sign:
    return lambda cost, record: re.search(pattern, cost.reason)


def detail(pattern: str) -> Sign:
    return lambda cost, record: re.search(pattern, cost.detail)


def both(*signs: Sign) -> Sign:
    return lambda cost, record: all(sign(cost, record) for sign in signs)


def either(*signs: Sign) -> Sign:
    return lambda cost, record: any(sign(cost, record) for sign in signs)


def each_step(cost: Cost, record: Record) -> bool:
    return cost.steps >= min(FREQUENT, record.steps) and cost.count >= FREQUENT and cost.steps * 2 >= record.steps


def anything(cost: Cost, record: Record) -> bool:
    return True


def again(cost: Cost, record: Record) -> bool:
    """Not only where a step differs from the one before it for the first time, as the first two of a loop often do."""
    return cost.count > 1


def is_size(cost: Cost, record: Record) -> object:
    """A size that differs, as that of a value or of random numbers and of constants."""
    return cost.reason == "size" or (cost.reason == "attribute" and re.search(r"has size=\[", cost.detail))


def grows(cost: Cost, record: Record) -> bool:
    return bool(is_size(cost, record)) and cost.count >= FREQUENT and len(cost.details) == cost.count and cost.runs <= 2 * cost.count \
        and all(_growth(text) > 0 for text in cost.details)  # fmt: skip


def _growth(text: str) -> int:
    """By how much a size is larger than before, from "... gives f32[5,8] instead of f32[4,8]"."""
    now, _, then = text.partition(" instead of ")
    sizes = [[int(n) for n in re.findall(r"\d+", (re.findall(r"\[([\d,]*)\]", side) or [""])[-1])] for side in (now, then)]
    return sum(sizes[0]) - sum(sizes[1])


def is_rare_and_smaller(cost: Cost, record: Record) -> bool:
    return bool(is_size(cost, record)) and cost.count <= 2 and record.steps >= 2 * FREQUENT and any(_growth(t) < 0 for t in cost.details)


def same_contents(cost: Cost, record: Record) -> bool:
    most = max(cost.contents.values())
    return most >= FREQUENT and most * 2 >= cost.count and cost.bytes / cost.count > 64


def setting(name: str, *values: str) -> Sign:
    return lambda cost, record: record.settings.get(name) in values


def dominates(part: str, share: float = 0.5, least_ms: float = 100) -> Sign:
    return lambda cost, record: record.parts[part] >= max(share * record.seconds * 1e3, least_ms)


def steps_are_small(cost: Cost, record: Record) -> bool:
    return cost.reason == "MarkStep" and cost.count >= 20 and 0 < cost.ops < 8 * cost.count


def is_device_bound(cost: Cost, record: Record) -> bool:
    return record.device_ms >= max(0.7 * record.seconds * 1e3, 100)


# ---- the table

CAUSES = [
    # Values that the script reads.
    Cause("print", READ, via("_tensor_str.py"), "a tensor is printed: the script waits for its value",
          "print less often, or keep `tensor.detach()` and print after the loop"),
    Cause("optimizer reads", READ, via("torch/optim/"), "the optimizer reads values on the host ({count} times)",
          "use an optimizer that does not (SGD, Adam, AdamW, Adadelta, ...), or options that do not"),
    Cause("gradient scaler", READ, via("grad_scaler.py"), "the gradient scaler reads whether gradients overflowed",
          "train in bfloat16, which needs no scaler"),
    Cause("gradient clipping", READ, via("clip_grad.py"), "clipping checks the norm on the host", "leave out error_if_nonfinite=True"),
    Cause("saving", READ, via("serialization.py|checkpoint|torch/storage.py"), "tensors are saved: all their values come to the host",
          "save less often, or on another thread from copies that are made by `.clone()`"),
    Cause("anomaly check", READ, either(via("anomaly"), line(r"isnan|isfinite|isinf")), "values are checked on the host",
          "count bad values on the device and read the count once in many steps, or use `torch._assert_async`"),
    Cause("deferred assertion", READ, reason("assertion"), "an assertion about values is checked", "it is checked at each read: drop it once the script is right"),
    Cause("branch on a value", READ, both(reason("item"), line(r"^(el)?if |^while |^assert |\bif\b.+\belse\b|\bbool\(|\band\b|\bor\b")), "a branch waits for a value",
          "use torch.where or masks, or decide it from what the host knows"),
    Cause("value as a size", READ, both(reason("item"), line(r"range\(|\[[^\]]*:|view\(|reshape\(|arange\(|narrow\(|split\(|repeat_interleave\(")), "a value decides a size",
          "keep sizes on the host, or compute with the largest size and a mask"),
    Cause("iterating over a tensor", READ, both(reason("item"), line(r"^(for|.*\bfor) .+ in ")), "a loop goes over the values of a tensor",
          "compute with the whole tensor, or read it once by `.tolist()`"),
    Cause("whole tensor to a list or numpy", READ, line(r"numpy|tolist|\bnp\."), "a tensor goes to numpy or a list",
          "keep it on the device, or collect tensors and convert them once after the loop"),
    Cause("item", READ, both(reason("item"), each_step), "a number is read in each step: the script waits for the device",
          "keep `loss.detach()`, and read it once in many steps"),
    Cause("copy to the CPU", READ, both(reason("copy"), each_step), "a tensor is copied to the CPU in each step", "compute on the device, and copy the result once"),
    Cause("copy between devices", (*READ, "copy_from_peer"), reason("other device"), "a tensor moves to another device through the host's memory",
          "keep what is used together on one device"),
    Cause("read", READ, anything, "values are read", ""),
    # Waiting.
    Cause("synchronize", WAIT, both(lambda c, r: c.reason != "ahead", each_step), "the script waits for the device in each step",
          "leave it out: a read waits by itself; to time steps, wait once before and once after many"),
    Cause("ahead of the device", WAIT, reason("ahead"), "the script is ahead of the device, which is the limit", ""),
    Cause("wait", WAIT, anything, "the script waits for the device", ""),
    # Values that are sent.
    Cause("same values sent again", SEND, same_contents, "equal values are sent to the device again and again",
          "send them once, before the loop"),
    Cause("number made a tensor", SEND, both(each_step, lambda c, r: c.bytes <= 64 * c.count), "a small tensor is made on the host in each step",
          "pass numbers as they are, or make the tensor on the device (`torch.full`, `torch.arange`)"),
    Cause("tensor sent in each step", SEND, each_step, "a tensor of the CPU is sent in each step",
          "needed for data; make random and constant tensors with device='ltc', and send data of many steps at once where it fits"),
    Cause("send", SEND, anything, "values are sent to the device", ""),
    # Ops that the CPU runs.
    Cause("size from values", HOST, either(reason(DATA_DEPENDENT), detail("size of its result|mask decides")), "{reason} runs on the CPU: the size of its result depends on values",
          "use a mask: torch.where, multiplication by the mask, or index_add with all elements"),
    Cause("sparse op on the CPU", HOST, detail("sparse"), "{reason} of sparse tensors runs on the CPU", "see which sparse ops are recorded in docs/design.md, or use dense tensors"),
    Cause("narrower type", HOST, detail("narrower type"), "{reason} runs on the CPU: the device computes in a narrower type", "use float32, or a plugin with float64"),
    Cause("left out by a setting", HOST, detail("LTC_CLAIMS"), "{reason} runs on the CPU, since LTC_CLAIMS leaves it out", "unset LTC_CLAIMS"),
    Cause("linear algebra on the CPU", HOST, reason(LINEAR_ALGEBRA), "{reason} runs on the CPU: no plugin has it", "do it less often, or replace it by products"),
    Cause("custom op on the CPU", HOST, lambda c, r: not c.reason.startswith(("aten::", "ltc::")), "{reason}, an op of another library, runs on the CPU",
          "register a decomposition for it, or write it with PyTorch's ops"),
    Cause("op not claimed", HOST, detail("does not claim|claims it only|computes nothing|not lowered"), "{reason} runs on the CPU: {detail}",
          "choose a plugin that has the op, or other ops; `ltc.metrics.fallbacks()` has all"),
    Cause("op on the CPU", HOST, anything, "{reason} runs on the CPU: {detail}", "use other ops; `ltc.metrics.fallbacks()` has all"),
    # Programs that are compiled.
    Cause("tensor that grows", COMPILE, grows, "a tensor grows: each size is compiled anew", "allocate the largest size once and fill it (index_copy_), or end the list with torch.stack after the loop"),
    Cause("last, smaller batch", COMPILE, is_rare_and_smaller, "a smaller batch is compiled for itself: {detail}", "drop it (DataLoader(drop_last=True)) or pad it: ltc.jit(fn, buckets=...)"),
    Cause("sizes that change", COMPILE, both(is_size, again), "sizes change, each is compiled: {detail}", "keep to a few sizes: pad, or ltc.jit(fn, buckets=(8, 32, 128))"),
    Cause("dtype that changes", COMPILE, both(reason("^type$"), again), "dtypes or layouts change: {detail}", "convert where the tensor is made, to one dtype and layout"),
    Cause("number that is a constant", COMPILE, both(reason("^attribute$"), again), "a number is a constant of the program: {detail}", "keep it, or pass it as a tensor on the device"),
    Cause("steps that differ", COMPILE, both(reason("^(op|operands)$"), again), "steps do different things: {detail}", "take the same branch in each step (torch.where), and end each step at the same place"),
    Cause("results that differ", COMPILE, both(reason("^results$"), again), "steps hold different results: {detail}", "drop, or keep, the same results in each step"),
    Cause("compiled in the background", COMPILE, reason("^background$"), "a program was compiled while the host ran its steps", ""),
    Cause("loaded from the disk", ("load",), anything, "programs were read from the disk", ""),
    Cause("nothing is kept on the disk", COMPILE, setting("LTC_CACHE", "0"), "programs were compiled that no later process can use", "unset LTC_CACHE=0"),
    Cause("first compile", COMPILE, anything, "programs were compiled for the first time", "later processes read them from the disk; fewer kinds of steps need fewer programs"),
    # Ends of steps.
    Cause("every op runs at once", BARRIER, reason("EagerBarrier"), "LTC_EAGER=1 runs each op by itself", "unset LTC_EAGER"),
    Cause("no step ends", BARRIER, reason("TraceLimit"), "no step ended before the trace grew long", "call ltc.mark_step() at the end of each step"),
    Cause("memory of a trace", BARRIER, reason("HeldMemory"), "a trace was ended since it alone held much memory", "call ltc.mark_step() at the end of each step"),
    Cause("calls of compiled functions", BARRIER, reason("CapturedCall"), "a call of a compiled function ends the step before it", "compile the whole step, or none of it"),
    Cause("small steps", BARRIER, steps_are_small, "steps of a few ops: to begin a run costs more than they do", "call ltc.mark_step() less often"),
    Cause("split", BARRIER, reason("TraceSplit"), "a step was split around what is equal in each", ""),
    Cause("end of steps", BARRIER, anything, "steps are looked up and queued", ""),
    # Python.
    Cause("import", ("import",), anything, "{detail} is imported", "import it once, before what is timed; PyTorch imports parts of itself at their first use"),
    # Runs.
    Cause("step that fails", ("recover",), anything, "runs failed and were repeated op by op: {detail}", "mend the error: such a step takes much longer"),
    # The whole run.
    Cause("both sides are checked", (), setting("LTC_VALIDATE", "1", "abort"), "LTC_VALIDATE checks each call of the plugin", "unset LTC_VALIDATE"),
    Cause("graphs are checked", (), setting("LTC_VERIFY", "1"), "LTC_VERIFY checks graphs after each pass", "unset LTC_VERIFY"),
    Cause("whole stacks", (), setting("LTC_STACKS", "1"), "LTC_STACKS records the whole stack of each op", "unset LTC_STACKS"),
    Cause("tried on the CPU first", (), lambda c, r: r.counters.get("DryRuns", 0) >= FREQUENT, "calls are tried on the CPU first, as what they write decides what they do", "write results to new tensors instead of `out=`"),
    Cause("the device is the limit", (), is_device_bound, "the device computes nearly all the time", "a faster device or a smaller model; the programs that take longest are named below"),
    Cause("Python is the limit", (), dominates("Python and recording"), "the script and recording take most of the time", "record once: ltc.jit(fn) or torch.compile(model, backend='ltc')"),
]  # fmt: skip


def find(record: Record) -> list[Finding]:
    """Findings of the whole run, then one for each cause and line, those that took longest first."""
    whole = Cost("run", "", "")
    found = [Finding(cause, whole) for cause in CAUSES if not cause.kinds and cause.sign(whole, record)]
    by_line: dict[tuple[str, str], Finding] = {}
    for cost in record.costs:
        cause = next((cause for cause in CAUSES if cost.kind in cause.kinds and cause.sign(cost, record)), None)
        if cause is None:
            continue
        if known := by_line.get((cause.name, cost.where)):
            known.cost.add(cost)
        else:
            by_line[cause.name, cost.where] = Finding(cause, replace(cost))
    return found + sorted(by_line.values(), key=lambda finding: -finding.cost.ms)


def table() -> str:
    """The causes in Markdown."""
    kinds = {"read": "values that are read", "wait": "waits", "send": "values that are sent", "fallback": "ops on the CPU", "compile": "programs",
             "load": "programs", "barrier": "ends of steps", "import": "Python", "recover": "runs"}  # fmt: skip
    rows = [f"| {kinds[cause.kinds[0]] if cause.kinds else 'the whole run'} | {cause.name} | {_words(cause.what)} | {cause.advice or '-'} |" for cause in CAUSES]
    return "\n".join(["| of | cause | what it means | what to do |", "|---|---|---|---|", *rows])


def _words(what: str) -> str:
    return what.format(reason="an op", detail="...", count="some", runs="some")


def document(path: str) -> None:
    """Replaces the table in the file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin, end = "<!-- causes -->\n", "<!-- end of causes -->"
    before, _, rest = text.partition(begin)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{begin}{table()}\n{end}{rest.partition(end)[2]}")
