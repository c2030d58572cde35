"use strict";
// Texts about what is selected: a node beside the graph, a line or a kernel in the bar at the bottom.

const listOf = (items) => items.length ? el("ul", {}, ...items) : "none";

// Time is measured for kernels: that of a node is its kernel's.
function kernelTexts(page, pane, node) {
  const program = page.program(pane);
  return node.kernels.map((number) => {
    const kernel = program.kernels[number], others = kernel.nodes.length - 1;
    const button = el("button", {type: "button", class: "kernel", onclick: () => page.selectKernel(pane, number, false)}, kernel.name);
    const time = kernel.ns ? `, ${timeText(PER_RUN(kernel))} per run${others ? " for the whole kernel" : ""}` : "";
    return el("li", {}, button, time, others ? `, with ${countText(others, "other op")}` : ", of this op only",
      kernel.note ? el("div", {class: "advice"}, kernel.note) : "");
  });
}

function describeNode(page, pane, index) {
  const {graph} = page.views[pane], node = graph.nodes[index], run = page.runs[pane];
  const link = (i, text) => el("button", {type: "button", class: "node", onclick: () => page.pickNode(pane, i, true)}, text);
  const inputs = node.inputs.map((value) => {
    if (graph.maker.has(value)) {
      const maker = graph.nodes[graph.maker.get(value)];
      const [, type] = maker.outputs.find(([number]) => number === value);
      return el("li", {}, link(maker.index, `%${value} ${maker.label}`), ` ${type}`);
    }
    const param = graph.params.get(value);
    if (!param) return el("li", {}, `%${value}`);
    return el("li", {}, `%${value} argument ${param.index}: ${param.type}${param.alias >= 0 ? `, may become result ${param.alias}` : ""}`);
  });
  const outputs = node.outputs.map(([value, type]) =>
    el("li", {}, `%${value} ${type}${graph.results.has(value) ? `, result ${graph.results.get(value)} of the program` : ""}`));
  const users = node.users.slice(0, 50).map((i) => el("li", {}, link(i, graph.nodes[i].label), ` ${graph.nodes[i].type}`));
  const line = lineOf(node.where), source = run.sourceOf.get(line);
  const kernels = page.program(pane).kernels.length ? [el("dt", {}, "Kernel"), el("dd", {}, node.kernels.length ? listOf(kernelTexts(page, pane, node)) : "none; it is computed where it is read")] : [];
  byId("node").replaceChildren(
    el("h3", {}, node.op), el("dl", {},
      el("dt", {}, "Line"), el("dd", {}, line ? lineButton(node.where) : "not known", source ? el("code", {}, source) : ""),
      ...kernels,
      el("dt", {}, "Results"), el("dd", {}, listOf(outputs)), el("dt", {}, "Inputs"), el("dd", {}, listOf(inputs)),
      el("dt", {}, "Attributes"), el("dd", {}, el("code", {}, node.attributes || "none")),
      el("dt", {}, "Used by"), el("dd", {}, listOf(users))));
}

function showBar(page, ...parts) {
  const clear = el("button", {type: "button", onclick: () => page.selectLine("", false)}, "Clear");
  byId("selection").replaceChildren(el("div", {}, ...parts), clear);
  byId("selection").hidden = !parts.length;
}

// The line with its events, its ops and its kernels. `facts`: of the event that was clicked.
function describeLine(page, line, facts) {
  const clicked = facts ? [el("p", {}, facts.join("; "))] : [];
  if (!line) return showBar(page, ...clicked);
  const run = page.runs[page.run], source = run.sourceOf.get(line) || page.runs[0].sourceOf.get(line) || "";
  const title = el("p", {}, el("b", {title: line}, shortLine(line)), " ", el("code", {}, source));
  showBar(page, title, ...clicked, programsOf(page, run), ...kernelsOf(page));
}

function programsOf(page, run) {
  const {events} = run, number = page.lineIn(run);
  let count = 0, time = 0;
  events.line.forEach((one, i) => {
    if (one !== number || page.timeline.isKernel(i)) return;
    count++;
    time += Math.max(events.self[i], 0);
  });
  const programs = run.nodesOf(run.lines[number] ?? "").map((nodes, i) => [nodes, run.programs[i], i]).filter(([nodes]) => nodes);
  return el("p", {}, count ? `${countText(count, "event")} of this line, ${timeText(time)}. ` : "No event of this line. ",
    programs.length ? "" : "It has no op in a program.",
    ...programs.slice(0, 6).flatMap(([nodes, program, i]) => {
      const text = `${countText(nodes, "op")} in program ${program.id}`;
      const button = el("button", {type: "button", class: "program", onclick: () => page.jump(i, page.line)}, text);
      return [button, ` (${countText(program.runs, "run")}, ${timeText(program.ns)}) `];
    }),
    programs.length > 6 ? `and in ${programs.length - 6} more` : "");
}

// Those that compute the selected line in the programs shown, a paragraph for each run.
function kernelsOf(page) {
  return page.runs.flatMap((run, pane) => {
    const kernels = [...page.kernelsIn(pane)].map((index) => page.program(pane).kernels[index]);
    if (!kernels.length) return [];
    kernels.sort((a, b) => b.ns - a.ns);
    const time = kernels.reduce((sum, kernel) => sum + PER_RUN(kernel), 0);
    const parts = kernels.slice(0, 5).flatMap((kernel, i) => [i ? ", " : "", el("button", {
      type: "button", class: "kernel", title: kernel.name, onclick: () => page.selectKernel(pane, kernel.index, true),
    }, cut(kernel.name, 32)), kernel.ns ? ` ${timeText(PER_RUN(kernel))}` : ""]);
    const name = page.runs.length > 1 ? `${run.name.split(":")[0]}: ` : "";
    if (kernels.length > 5) parts.push(`, and ${kernels.length - 5} more`);
    const all = time ? `${countText(kernels.length, "kernel")}, ${timeText(time)} per run: ` : `${countText(kernels.length, "kernel")}: `;
    return [el("p", {}, name, all, ...parts)];
  });
}

// `facts`: of the event that was clicked.
function describeKernel(page, pane, kernel, facts) {
  const program = page.program(pane);
  const time = kernel.ns ? `${timeText(PER_RUN(kernel))} per run, ${shareText(program, kernel)} of the program's kernels. ` : "";
  const bytes = kernel.bytes ? `${sizeText(kernel.bytes)} read and written. ` : "";
  showBar(page, el("p", {}, el("b", {}, kernel.name), ` kernel ${kernel.index} of program ${program.id}. `),
    el("p", {}, time, countText(kernel.nodes.length, "op"), ". ", bytes, kernel.note),
    el("p", {}, ...kernel.lines.slice(0, 8).flatMap((line) => [lineButton(line), " "])), ...(facts ? [el("p", {}, facts.join("; "))] : []));
}
