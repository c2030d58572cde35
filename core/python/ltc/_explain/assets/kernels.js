"use strict";
// The kernels of a program: which ops each one computes, how long it takes, and why it computes no more.

const MOST_KERNELS = 60;  // rows at first
const PER_RUN = (kernel) => kernel.runs ? kernel.ns / kernel.runs : 0;

const NUMBERS = new Set(["#", "Time", "Share", "Ops"]);

// Kernels of a program from the arrays of pack.py, and the numbers of those of each node.
function readKernels(run, program) {
  program.kernels = (program.kernels || []).map(([name, nodes, note, bytes, runs, ns, inStep], index) => {
    const lines = [...new Set(nodes.map((i) => lineOf(run.strings[program.graph.nodes[i][1]])))].filter(Boolean);
    return {index, name: run.strings[name], nodes, note: run.strings[note], bytes, runs, ns, inStep, lines};
  });
  program.kernelAt = new Map(program.kernels.map((kernel) => [`${kernel.inStep} ${kernel.name}`, kernel]));  // as events name them
  program.kernelsOf = new Map();
  for (const kernel of program.kernels) {
    for (const node of kernel.nodes) program.kernelsOf.set(node, [...program.kernelsOf.get(node) || [], kernel.index]);
  }
  program.kernelTime = program.kernels.reduce((sum, kernel) => sum + PER_RUN(kernel), 0);
}

function shareText(program, kernel) {
  const share = 100 * PER_RUN(kernel) / program.kernelTime;
  return share && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

function lineButton(where) {
  return el("button", {type: "button", class: "line", "data-line": lineOf(where), title: where}, shortLine(where));
}

class KernelTable {
  // `picked` gets the index of a kernel that is clicked.
  constructor(container, picked) {
    this.title = el("small");
    this.body = el("div", {class: "scroll list wide", tabindex: "0", role: "region", "aria-label": "Kernels"});
    this.box = el("details", {open: ""}, el("summary", {}, "Kernels ", this.title), this.body);
    container.append(this.box);
    Object.assign(this, {picked, rows: []});
  }

  show(program) {
    this.program = program;
    this.box.hidden = !program?.kernels.length;
    this.rows = [];
    if (this.box.hidden) return;
    const time = program.kernelTime ? `, ${timeText(program.kernelTime)} per run` : "";
    this.title.textContent = `${program.kernels.length.toLocaleString("en")}${time}`;
    this.fill(MOST_KERNELS);
  }

  // The first `most` rows in the order of execution.
  fill(most) {
    const {kernels, kernelTime} = this.program;
    const columns = ["#", "Kernel", ...(kernelTime ? ["Time", "Share"] : []), "Ops", "Lines", "Why it is not fused"];
    const head = columns.map((text, i) => el("th", {scope: "col", "aria-sort": "none", class: NUMBERS.has(text) ? "n" : null},
      el("button", {type: "button", "data-sort": i}, text)));
    this.rows = kernels.slice(0, most).map((kernel) => this.row(kernel));
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...this.rows));
    const all = el("button", {type: "button", onclick: () => this.fill(Infinity)}, `Show all ${kernels.length.toLocaleString("en")} kernels`);
    this.body.replaceChildren(table, kernels.length > most ? all : "");
    makeSortable(table);
    if (this.marked) this.mark(this.marked);
  }

  row(kernel) {
    const number = (value, text) => el("td", {class: "n", "data-n": value}, text);
    const times = [number(PER_RUN(kernel), timeText(PER_RUN(kernel))), number(PER_RUN(kernel), shareText(this.program, kernel))];
    const more = kernel.lines.length > 2 ? `and ${kernel.lines.length - 2} more` : "";
    const name = el("button", {type: "button", class: "kernel", onclick: () => this.picked(kernel.index)}, kernel.name);
    return el("tr", {}, number(-kernel.index, String(kernel.index)), el("td", {}, name), ...(this.program.kernelTime ? times : []),
      number(kernel.nodes.length, String(kernel.nodes.length)),
      el("td", {}, ...kernel.lines.slice(0, 2).map((line) => el("div", {}, lineButton(line))), more),
      el("td", {}, kernel.note));
  }

  // Marks the rows of a set of kernels. The first of them comes into view.
  mark(kernels) {
    this.marked = kernels;
    if (kernels.size && Math.max(...kernels) >= this.rows.length && this.rows.length) this.fill(Infinity);
    this.rows.forEach((row, i) => row.classList.toggle("chosen", kernels.has(i)));
    const first = this.rows.find((row, i) => kernels.has(i));
    if (!first) return;
    const above = first.offsetTop - this.body.scrollTop;
    if (above < 40 || above > this.body.clientHeight - 40) this.body.scrollTop = first.offsetTop - this.body.clientHeight / 3;
  }
}
