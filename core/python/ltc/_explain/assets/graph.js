"use strict";
// A canvas to look at a graph.

const GROUP_COLOURS = ["blue", "orange", "teal", "pink", "ochre", "purple"];  // of kernels, by turns
const CHANGES = [null, ["only", "+"], ["differs", "~"], ["removed", "\u2212"]];

class GraphView {
  // `picked` gets the index of a node that is clicked, or -1.
  constructor(container, title, picked) {
    this.title = el("p", {class: "pane-title"}, title);
    this.stages = el("div", {class: "stages", role: "group", "aria-label": "Stages of the graph"});
    const label = "Graph of the program. Arrow keys move, plus and minus zoom, Home shows it from the top.";
    this.canvas = el("canvas", {tabindex: "0", role: "img", "aria-label": label});
    this.map = el("canvas", {class: "map", "aria-hidden": "true"});
    this.empty = el("p", {class: "hint", hidden: ""});
    container.append(this.title, this.stages, this.empty, el("div", {class: "views"}, this.canvas, this.map));
    Object.assign(this, {picked, graph: null, chosen: -1, isMarked: null, found: new Set(), changes: null, transform: d3.zoomIdentity});
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

  // `graph` is null where there is none; `why` then says why. `keepsPlace`: it is another stage of the graph that is shown.
  show(graph, name, why, keepsPlace = false) {
    const move = keepsPlace && graph && this.graph ? this.moveTo(graph) : null;
    const chosen = keepsPlace && graph && this.chosen >= 0 ? graph.byId.get(this.graph.nodes[this.chosen].id) ?? -1 : -1;
    Object.assign(this, {graph, chosen, found: new Set(), isMarked: null, changes: graph && graph.changes});
    this.title.textContent = name;
    this.empty.textContent = why;
    this.empty.hidden = Boolean(graph);
    if (move) this.selection.call(this.zoom.translateBy, ...move);
    else if (graph) this.fit();
    this.draw();
  }

  // How far `other` has moved the chosen node, or the one nearest to the middle that both graphs have. Null: they have none.
  moveTo(other) {
    const [x, y] = this.transform.invert([this.canvas.clientWidth / 2, this.canvas.clientHeight / 2]);
    const away = (node) => node.index === this.chosen ? -1 : Math.hypot(node.x + WIDTH / 2 - x, node.y + HEIGHT / 2 - y);
    const common = this.graph.nodes.filter((node) => other.byId.has(node.id));
    if (!common.length) return null;
    const from = common.reduce((nearest, node) => away(node) < away(nearest) ? node : nearest);
    const to = other.nodes[other.byId.get(from.id)];
    return [from.x - to.x, from.y - to.y];
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

  // Marks the nodes that a function holds for, if the graph has any. Null: marks none.
  highlight(isMarked) {
    this.isMarked = isMarked && this.graph && this.graph.nodes.some(isMarked) ? isMarked : null;
    this.draw();
  }

  firstMarked() { return this.isMarked ? this.graph.nodes.findIndex(this.isMarked) : -1; }

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
    this.drawGroups(context, seen);
    this.drawEdges(context, seen);
    for (const node of this.graph.nodes) {
      const isSeen = node.x < seen.right && node.x + WIDTH > seen.left && node.y < seen.bottom && node.y + HEIGHT > seen.top;
      if (isSeen) this.drawNode(context, node, k);
    }
    this.drawMap(seen);
  }

  // A halo around the nodes of each kernel that has several, and bands between them.
  drawGroups(context, seen) {
    const isSeen = (node) => node.y < seen.bottom && node.y + HEIGHT > seen.top;
    const colour = (kernel) => colours.get(GROUP_COLOURS[kernel % GROUP_COLOURS.length]);
    context.globalAlpha = this.isMarked ? 0.12 : 0.3;
    context.lineWidth = 26;
    for (const {from, to, isFar} of this.graph.edges) {
      const kernel = from.group;
      if (kernel < 0 || kernel !== to.group || isFar || to.y < seen.top || from.y > seen.bottom) continue;
      context.strokeStyle = colour(kernel);
      context.beginPath();
      context.moveTo(from.x + WIDTH / 2, from.y + HEIGHT + 7);
      context.lineTo(to.x + WIDTH / 2, to.y - 7);
      context.stroke();
    }
    for (const node of this.graph.nodes) {
      if (node.group < 0 || !isSeen(node)) continue;
      context.fillStyle = colour(node.group);
      context.fillRect(node.x - 7, node.y - 7, WIDTH + 14, HEIGHT + 14);
    }
    context.globalAlpha = 1;
  }

  drawEdges(context, seen) {
    for (const {from, to, isFar} of this.graph.edges) {
      if (to.y < seen.top || from.y + HEIGHT > seen.bottom) continue;
      const isChosen = from.index === this.chosen || to.index === this.chosen;
      const x1 = from.x + WIDTH / 2, y1 = from.y + HEIGHT, x2 = to.x + WIDTH / 2, y2 = to.y;
      const bend = Math.min((y2 - y1) / 2, 60);
      context.strokeStyle = colours.get(isChosen ? "link" : "edge");
      context.lineWidth = (isChosen ? 2 : 1) / Math.min(this.transform.k, 1);
      context.globalAlpha = isChosen || !this.isMarked ? 1 : 0.4;
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
    const isMarked = Boolean(this.isMarked && this.isMarked(node));
    const isFound = this.found.has(node.index);
    context.globalAlpha = !this.isMarked || isMarked || isFound || node.index === this.chosen ? 1 : 0.35;
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
    const [changed, mark] = CHANGES[change] || [];
    const frames = [[node.index === this.chosen, "text", 3], [isFound, "found", 3], [isMarked, "link", 3], [change, changed, 4]];
    const [, colour, width] = frames.find(([holds]) => holds) || [true, "edge", 1];
    context.strokeStyle = colours.get(colour);
    context.lineWidth = width / Math.min(Math.max(k, 0.2), 1);
    context.setLineDash(change === REMOVED ? [8, 5] : []);
    context.strokeRect(node.x, node.y, WIDTH, HEIGHT);
    context.setLineDash([]);
    if (change && k >= 0.35) {
      context.fillStyle = colours.get(changed);
      context.font = "700 14px system-ui, sans-serif";
      context.fillText(mark, node.x + WIDTH - 14, node.y + 12);
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
      if (change) draw(node, CHANGES[change][0], 1);
      if (this.isMarked && this.isMarked(node)) draw(node, "link", 1);
      if (this.found.has(node.index)) draw(node, "found", 1);
      if (node.index === this.chosen) draw(node, "text", 2);
    }
    context.strokeStyle = colours.get("text");
    context.lineWidth = 1.5;
    const top = Math.max(seen.top * scaleY, 0.75), bottom = Math.min(seen.bottom * scaleY, height - 0.75);
    context.strokeRect(0.75, top, width - 1.5, Math.max(bottom - top, 3));
  }
}

const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
