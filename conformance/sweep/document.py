"""The results of a sweep, as a page, with the reason of each op that the CPU ran."""

from .tables import reasons

_TEXT = """# Operators on {plugin}

Every operator of PyTorch's operator database (`torch.testing._internal.common_methods_invocations.op_db`), run on device `ltc` with the
plugin `{plugin}` and compared with the CPU. Written by `LTC_BACKEND={plugin} ./dev sweep {choices}
--document {file}`; do not edit.

```
{rates}
```

{coverage}

## Ops on the CPU

{count} of {ran} operators call an op that the plugin does not run, in any of their cases. Each such call is counted in
`ltc.metrics` under the op's name. The reasons are those of the op table, [opset.md](opset.md), or, where only some calls of an op are
concerned, of `conformance/sweep/tables.py`.

| Operator | Ops on the CPU | Reason |
|---|---|---|
{rows}

## Strides

{strides}
"""


def unexplained(report):
    """Ops that fell back and have no reason in the table."""
    return sorted({op for ops in report.fell_back().values() for op in ops} - reasons().keys())


def document(report, plugin, choices, file):
    fell_back, why = report.fell_back(), reasons()
    rows = [f"| {name} | {', '.join(f'`{op}`' for op in sorted(ops))} | {' '.join(sorted({why[op] for op in ops}))} |"
            for name, ops in fell_back.items()]
    return _TEXT.format(plugin=plugin, choices=choices, file=file, rates=report.rates(), coverage="\n".join(report.coverage()),
                        count=len(fell_back), ran=len(report.ran()), rows="\n".join(rows), strides=report.strides())
