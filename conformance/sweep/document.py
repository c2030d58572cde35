"""docs/operators.md: what the last full sweep found, with the reason of each fallback."""

from .tables import FALLBACKS

_TEXT = """# Operators

Every operator of PyTorch's operator database (`torch.testing._internal.common_methods_invocations.op_db`), run on device `ltc` with the
plugin `{plugin}` and compared with the CPU. Written by `LTC_BACKEND={plugin} ./dev sweep {choices}
--document docs/operators.md`; do not edit.

```
{rates}
```

{coverage}

## Ops that the CPU runs at once

{count} of {ran} operators call an op that cannot be part of a program, in any of their cases. Each such call is counted in
`ltc.metrics` under the op's name.

| Operator | Ops on the CPU | Reason |
|---|---|---|
{rows}

## Strides

{strides}
"""


def unexplained(report):
    """Ops that fell back and have no reason in the table."""
    return sorted({op for ops in report.fell_back().values() for op in ops} - FALLBACKS.keys())


def document(report, plugin, choices):
    fell_back = report.fell_back()
    rows = [f"| {name} | {', '.join(f'`{op}`' for op in sorted(ops))} | {'; '.join(sorted({FALLBACKS[op] for op in ops}))} |"
            for name, ops in fell_back.items()]
    return _TEXT.format(plugin=plugin, choices=choices, rates=report.rates(), coverage="\n".join(report.coverage()),
                        count=len(fell_back), ran=len(report.ran()), rows="\n".join(rows), strides=report.strides())
