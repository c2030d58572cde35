"""Adds up what the workers found, and says it."""

import collections
import re

from .cases import DTYPES, MODES, STRIDE_MODES


class Report:
    def __init__(self):
        self.ops = {}  # name: {"tallies": [...], "crash": None or text}

    def add(self, name, tallies, crash):
        self.ops[name] = {"tallies": tallies, "crash": crash}

    def tallies(self, name=None):
        for op in [self.ops[name]] if name else self.ops.values():
            yield from op["tallies"]

    def total(self, key, **where):
        return sum(tally[key] for tally in self.tallies() if all(tally[k] == v for k, v in where.items()))

    def failures(self):
        """(operator, mode, dtype, sample, message) of every failing case, and of every crash."""
        for name, op in sorted(self.ops.items()):
            if op["crash"]:
                yield name, "", "", "", op["crash"]
            for tally in op["tallies"]:
                for failure in tally["failures"]:
                    yield name, tally["mode"], tally["dtype"], failure["sample"], failure["message"]

    def failed(self):
        return any(True for _ in self.failures())

    def fell_back(self):
        """Operator: the ops that the CPU ran for it, with their counts of cases."""
        result = {}
        for name in sorted(self.ops):
            fallbacks = collections.Counter()
            for tally in self.tallies(name):
                fallbacks.update(tally["fallbacks"])
            if fallbacks:
                result[name] = dict(fallbacks)
        return result

    def other_strides(self):
        """Operators of which a case has other strides than the CPU: the first such case."""
        result = {}
        for name in sorted(self.ops):
            cases = [f"{tally['mode']} {tally['dtype']}: {case}" for tally in self.tallies(name) for case in tally["stride_failures"]]
            if cases:
                result[name] = cases[0]
        return result

    # ---- text

    def text(self, limit):
        fallbacks = [f"  {name}: {', '.join(f'{op} ({count})' for op, count in sorted(ops.items()))}"
                     for name, ops in self.fell_back().items()]
        parts = [self.rates(), "\n".join(self.coverage() + fallbacks), self.strides(), self._failures(limit)]
        return "\n\n".join(part for part in parts if part)

    def ran(self):
        """The operators with counted cases."""
        return [name for name in self.ops if any(tally["counted"] for tally in self.tallies(name))]

    def rates(self):
        modes = [mode for mode in MODES if self.total("counted", mode=mode)]
        rows = [["passed %", *modes, "all"]]
        for dtype in [*DTYPES, None]:
            where = {"dtype": dtype} if dtype else {}
            if self.total("counted", **where):
                cells = [_percent(self.total("passed", mode=mode, **where), self.total("counted", mode=mode, **where)) for mode in modes]
                rows.append([dtype or "all", *cells, _percent(self.total("passed", **where), self.total("counted", **where))])
        rows.append(["cases", *(str(self.total("counted", mode=mode)) for mode in modes), str(self.total("counted"))])
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)

    def coverage(self):
        fell_back, counted, ran = self.fell_back(), self.total("counted"), len(self.ran())
        crashed = [name for name, op in self.ops.items() if op["crash"]]
        return [
            f"operators: {len(self.ops)}, of which {ran} with counted cases; {len(crashed)} crashed or timed out; "
            f"{len({name for name, *_ in self.failures()})} with a failure",
            f"cases: {counted} counted, {self.total('passed')} passed, {self.total('random')} of them random (geometry and distribution "
            f"compared); {self.total('uncounted')} not counted (the CPU does not agree with itself, or has no such result)",
            f"on the plugin alone: {ran - len(fell_back)} operators, {counted - self.total('fell_back')} cases; "
            f"with an op on the CPU: {len(fell_back)} operators ({_percent(len(fell_back), ran)} %), {self.total('fell_back')} cases",
        ]

    def strides(self):
        compared = {name for name in self.ops if any(tally["strides"] for tally in self.tallies(name))}
        if not compared:
            return ""
        other = self.other_strides()
        lines = [f"strides as the CPU's ({', '.join(STRIDE_MODES)} inputs): {_percent(len(compared) - len(other), len(compared))} % of "
                 f"{len(compared)} operators, {_percent(self.total('same_strides'), self.total('strides'))} % of the cases"]
        return "\n".join(lines + [f"  {name}: {case}" for name, case in other.items()])

    def _failures(self, limit):
        causes = collections.defaultdict(list)
        for name, mode, dtype, sample, message in self.failures():
            causes[_cause(message)].append((name, mode, dtype, sample, message))
        lines = []
        for cause, cases in sorted(causes.items(), key=lambda item: -len(item[1])):
            names = sorted({case[0] for case in cases})
            lines.append(f"{len(cases)} cases of {len(names)} operators: {cause}")
            lines.append(f"  {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}")
            lines += ["    " + " ".join(filter(None, (name, mode, dtype, f"[{sample}]", message)))
                      for name, mode, dtype, sample, message in cases[:limit]]
        return "failures by cause\n" + "\n".join(lines) if lines else ""


def _cause(message):
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?|\[[^\]]*\]|\([^)]*\)|'[^']*'", "#", message)[:150]


def _percent(part, whole):
    """Rounded down: 100 means all."""
    return f"{int(part * 10000 / whole) / 100:.2f}" if whole else "-"
