"use strict";
// Puts the parts together: one line or one kernel is selected at a time, in the tables, the timeline, the graphs and the memory plans.

// A run of the report with numbers for lines, the same with and without "(in its backward)".
function readRun(data) {
  const run = {...data, lines: [""], lineIndex: new Map([["", -1]])};
  const cache = new Map();
  run.lineNumber = (text) => {
    const line = lineOf(text);
    if (!run.lineIndex.has(line)) {
      run.lineIndex.set(line, run.lines.length);
      run.lines.push(line);
    }
    return run.lineIndex.get(line);
  };
  run.lineNumbers = (strings) => Int32Array.from(strings, (number) => {
    if (!cache.has(number)) cache.set(number, run.lineNumber(run.strings[number]));
    return cache.get(number);
  });
  run.sourceOf = new Map();
  for (let i = 0; i < data.sources.length; i += 2) run.sourceOf.set(run.strings[data.sources[i]], run.strings[data.sources[i + 1]]);
  // The number of a line of this or another run, or -2: a line that has moved has the same text in a file of the same name.
  run.findLine = (line, source) => {
    const known = run.lineIndex.get(line) ?? -2;
    if (!source || run.sourceOf.get(line) === source) return known;
    const [, file, number] = /([^/]*):(\d+)$/.exec(line) ?? [];
    const moved = [...run.sourceOf].filter(([other, text]) => text === source && /([^/]*):\d+$/.exec(other)?.[1] === file)
      .map(([other]) => [Math.abs(other.split(":").at(-1) - number), other]).sort((a, b) => a[0] - b[0]);
    return moved.length ? run.lineNumber(moved[0][1]) : known;
  };
  run.events = readEvents(run);
  for (const program of run.programs) readKernels(run, program);
  // The stages of a program, and the graph of one of them, made when they are asked for.
  const stages = new Map(), graphs = new Map();
  const once = (made, key, make) => made.has(key) ? made.get(key) : made.set(key, make()).get(key);
  run.stages = (program) => program?.graph ? once(stages, program, () => readStages(run, program)) : [];
  run.graph = (program, stage) => once(graphs, run.stages(program)[stage], () => readGraph(run, program, run.stages(program), stage));
  // How many nodes of each program are of a line, without their layout.
  const nodesOf = (graph, line) => graph && line ? graph.nodes.filter((node) => lineOf(run.strings[node[1]]) === line).length : 0;
  run.nodesOf = (line) => run.programs.map((program) => nodesOf(program.graph, line));
  return run;
}

class Page {
  constructor(runs) {
    Object.assign(this, {runs, run: 0, shown: runs.map(() => -1), line: "", kernel: null});
    this.timeline = new Timeline(byId("time"), byId("tip"), (index) => this.pickEvent(index));
    const boxes = runs.map(() => el("div", {class: "pane"}));
    byId("panes").append(...boxes);
    this.views = boxes.map((box, i) => new GraphView(box, runs[i].name, (index) => this.pickNode(i, index, false)));
    this.tables = boxes.map((box, i) => new KernelTable(box, (kernel) => this.selectKernel(i, kernel, true)));
    this.plans = boxes.map((box, i) => new MemoryPlan(box, byId("tip"), (value) => this.pickValue(i, value)));
    this.listPrograms();
    this.connect();
    legend(byId("kinds"), NODE_KINDS.map(([kind, text]) => [kind, text]));
    byId("kinds").append(byId("marks"));
    this.showRun(0);
    const first = runs[0].programs.findIndex((program) => program.graph);
    if (first >= 0 || runs[0].programs.length) this.showProgram(0, Math.max(first, 0));
    else byId("panes").hidden = true;
  }

  connect() {
    byId("run").append(...this.runs.map((run, i) => el("option", {value: i}, run.name)));
    byId("run").addEventListener("change", (event) => this.showRun(Number(event.target.value)));
    document.querySelector(".run-choice").hidden = this.runs.length < 2;
    document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
      ({in: () => this.timeline.by(1.6), out: () => this.timeline.by(1 / 1.6), all: () => this.timeline.all()})[button.dataset.zoom]();
    }));
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button.line");
      if (button) this.selectLine(button.dataset.line, true);
    });
    byId("node-search").addEventListener("input", (event) => this.find(event.target.value));
    byId("node-search").addEventListener("keydown", (event) => event.key === "Enter" && this.next());
    byId("next").addEventListener("click", () => this.next());
    byId("fit").addEventListener("click", () => this.views.forEach((view) => view.graph && view.fit()));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.selectLine("", false));
  }

  redraw() {
    colours.known.clear();
    this.timeline.draw();
    [...this.views, ...this.plans].forEach((part) => part.draw());
  }

  showRun(number) {
    this.run = number;
    this.timeline.show(this.runs[number]);
    this.markEvents();
    const {events, strings} = this.runs[number];
    const names = new Set(events.name.map((name) => strings[name]));
    const entries = new Map([...names].map((name) => [EVENT_KINDS[name] || name, name]));
    legend(byId("legend"), [...entries].map(([text, name]) => [name, text]));
  }

  // The number of the selected line in a run, -1 where none is selected, -2 where the run has it not.
  lineIn(run) {
    const source = this.runs.map((one) => one.sourceOf.get(this.line)).find(Boolean);
    return this.line ? run.findLine(this.line, source) : -1;
  }

  program(pane) { return this.runs[pane].programs[this.shown[pane]]; }

  // ---- programs

  listPrograms() {
    const many = this.runs.length > 1;
    const head = [...(many ? ["Run"] : []), "Program", "Ops", "Runs", "Time", "Parts on the CPU", "From the disk"];
    const body = el("tbody");
    this.rows = this.runs.map((run, i) => run.programs.map((program, position) => {
      const name = el("button", {type: "button", class: "program", onclick: () => this.showProgram(i, position)}, `program ${program.id}`);
      const cells = [...(many ? [run.name.split(":")[0]] : []), name, program.ops.toLocaleString("en"), program.runs.toLocaleString("en"),
        program.runs ? timeText(program.ns) : "", program.host_steps || "", program.from_disk ? "yes" : ""];
      const row = el("tr", {}, ...cells.map((cell, k) => el("td", {class: cell === name || (many && !k) ? null : "n"}, cell)));
      body.append(row);
      return row;
    }));
    const titles = el("tr", {}, ...head.map((text) => el("th", {scope: "col"}, text)));
    byId("program-list").append(el("table", {}, el("thead", {}, titles), body));
    if (!body.children.length) byId("program-list").replaceChildren(el("p", {class: "hint"}, "No program ran."));
  }

  // Shows a program, and in the other panes the programs that match it.
  showProgram(number, position) {
    const base = number ? this.runs[number].programs[position].base ?? -1 : position;
    const match = (run, i) => base < 0 || i === 0 ? base : run.programs.findIndex((program) => program.base === base);
    this.shown = this.runs.map((run, i) => i === number ? position : match(run, i));
    this.stages = this.runs.map((run, i) => run.stages(this.program(i)).length - 1);
    this.runs.forEach((run, i) => {
      this.showGraph(i, false);
      this.tables[i].show(this.program(i));
      this.plans[i].show(run, this.program(i), this.views[i].graph);
      this.rows[i].forEach((row, k) => row.classList.toggle("chosen", k === this.shown[i]));
    });
    this.afterShowing();
  }

  // Shows a stage of the program, in all panes that have a stage of that name.
  showStage(pane, number) {
    const nth = (i, k) => this.runs[i].stages(this.program(i)).slice(0, k + 1).filter((stage, _, all) => stage.name === all.at(-1).name).length;
    const {name} = this.runs[pane].stages(this.program(pane))[number];
    this.runs.forEach((run, i) => {
      const stages = run.stages(this.program(i));
      const same = stages.findIndex((stage, k) => stage.name === name && nth(i, k) === nth(pane, number));
      if (i !== pane && same < 0) return;
      this.stages[i] = i === pane ? number : same;
      this.showGraph(i, true);
    });
    this.afterShowing();
  }

  showGraph(pane, keepsPlace) {
    const run = this.runs[pane], program = this.program(pane), view = this.views[pane], stages = run.stages(program);
    const graph = stages.length ? run.graph(program, this.stages[pane]) : null;
    const problem = program?.problem ? `The graph could not be read: ${program.problem}` : "The graph is left out.";
    const prefix = this.runs.length > 1 ? `${run.name}, ` : "";
    const count = graph ? stages[this.stages[pane]].nodes.length : program?.ops;
    const title = program ? `${prefix}program ${program.id}: ${countText(count, "op")}` : run.name;
    view.show(graph, title, program ? problem : "No program of this run matches.", keepsPlace);
    const buttons = stages.map((stage, k) => el("button",
      {type: "button", "aria-pressed": String(k === this.stages[pane]), onclick: () => this.showStage(pane, k)}, stage.name));
    const hadFocus = view.stages.contains(document.activeElement);
    view.stages.replaceChildren(...(buttons.length > 1 ? buttons : []));
    if (hadFocus) buttons[this.stages[pane]].focus();
  }

  afterShowing() {
    this.describeChanges();
    this.find(byId("node-search").value);
    this.markSelection();
  }

  // The node of pane `to` that is the same as a node of pane `from`, or -1.
  counterpart(from, index, to) {
    if (from === to) return index;
    const [graph, other] = [this.views[from].graph, this.views[to].graph];
    if (!graph || !other || index < 0) return -1;
    const areRecorded = [graph, other].every((one) => !one.isPass && !one.isFinal);
    const pairs = (i) => this.program(i)[areRecorded ? "recorded" : "pairs"] ?? (areRecorded ? null : []);  // null: they are equal
    const id = areRecorded ? index : graph.nodes[index].id;
    const base = from && pairs(from) ? pairs(from)[id] ?? -1 : id;
    const found = to && pairs(to) && base >= 0 ? pairs(to).indexOf(base) : base;
    return areRecorded ? found : other.byId.get(found) ?? -1;
  }

  // Says what a pass has changed, or what differs between the final graphs of runs.
  describeChanges() {
    const isPass = this.views.some((view) => view.graph?.isPass);
    const texts = isPass ? [["only", "+ added by the pass"], ["differs", "~ changed"], ["removed", "\u2212 removed"]]
      : this.runs.length > 1 ? [["only", "+ only in this run"], ["differs", "~ other types or attributes"]] : [];
    byId("marks").replaceChildren(...texts.map(([kind, text]) => el("span", {class: kind}, text)));
    this.views.forEach((view, i) => {
      if (!view.graph) return;
      const count = (kind) => view.changes.filter((change) => change === kind).length.toLocaleString("en");
      if (view.graph.isPass) {
        view.title.append(` after ${view.graph.name}; ${count(ONLY_HERE)} added, ${count(DIFFERS)} changed, ${count(REMOVED)} removed`);
        return;
      }
      if (!view.graph.isFinal) view.title.append(" as recorded");
      if (!isPass && this.compareNodes(view, i)) {
        view.title.append(`; ${count(ONLY_HERE)} only here, ${count(DIFFERS)} with other types or attributes`);
      }
    });
  }

  // Whether there is a graph to compare with.
  compareNodes(view, i) {
    const others = this.views.map((other, k) => k).filter((k) => k !== i && this.views[k].graph);
    if (!others.length) return false;
    view.changes = view.graph.nodes.map((node, index) => {
      const same = others.map((k) => this.views[k].graph.nodes[this.counterpart(i, index, k)]);
      if (same.some((other) => !other)) return ONLY_HERE;
      const facts = (one) => one.attributes + one.outputs.map(([, type]) => type).join();
      return same.some((other) => facts(other) !== facts(node)) ? DIFFERS : 0;
    });
    return true;
  }

  // ---- selection

  pickNode(pane, index, isMoved) {
    this.chooseNode(pane, index, isMoved);
    const node = index >= 0 && this.views[pane].graph.nodes[index];
    this.selectLine(node ? lineOf(node.where) : "", false);
  }

  pickValue(pane, value) {
    if (!this.views[pane].graph.isFinal) this.showStage(pane, this.runs[pane].stages(this.program(pane)).length - 1);
    const index = this.views[pane].graph.maker.get(value) ?? -1;
    if (index >= 0) this.pickNode(pane, index, true);
  }

  chooseNode(pane, index, isMoved) {
    this.views.forEach((view, i) => view.choose(this.counterpart(pane, index, i), i !== pane || isMoved, this.views[pane].transform.k));
    if (index >= 0) describeNode(this, pane, index);
    this.markKernels();
  }

  pickEvent(index) {
    const run = this.runs[this.run], {events} = run;
    const position = run.programs.findIndex((program) => program.id === events.program[index]);
    if (position >= 0 && this.shown[this.run] !== position) this.showProgram(this.run, position);
    const facts = this.timeline.describe(index);
    const kernel = this.kernelOf(index);
    if (kernel) {
      this.selectKernel(this.run, kernel.index, true, facts);
    } else {
      this.selectLine(lineOf(run.strings[events.where[index]]), false, facts);
    }
  }

  // Marks a line everywhere. `isMoved`: the graph shows its first node, of another program if need be. `facts`: of the event clicked.
  selectLine(line, isMoved, facts = null) {
    Object.assign(this, {line, kernel: null});
    if (isMoved && line) {
      const counts = this.runs[0].nodesOf(line);
      if (!counts[this.shown[0]] && counts.some((count) => count)) this.showProgram(0, counts.findIndex((count) => count));
    }
    this.markSelection();
    if (isMoved) this.moveToMarked();
    describeLine(this, line, facts);
  }

  // Marks a kernel, and those of the other runs that compute the same nodes.
  selectKernel(pane, index, isMoved, facts = null) {
    const {nodes} = this.program(pane).kernels[index];
    const same = (i) => i === pane ? [index] : nodes.flatMap((node) => {
      const own = this.views[i].graph?.nodes[this.counterpart(pane, this.views[pane].graph.byId.get(node) ?? -1, i)];
      return own ? own.kernels : [];
    });
    Object.assign(this, {line: "", kernel: {pane, index, sets: this.runs.map((run, i) => new Set(same(i)))}});
    this.markSelection();
    if (isMoved) this.moveToMarked();
    describeKernel(this, pane, this.program(pane).kernels[index], facts);
  }

  moveToMarked() {
    const first = this.kernel && this.views[this.kernel.pane].isMarked ? this.kernel.pane : this.views.findIndex((view) => view.isMarked);
    if (first >= 0) this.chooseNode(first, this.views[first].firstMarked(), true);
  }

  markSelection() {
    this.views.forEach((view, i) => {
      const line = this.lineIn(this.runs[i]), kernels = this.kernel?.sets[i];
      view.highlight(kernels ? (node) => node.kernels.some((kernel) => kernels.has(kernel))
        : line !== -1 ? (node) => view.graph.lines[node.index] === line : null);
    });
    this.markEvents();
    this.markKernels();
    const isChosen = (row) => Boolean(this.line) && row.dataset.line === this.line;
    document.querySelectorAll("tr[data-line]").forEach((row) => row.classList.toggle("chosen", isChosen(row)));
  }

  // The kernels of the pane that are selected or compute the line that is.
  kernelsIn(pane) {
    if (this.kernel) return this.kernel.sets[pane];
    const line = this.runs[pane].lines[this.lineIn(this.runs[pane])];
    const kernels = line ? this.program(pane)?.kernels ?? [] : [];
    return new Set(kernels.filter((kernel) => kernel.lines.includes(line)).map((kernel) => kernel.index));
  }

  markKernels() {
    this.runs.forEach((run, i) => {
      const kernels = this.kernelsIn(i), view = this.views[i];
      this.tables[i].mark(kernels);
      this.plans[i].mark(kernels, view.graph?.nodes[view.chosen]?.outputs[0]?.[0] ?? -1);
    });
  }

  markEvents() {
    const run = this.runs[this.run], {events} = run, line = this.lineIn(run), program = this.program(this.run);
    const kernels = this.kernelsIn(this.run);
    const isOne = (i) => kernels.size > 0 && events.program[i] === program.id && kernels.has(this.kernelOf(i)?.index);
    this.timeline.highlight(this.kernel ? isOne : line !== -1 ? (i) => events.line[i] === line || isOne(i) : null);
  }

  // The kernel of an event of the program shown, or nothing.
  kernelOf(event) {
    const {ops, reason, program} = this.runs[this.run].events, shown = this.program(this.run);
    if (!shown || shown.id !== program[event] || !this.timeline.isKernel(event)) return undefined;
    return shown.kernelAt.get(`${ops[event]} ${this.runs[this.run].strings[reason[event]]}`);
  }

  jump(position, line) {
    this.showProgram(this.run, position);
    this.selectLine(line, true);
    byId("programs").scrollIntoView();
  }

  // ---- search

  find(text) {
    const wanted = text.trim().toLowerCase();
    let count = 0;
    this.views.forEach((view) => {
      const texts = (node) => [node.op, node.type, node.where, node.attributes, ...node.outputs.map(([value]) => `%${value}`)].join(" ");
      const nodes = wanted && view.graph ? view.graph.nodes.filter((node) => texts(node).toLowerCase().includes(wanted)) : [];
      view.found = new Set(nodes.map((node) => node.index));
      count += view.found.size;
      view.draw();
    });
    byId("found").textContent = wanted ? countText(count, "node") : "";
  }

  next() {
    const pane = this.views.findIndex((view) => view.found.size);
    if (pane < 0) return;
    const found = [...this.views[pane].found];
    this.chooseNode(pane, found.find((i) => i > this.views[pane].chosen) ?? found[0], true);
  }
}
