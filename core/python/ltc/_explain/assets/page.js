"use strict";
// Puts the parts together: one line is selected at a time, in the tables, the timeline and the graphs.

const byId = (id) => document.getElementById(id);

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
  run.events = readEvents(run);
  run.graphs = new Map();
  run.graph = (position) => {
    const program = run.programs[position];
    if (!program || !program.graph) return null;
    if (!run.graphs.has(position)) run.graphs.set(position, readGraph(run, program.graph));
    return run.graphs.get(position);
  };
  // How many nodes of each program are of a line, without their layout.
  const nodesOf = (graph, line) => graph ? graph.nodes.filter((node) => lineOf(run.strings[node[1]]) === line).length : 0;
  run.nodesOf = (line) => run.programs.map((program) => nodesOf(program.graph, line));
  return run;
}

class Page {
  constructor(runs) {
    Object.assign(this, {runs, run: 0, shown: runs.map(() => -1), line: "", node: null});
    this.timeline = new Timeline(byId("time"), byId("tip"), (index) => this.pickEvent(index));
    this.views = runs.map((run, i) => new GraphView(byId("panes"), run.name, (index) => this.pickNode(i, index)));
    this.listPrograms();
    this.connect();
    legend(byId("kinds"), NODE_KINDS.map(([kind, text]) => [kind, text]));
    const marks = [el("span", {class: "only"}, "+ only in this run"), el("span", {class: "differs"}, "~ other types or attributes")];
    if (runs.length > 1) byId("kinds").append(...marks);
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
    this.views.forEach((view) => view.draw());
  }

  showRun(number) {
    this.run = number;
    this.timeline.show(this.runs[number]);
    this.timeline.highlight(this.lineIn(this.runs[number]));
    const {events, strings} = this.runs[number];
    const names = new Set(events.name.map((name) => strings[name]));
    const entries = new Map([...names].map((name) => [EVENT_KINDS[name] || name, name]));
    legend(byId("legend"), [...entries].map(([text, name]) => [name, text]));
  }

  lineIn(run) { return this.line && run.lineIndex.has(this.line) ? run.lineIndex.get(this.line) : this.line ? -2 : -1; }

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
    this.runs.forEach((run, i) => {
      const program = run.programs[this.shown[i]];
      const problem = program?.problem ? `The graph could not be read: ${program.problem}` : "The graph is left out.";
      const prefix = this.runs.length > 1 ? `${run.name}, ` : "";
      const title = program ? `${prefix}program ${program.id}: ${countText(program.ops, "op")}` : run.name;
      this.views[i].show(run.graph(this.shown[i]), title, program ? problem : "No program of this run matches.");
      this.rows[i].forEach((row, k) => row.classList.toggle("chosen", k === this.shown[i]));
    });
    this.compareNodes();
    this.find(byId("node-search").value);
    this.views.forEach((view, i) => view.highlight(this.lineIn(this.runs[i])));
  }

  // The node of pane `to` that is the same as a node of pane `from`, or -1.
  counterpart(from, index, to) {
    const pairs = (i) => this.runs[i].programs[this.shown[i]]?.pairs;
    if (from === to) return index;
    if (!this.views[from].graph || !this.views[to].graph || index < 0) return -1;
    const base = from ? pairs(from)?.[index] ?? -1 : index;
    return base < 0 || !to ? base : (pairs(to) ?? []).indexOf(base);
  }

  compareNodes() {
    this.views.forEach((view, i) => {
      const others = this.views.map((other, k) => k).filter((k) => k !== i && this.views[k].graph);
      if (!view.graph || !others.length) return;
      view.changes = view.graph.nodes.map((node, index) => {
        const same = others.map((k) => this.views[k].graph.nodes[this.counterpart(i, index, k)]);
        if (same.some((other) => !other)) return ONLY_HERE;
        const facts = (one) => one.attributes + one.outputs.map(([, type]) => type).join();
        return same.some((other) => facts(other) !== facts(node)) ? DIFFERS : 0;
      });
      const count = (kind) => view.changes.filter((change) => change === kind).length;
      view.title.append(`; ${count(ONLY_HERE)} only here, ${count(DIFFERS)} with other types or attributes`);
    });
  }

  // ---- selection

  pickNode(pane, index) {
    this.chooseNode(pane, index, false);
    const node = index >= 0 && this.views[pane].graph.nodes[index];
    this.selectLine(node ? lineOf(node.where) : "", false);
  }

  chooseNode(pane, index, isMoved) {
    this.node = index < 0 ? null : {pane, index};
    this.views.forEach((view, i) => view.choose(this.counterpart(pane, index, i), i !== pane || isMoved, this.views[pane].transform.k));
    if (index >= 0) this.describeNode(pane, index);
  }

  pickEvent(index) {
    const run = this.runs[this.run], {events} = run;
    const position = run.programs.findIndex((program) => program.id === events.program[index]);
    if (position >= 0 && this.shown[this.run] !== position) this.showProgram(this.run, position);
    const where = run.strings[events.where[index]];
    this.selectLine(lineOf(where), false, this.timeline.describe(index));
  }

  // Marks a line everywhere. `isMoved`: the graph shows its first node, of another program if need be. `facts`: of the event clicked.
  selectLine(line, isMoved, facts = null) {
    this.line = line;
    if (isMoved && line) {
      const counts = this.runs[0].nodesOf(line);
      if (!counts[this.shown[0]] && counts.some((count) => count)) this.showProgram(0, counts.findIndex((count) => count));
    }
    this.timeline.highlight(this.lineIn(this.runs[this.run]));
    this.views.forEach((view, i) => view.highlight(this.lineIn(this.runs[i])));
    const pane = isMoved ? this.views.findIndex((view) => view.line >= 0) : -1;
    if (pane >= 0) this.chooseNode(pane, this.views[pane].graph.lines.indexOf(this.views[pane].line), true);
    document.querySelectorAll("tr[data-line]").forEach((row) => row.classList.toggle("chosen", Boolean(line) && row.dataset.line === line));
    this.describeLine(line, facts);
  }

  // The bar at the bottom: the line, its ops, and the time of its events and programs.
  describeLine(line, facts) {
    const bar = byId("selection");
    bar.hidden = !line && !facts;
    if (bar.hidden) return;
    const parts = [];
    if (facts) parts.push(el("p", {}, facts.join("; ")));
    if (line) {
      const run = this.runs[this.run], {events} = run, number = this.lineIn(run);
      const source = run.sourceOf.get(line) || this.runs[0].sourceOf.get(line) || "";
      parts.unshift(el("p", {}, el("b", {title: line}, shortLine(line)), " ", el("code", {}, source)));
      let count = 0, time = 0;
      events.line.forEach((one, i) => {
        if (one !== number) return;
        count++;
        time += Math.max(events.self[i], 0);
      });
      const programs = run.nodesOf(line).map((nodes, i) => [nodes, run.programs[i], i]).filter(([nodes]) => nodes);
      parts.push(el("p", {}, count ? `${countText(count, "event")} of this line, ${timeText(time)}. ` : "No event of this line. ",
        programs.length ? "" : "It has no op in a program.",
        ...programs.slice(0, 6).flatMap(([nodes, program, i]) => {
          const text = `${countText(nodes, "op")} in program ${program.id}`;
          const button = el("button", {type: "button", class: "program", onclick: () => this.jump(i, line)}, text);
          return [button, ` (${countText(program.runs, "run")}, ${timeText(program.ns)}) `];
        }),
        programs.length > 6 ? `and in ${programs.length - 6} more` : ""));
    }
    bar.replaceChildren(el("div", {}, ...parts), el("button", {type: "button", onclick: () => this.selectLine("", false)}, "Clear"));
  }

  jump(position, line) {
    this.showProgram(this.run, position);
    this.selectLine(line, true);
    byId("programs").scrollIntoView();
  }

  // ---- one node

  describeNode(pane, index) {
    const view = this.views[pane], {graph} = view, node = graph.nodes[index], run = this.runs[pane];
    const link = (i, text) => el("button", {type: "button", class: "node", onclick: () => {
      this.chooseNode(pane, i, true);
      this.selectLine(lineOf(graph.nodes[i].where), false);
    }}, text);
    const inputs = node.inputs.map((value) => {
      if (graph.maker.has(value)) {
        const maker = graph.nodes[graph.maker.get(value)];
        const [, type] = maker.outputs.find(([number]) => number === value);
        return el("li", {}, link(maker.index, `%${value} ${maker.label}`), ` ${type}`);
      }
      const {index, type, alias} = graph.params.get(value);
      return el("li", {}, `%${value} argument ${index}: ${type}${alias >= 0 ? `, may become result ${alias}` : ""}`);
    });
    const outputs = node.outputs.map(([value, type]) =>
      el("li", {}, `%${value} ${type}${graph.results.has(value) ? `, result ${graph.results.get(value)} of the program` : ""}`));
    const users = node.users.slice(0, 50).map((i) => el("li", {}, link(i, graph.nodes[i].label), ` ${graph.nodes[i].type}`));
    const line = lineOf(node.where), lineButton = {type: "button", class: "line", "data-line": line, title: node.where};
    const list = (items) => items.length ? el("ul", {}, ...items) : "none";
    byId("node").replaceChildren(
      el("h3", {}, node.op), el("dl", {},
        el("dt", {}, "Line"), el("dd", {}, line ? el("button", lineButton, shortLine(node.where)) : "not known",
          run.sourceOf.has(line) ? el("code", {}, run.sourceOf.get(line)) : ""),
        el("dt", {}, "Results"), el("dd", {}, list(outputs)), el("dt", {}, "Inputs"), el("dd", {}, list(inputs)),
        el("dt", {}, "Attributes"), el("dd", {}, el("code", {}, node.attributes || "none")),
        el("dt", {}, "Used by"), el("dd", {}, list(users))));
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

// ---- the parts that need no data

function makeThemeSwitch(redraw) {
  const themes = ["auto", "light", "dark"];
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = `Theme: ${theme}`;
    redraw();
  };
  byId("theme").addEventListener("click", () => set(themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function makeTables() {
  const table = byId("findings-table"), body = table.tBodies[0];
  byId("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const row of body.rows) row.hidden = !`${row.textContent} ${row.dataset.line}`.toLowerCase().includes(wanted);
  });
  table.querySelectorAll("[data-sort]").forEach((button) => button.addEventListener("click", () => {
    const column = Number(button.dataset.sort), head = button.closest("th");
    const isDown = column < 3 ? head.ariaSort !== "descending" : head.ariaSort === "ascending";
    table.querySelectorAll("th").forEach((other) => { other.ariaSort = "none"; });
    head.ariaSort = isDown ? "descending" : "ascending";
    const value = (row) => column < 3 ? Number(row.cells[column].dataset.n) : row.cells[column].textContent;
    const order = (a, b) => column < 3 ? value(a) - value(b) : value(a).localeCompare(value(b));
    body.append(...[...body.rows].sort((a, b) => isDown ? order(b, a) : order(a, b)));
  }));
  document.querySelector("nav").append(...[...document.querySelectorAll("main > section[id]")].map((section) =>
    el("a", {href: `#${section.id}`}, section.querySelector("h2").firstChild.textContent.trim())));
}

async function start() {
  let page = null;
  makeThemeSwitch(() => page && page.redraw());
  makeTables();
  const data = await Promise.all([...document.querySelectorAll("script.run")].map((script) => unpack(script.textContent)));
  page = new Page(data.map(readRun));
  // In frames after the first, for tests: how long it took from the opening of the page until all was drawn.
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.drawn = Math.round(performance.now()); }));
}

start().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = typeof DecompressionStream === "undefined"
    ? "The timeline and the graphs need a newer browser, one with DecompressionStream."
    : `The timeline and the graphs cannot be shown: ${error.message}`;
  document.documentElement.dataset.failed = String(error.stack);
});
