"""Tables of the page that set several runs side by side: their findings, and the kernels of each line."""

from html import escape

from .costs import spent_in_programs, without_backward
from .graphs import Strings, parse
from .markup import MOST_ROWS, change, letter, line_button
from .text import time_text


def comparison(runs: list[dict], names: list[str]) -> str:
    """Findings of all runs, matched by cause and line, or by cause and text where the line has moved. The largest change stands first."""
    table: dict[tuple, list[dict | None]] = {}
    for i, run in enumerate(runs):
        by_text = {(row[0]["cause"], row[0]["source"]): key for key, row in table.items() if row[0]}
        for finding in run["findings"]:
            key = finding["cause"], finding["where"]
            if key not in table and finding["source"]:
                moved = by_text.get((finding["cause"], finding["source"]))
                key = moved if moved and table[moved][i] is None else key
            table.setdefault(key, [None] * len(runs))[i] = finding
    rows = sorted(table.values(), key=lambda row: -max(abs(_ms(one) - _ms(row[0])) for one in row))
    head = "".join(f'<th scope="col" class="n">{letter(name)}</th>' for name in names)
    body = "".join(_compared(row) for row in rows[:MOST_ROWS])
    left = f"<p>{len(rows) - MOST_ROWS} rows with smaller changes are left out.</p>" if len(rows) > MOST_ROWS else ""
    return (f'<section id="compare"><h2>Comparison</h2><ul>{"".join(f"<li>{escape(name)}</li>" for name in names)}</ul>'
            f'<div class="scroll"><table><thead><tr>{head}<th scope="col">Line</th><th scope="col">What it is</th></tr></thead>'
            f"<tbody>{body}</tbody></table></div>{left}</section>")


def _ms(finding: dict | None) -> float:
    return finding["ms"] if finding else 0.0


def _compared(row: list[dict | None]) -> str:
    first = next(finding for finding in row if finding)
    cells = []
    for i, one in enumerate(row):
        time = f"{time_text(one['ms'])} <small>{one['count']:,}x</small>" if one and one["count"] else "yes" if one else "none"
        cells.append(f'<td class="n">{time}{change(_ms(one), _ms(row[0])) if i else ""}</td>')
    line = f'<td>{line_button(first["where"])}<code>{escape(first["source"])}</code></td>'
    return f'<tr data-line="{escape(without_backward(first["where"]))}">{"".join(cells)}{line}<td>{escape(first["what"])}</td></tr>'


def lines_table(runs: list[dict], names: list[str]) -> str:
    """The cost of each line of Python on the device; nothing where no run knows kernels."""
    by_run = [{_in_first(line, run, runs[0]): cost for line, cost in _by_line(run).items()} for run in runs]
    if not any(by_run):
        return ""
    rows = {line: [costs.get(line, (0.0, 0, 0)) for costs in by_run] for line in dict.fromkeys(line for costs in by_run for line in costs)}
    is_timed = any(row[0] for costs in by_run for row in costs.values())
    order = sorted(rows, key=lambda line: max(rows[line]), reverse=True)[:MOST_ROWS]
    sources = {line: text for run in reversed(runs) for line, text in run.get("sources", {}).items()}
    title = "Time of its kernels" if is_timed else "Kernels"
    head = "".join(f'<th scope="col" class="n">{letter(name) if len(names) > 1 else title}</th>' for name in names)
    body = "".join(f'<tr data-line="{escape(line)}"><td>{line_button(line)}<code>{escape(sources.get(line, ""))}</code></td>'
                   f"{''.join(_line_cells(rows[line], is_timed))}</tr>" for line in order)  # fmt: skip
    left = f"<p>{len(rows) - MOST_ROWS} lines that cost less are left out.</p>" if len(rows) > MOST_ROWS else ""
    note = "Kernels are timed in some of the runs; the times are for all." if is_timed else "The plugin times no kernels."
    return (f'<section id="lines"><h2>Lines and kernels <small>{len(rows)}</small></h2>'
            f'<p class="hint">{note} A kernel of several lines counts in full at each of them.</p>'
            f'<div class="scroll list wide" tabindex="0" role="region" aria-label="Lines"><table><thead><tr><th scope="col">Line</th>'
            f"{head}</tr></thead><tbody>{body}</tbody></table></div>{left}</section>")


def _in_first(line: str, run: dict, first: dict) -> str:
    """A line as the first run knows it: where it has moved, the one line of a file of that name with the same text."""
    sources, text = first.get("sources", {}), run.get("sources", {}).get(line)
    if not text or sources.get(line) == text:
        return line
    file = line.split("/")[-1].split(":")[0]
    same = [other for other, other_text in sources.items() if other_text == text and other.split("/")[-1].split(":")[0] == file]
    return same[0] if len(same) == 1 else line


def _by_line(run: dict) -> dict[str, tuple[float, int, int]]:
    """By line: the time in ms of its kernels in all runs, their number, and the number of ops of the line in them."""
    costs: dict[str, tuple[float, int, int]] = {}
    spent = spent_in_programs(run["events"])
    for program in run["programs"]:
        if not program.get("kernels"):
            continue
        strings = Strings()
        try:
            nodes = parse(program["graph"], strings)["nodes"]
        except ValueError:  # the page says so beside the graph
            continue
        _, runs = spent.get(program["id"], (0, 0))
        for kernel in program["kernels"]:
            lines = [without_backward(strings.all[nodes[i][1]]) for i in kernel["nodes"]]
            for line in filter(None, dict.fromkeys(lines)):
                ms, count, ops = costs.get(line, (0.0, 0, 0))
                per_run = kernel["ns"] / max(kernel["runs"], 1) / 1e6
                costs[line] = ms + per_run * runs, count + 1, ops + lines.count(line)
    return costs


def _line_cells(row: list[tuple[float, int, int]], is_timed: bool) -> list[str]:
    cells = []
    for i, (ms, count, ops) in enumerate(row):
        kernels = f"{count:,} kernel{'s' * (count != 1)}, {ops:,} op{'s' * (ops != 1)}" if count else "none"
        time = f"{time_text(ms)} <small>{kernels}</small>" if is_timed and count else kernels
        cells.append(f'<td class="n">{time}{change(ms, row[0][0], 0.001) if i else ""}</td>')
    return cells
