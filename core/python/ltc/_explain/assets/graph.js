"use strict";
// The graph of a program: a layered layout, and a canvas to look at it.

const NODE_KINDS = [
  ["matrix", "products and convolutions", /mm$|addmm|bmm|baddbmm|matmul|linear|convolution|attention|einsum|^dot$|mv$|addr$/],
  ["reduce", "sums, norms, losses", /sum|mean|softmax|norm|loss|var|std|arg(max|min)|^a?(max|min)$|^(any|all)$|prod|cum|pool|sort/],
  ["index", "indices", /index|gather|scatter|embedding|masked|take|put|one_hot|nonzero/],
  ["shape", "shapes", /shape|view|permute|transpose|expand|slice|select|squeeze|flatten|^t$|cat|stack|split|stride|repeat|flip|pad|roll/],
  ["make", "constants and random numbers", /philox|full|arange|zeros|ones|eye|rand|linspace|empty|scalar_tensor|constant/],
  ["cast", "conversions", /^_?to|convert|cast|copy/],
  ["math", "element by element", /./],
];
const WIDTH = 150, HEIGHT = 38, GAP_X = 18, GAP_Y = 24, MOST_IN_ROW = 12, FAR = 8, STEP = WIDTH + GAP_X, PULL = 0.9;

const baseName = (op) => op.replace(/^.*::/, "").replace(/\..*$/, "");
const kindOf = (op) => NODE_KINDS.find(([, , pattern]) => pattern.test(baseName(op)))[0];
const withoutStrides = (type) => type.replace(/;.*\]$/, "]");

// A program's nodes with texts, users and places, from the arrays of graphs.py.
function readGraph(run, packed) {
  const params = new Map(packed.params.map(([value, type, alias], i) => [value, {index: i, type: run.strings[type], alias}]));
  const maker = new Map();
  const nodes = packed.nodes.map(([op, where, attributes, inputs, results], i) => {
    const outputs = [];
    for (let k = 0; k < results.length; k += 2) {
      outputs.push([results[k], run.strings[results[k + 1]]]);
      maker.set(results[k], i);
    }
    const type = outputs.length ? withoutStrides(outputs[0][1]) + (outputs.length > 1 ? ` +${outputs.length - 1}` : "") : "";
    const name = run.strings[op];
    return {index: i, op: name, label: name.replace(/^aten::/, ""), kind: kindOf(name), where: run.strings[where],
            attributes: run.strings[attributes], inputs, outputs, type, users: [], before: []};
  });
  for (const node of nodes) {
    node.before = [...new Set(node.inputs.filter((value) => maker.has(value)).map((value) => maker.get(value)))];
    for (const i of node.before) nodes[i].users.push(node.index);
  }
  const lines = run.lineNumbers(packed.nodes.map((node) => node[1]));
  const graph = {nodes, params, maker, lines, results: new Map(packed.outputs.map((value, i) => [value, i]))};
  layOut(graph);
  return graph;
}

// Gives each node x and y. A node stands as near above its users as it can. The nodes of a longest path stand in one column, the spine;
// the others of a rank are ordered by the places of their neighbours. Edges over many ranks do not count for that. Dagre was tried: it
// makes a dummy node for each rank that an edge crosses, 180,000 for GPT-2, and takes seconds even without those edges.
function layOut(graph) {
  const {nodes} = graph;
  const rank = new Int32Array(nodes.length);
  for (const node of nodes) for (const i of node.before) rank[node.index] = Math.max(rank[node.index], rank[i] + 1);
  const earliest = rank.slice();
  for (let i = nodes.length - 1; i >= 0; i--) {
    if (nodes[i].users.length) rank[i] = nodes[i].users.reduce((least, user) => Math.min(least, rank[user]), Infinity) - 1;
  }
  const ranks = [];
  nodes.forEach((node, i) => (ranks[rank[i]] ||= []).push(node));
  const isSpine = new Uint8Array(nodes.length);
  const depth = earliest.reduce((most, one) => Math.max(most, one), 0);
  for (let i = earliest.indexOf(depth); i >= 0; i = nodes[i].before.find((k) => earliest[k] === rank[i] - 1) ?? -1) isSpine[i] = 1;
  const near = nodes.map((node) => ({
    above: node.before.filter((i) => rank[node.index] - rank[i] <= FAR),
    below: node.users.filter((i) => rank[i] - rank[node.index] <= FAR),
  }));
  for (const row of ranks) {
    const middle = Math.max(row.findIndex((node) => isSpine[node.index]), 0);
    // By turns on both sides of the spine.
    row.filter((node, i) => i !== middle).forEach((node, i) => { node.x = (i % 2 ? -1 : 1) * (1 + (i >> 1)) * STEP; });
    row[middle].x = 0;
  }
  for (let sweep = 0; sweep < 6; sweep++) {
    if (sweep % 2) for (let k = ranks.length - 1; k >= 0; k--) place(ranks[k], nodes, isSpine, (node) => near[node.index].below);
    else for (const row of ranks) place(row, nodes, isSpine, (node) => near[node.index].above);
  }
  let y = 0;
  for (const row of ranks) {
    const lines = Math.ceil(row.length / MOST_IN_ROW);
    row.forEach((node, i) => {
      node.y = y + (lines > 1 ? Math.floor(i / MOST_IN_ROW) * (HEIGHT + 8) : 0);
      if (lines > 1) node.x = (i % MOST_IN_ROW - (MOST_IN_ROW >> 1)) * STEP;
    });
    y += HEIGHT + GAP_Y + (lines - 1) * (HEIGHT + 8);
  }
  const left = nodes.reduce((least, node) => Math.min(least, node.x), 0);
  for (const node of nodes) node.x -= left;
  graph.middle = WIDTH / 2 - left;  // of the spine
  graph.width = nodes.reduce((most, node) => Math.max(most, node.x), 0) + WIDTH;
  graph.height = y;
  graph.edges = nodes.flatMap((node) => node.before.map((i) => ({from: nodes[i], to: node, isFar: rank[node.index] - rank[i] > FAR})));
}

// Puts the nodes of a rank in the columns where their neighbours are on average, a little nearer to the spine, and without overlap.
function place(row, nodes, isSpine, neighbours) {
  for (const node of row) {
    const others = neighbours(node);
    const sum = others.reduce((sum, i) => sum + nodes[i].x, 0);
    if (others.length && !isSpine[node.index]) node.x = Math.round(PULL * sum / others.length / STEP) * STEP;
  }
  row.sort((a, b) => a.x - b.x || a.index - b.index);
  const middle = Math.max(row.findIndex((node) => isSpine[node.index]), 0);
  for (let i = middle + 1; i < row.length; i++) row[i].x = Math.max(row[i].x, row[i - 1].x + STEP);
  for (let i = middle - 1; i >= 0; i--) row[i].x = Math.min(row[i].x, row[i + 1].x - STEP);
}

class GraphView {
  // `picked` gets the index of a node that is clicked, or -1.
  constructor(container, title, picked) {
    this.title = el("p", {class: "pane-title"}, title);
    const label = "Graph of the program. Arrow keys move, plus and minus zoom, Home shows it from the top.";
    this.canvas = el("canvas", {tabindex: "0", role: "img", "aria-label": label});
    this.map = el("canvas", {class: "map", "aria-hidden": "true"});
    this.empty = el("p", {class: "hint", hidden: ""});
    container.append(el("div", {class: "pane"}, this.title, this.empty, el("div", {class: "views"}, this.canvas, this.map)));
    Object.assign(this, {picked, graph: null, chosen: -1, line: -1, found: new Set(), changes: null, transform: d3.zoomIdentity});
    this.draw = inNextFrame(() => this.drawNow());
    this.zoom = d3.zoom().scaleExtent([0.005, 3]).on("zoom", () => {
      this.transform = d3.event.transform;
      this.draw();
    });
    this.selection = d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("click", (event) => this.picked(this.at(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("mousemove", (event) => {
      this.canvas.style.cursor = this.graph && this.at(event.offsetX, event.offsetY) >= 0 ? "pointer" : "grab";
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    const jump = (event) => {
      if (event.buttons && this.graph) this.to(this.graph.middle, event.offsetY / this.map.clientHeight * this.graph.height);
    };
    for (const name of ["pointerdown", "pointermove"]) this.map.addEventListener(name, jump);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // `graph` is null where there is none; `why` then says why.
  show(graph, name, why) {
    Object.assign(this, {graph, chosen: -1, found: new Set(), changes: null});
    this.title.textContent = name;
    this.empty.textContent = why;
    this.empty.hidden = Boolean(graph);
    if (graph) this.fit();
    this.draw();
  }

  // From the top, with the whole width where the texts stay readable.
  fit() {
    const scale = Math.min(1, Math.max(this.canvas.clientWidth / (this.graph.width + 40), 0.55));
    const left = this.graph.width * scale + 20 < this.canvas.clientWidth ? (this.canvas.clientWidth - this.graph.width * scale) / 2
      : this.canvas.clientWidth / 2 - this.graph.middle * scale;
    this.selection.call(this.zoom.transform, d3.zoomIdentity.translate(left, 16).scale(scale));
  }

  // Moves a point of the graph to the middle.
  to(x, y, scale = this.transform.k) {
    const identity = d3.zoomIdentity.translate(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2);
    this.selection.call(this.zoom.transform, identity.scale(scale).translate(-x, -y));
  }

  // `isMoved`: the node comes to the middle, with texts that can be read.
  choose(index, isMoved, scale = this.transform.k) {
    this.chosen = index;
    const node = this.graph && this.graph.nodes[index];
    if (node && isMoved) this.to(node.x + WIDTH / 2, node.y + HEIGHT / 2, Math.max(scale, 0.6));
    this.draw();
  }

  // Marks the nodes of a line, if the graph has any.
  highlight(line) {
    this.line = this.graph && this.graph.lines.includes(line) ? line : -1;
    this.draw();
  }

  key(event) {
    const step = 80 / this.transform.k;
    const moves = {ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step],
                   PageUp: [0, 6 * step], PageDown: [0, -6 * step]};
    const scales = {"+": 1.3, "=": 1.3, "-": 1 / 1.3};
    if (!this.graph) return;
    if (moves[event.key]) this.selection.call(this.zoom.translateBy, ...moves[event.key]);
    else if (scales[event.key]) this.selection.call(this.zoom.scaleBy, scales[event.key]);
    else if (event.key === "Home") this.fit();
    else return;
    event.preventDefault();
  }

  at(canvasX, canvasY) {
    if (!this.graph) return -1;
    const [x, y] = this.transform.invert([canvasX, canvasY]);
    return this.graph.nodes.findIndex((node) => x >= node.x && x <= node.x + WIDTH && y >= node.y && y <= node.y + HEIGHT);
  }

  drawNow() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const context = prepare(this.canvas, width, height);
    if (!this.graph || !width) return prepare(this.map, this.map.clientWidth, this.map.clientHeight);
    const {x, y, k} = this.transform;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
    const seen = {left: -x / k, top: -y / k, right: (width - x) / k, bottom: (height - y) / k};
    this.drawEdges(context, seen);
    for (const node of this.graph.nodes) {
      const isSeen = node.x < seen.right && node.x + WIDTH > seen.left && node.y < seen.bottom && node.y + HEIGHT > seen.top;
      if (isSeen) this.drawNode(context, node, k);
    }
    this.drawMap(seen);
  }

  drawEdges(context, seen) {
    for (const {from, to, isFar} of this.graph.edges) {
      if (to.y < seen.top || from.y + HEIGHT > seen.bottom) continue;
      const isChosen = from.index === this.chosen || to.index === this.chosen;
      const x1 = from.x + WIDTH / 2, y1 = from.y + HEIGHT, x2 = to.x + WIDTH / 2, y2 = to.y;
      const bend = Math.min((y2 - y1) / 2, 60);
      context.strokeStyle = colours.get(isChosen ? "link" : "edge");
      context.lineWidth = (isChosen ? 2 : 1) / Math.min(this.transform.k, 1);
      context.globalAlpha = isChosen || this.line < 0 ? 1 : 0.4;
      context.beginPath();
      context.moveTo(x1, y1);
      if (isFar && !isChosen) {
        // Only its ends, so that it does not hide what lies between.
        context.lineTo(x1 + 10, y1 + 14);
        context.moveTo(x2 - 10, y2 - 14);
        context.lineTo(x2, y2);
      } else if (isFar) {
        const side = Math.min(from.x, to.x) + WIDTH + GAP_X / 2;  // between two columns
        context.bezierCurveTo(x1, y1 + bend, side, y1, side, y1 + 2 * bend);
        context.lineTo(side, y2 - 2 * bend);
        context.bezierCurveTo(side, y2, x2, y2 - bend, x2, y2);
      } else {
        context.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
      }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  drawNode(context, node, k) {
    const isMarked = this.line >= 0 && this.graph.lines[node.index] === this.line;
    const isFound = this.found.has(node.index);
    context.globalAlpha = this.line < 0 || isMarked || isFound || node.index === this.chosen ? 1 : 0.35;
    context.fillStyle = colours.get("page");
    context.fillRect(node.x, node.y, WIDTH, HEIGHT);
    context.fillStyle = colours.get(`k-${node.kind}-soft`);
    context.fillRect(node.x, node.y, WIDTH, HEIGHT);
    context.fillStyle = colours.get(`k-${node.kind}`);
    context.fillRect(node.x, node.y, k < 0.25 ? WIDTH : 5, HEIGHT);
    this.drawFrame(context, node, isMarked, isFound, k);
    if (k >= 0.35) {
      context.textBaseline = "middle";
      context.fillStyle = colours.get("text");
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(cut(node.label, 21), node.x + 11, node.y + 12, WIDTH - 16);
      context.fillStyle = colours.get("soft");
      context.font = "11px ui-monospace, monospace";
      context.fillText(cut(node.type, 22), node.x + 11, node.y + 27, WIDTH - 16);
    }
    context.globalAlpha = 1;
  }

  drawFrame(context, node, isMarked, isFound, k) {
    const change = this.changes ? this.changes[node.index] : 0;
    const frames = [[node.index === this.chosen, "text", 3], [isFound, "found", 3], [isMarked, "link", 3],
                    [change === ONLY_HERE, "only", 4], [change === DIFFERS, "differs", 4]];
    const [, colour, width] = frames.find(([holds]) => holds) || [true, "edge", 1];
    context.strokeStyle = colours.get(colour);
    context.lineWidth = width / Math.min(Math.max(k, 0.2), 1);
    context.strokeRect(node.x, node.y, WIDTH, HEIGHT);
    if (change && k >= 0.35) {
      context.fillStyle = colours.get(change === ONLY_HERE ? "only" : "differs");
      context.font = "700 14px system-ui, sans-serif";
      context.fillText(change === ONLY_HERE ? "+" : "~", node.x + WIDTH - 14, node.y + 12);
    }
  }

  // The whole graph beside it, as high as the canvas.
  drawMap(seen) {
    const width = this.map.clientWidth, height = this.map.clientHeight;
    const context = prepare(this.map, width, height);
    const scaleX = (width - 8) / this.graph.width, scaleY = height / this.graph.height;
    const tall = Math.max(Math.min(HEIGHT * scaleY, 8), 1);
    const draw = (node, colour, grow) => {
      context.fillStyle = colours.get(colour);
      context.fillRect(4 + node.x * scaleX - grow, node.y * scaleY - grow / 2, Math.max(WIDTH * scaleX, 2) + 2 * grow, tall + grow);
    };
    for (const node of this.graph.nodes) draw(node, `k-${node.kind}`, 0);
    for (const node of this.graph.nodes) {
      const change = this.changes ? this.changes[node.index] : 0;
      if (change) draw(node, change === ONLY_HERE ? "only" : "differs", 1);
      if (this.line >= 0 && this.graph.lines[node.index] === this.line) draw(node, "link", 1);
      if (this.found.has(node.index)) draw(node, "found", 1);
      if (node.index === this.chosen) draw(node, "text", 2);
    }
    context.strokeStyle = colours.get("text");
    context.lineWidth = 1.5;
    const top = Math.max(seen.top * scaleY, 0.75), bottom = Math.min(seen.bottom * scaleY, height - 0.75);
    context.strokeRect(0.75, top, width - 1.5, Math.max(bottom - top, 3));
  }
}

const ONLY_HERE = 1, DIFFERS = 2;
const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
