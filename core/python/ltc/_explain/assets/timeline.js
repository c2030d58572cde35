"use strict";
// The events of a run on a canvas: a lane per thread, queue and device, with a row for each depth of nesting.

const EVENT_KINDS = {
  compile: "compiling", load: "reading a program", barrier: "queueing a step", read: "reading a value", wait: "waiting", send: "sending",
  fallback: "op on the CPU", import: "import", execute: "program", device: "program", host_step: "part on the CPU", upload: "upload",
  download: "download", kernel: "kernel", copy_from_peer: "copy between devices", resize: "resize", recover: "repeating a failed run",
};
const ROW = 20, TITLE = 22, AXIS = 24;

// Columns of a run's events as typed arrays.
function readEvents(run) {
  const {columns, lanes} = run.events;
  const count = columns.begin.length;
  const events = {count, lanes, begin: new Float64Array(count), end: new Float64Array(count)};
  let time = 0;
  for (let i = 0; i < count; i++) {
    time += columns.begin[i];
    events.begin[i] = time;
    events.end[i] = time + columns.length[i];
  }
  const asTheyAre = ["name", "reason", "detail", "where", "lane", "row", "self", "run", "program", "ops", "bytes"];
  for (const name of asTheyAre) events[name] = columns[name];
  events.rows = lanes.map(([, depth]) => Array.from({length: depth}, () => []));
  for (let i = 0; i < count; i++) events.rows[events.lane[i]][events.row[i]].push(i);
  events.line = run.lineNumbers(events.where);
  events.last = events.end.reduce((a, b) => Math.max(a, b), 1);
  events.first = count ? Math.min(events.begin[0], events.last) : 0;
  return events;
}

class Timeline {
  // `picked` gets the index of an event that is clicked.
  constructor(canvas, tip, picked) {
    Object.assign(this, {canvas, tip, picked, isMarked: false, chosen: -1, transform: d3.zoomIdentity});
    this.draw = inNextFrame(() => this.drawNow());
    this.zoom = d3.zoom().on("zoom", () => {
      this.transform = d3.event.transform;
      this.hideTip();
      this.draw();
    });
    this.selection = d3.select(canvas).call(this.zoom).on("dblclick.zoom", null).style("touch-action", "pan-y");
    canvas.addEventListener("mousemove", (event) => this.hover(event));
    canvas.addEventListener("mouseleave", () => this.hideTip());
    canvas.addEventListener("click", (event) => {
      const index = this.at(event.offsetX, event.offsetY);
      this.chosen = index;
      if (index >= 0) this.picked(index);
      this.draw();
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  show(run) {
    this.run = run;
    this.events = run.events;
    this.chosen = -1;
    this.height = AXIS + this.events.rows.reduce((sum, rows) => sum + TITLE + rows.length * ROW, 0) + 8;
    this.canvas.style.height = `${this.height}px`;
    this.resize();
    this.all();
  }

  resize() {
    if (!this.run) return;
    this.width = this.canvas.clientWidth;
    const box = [[0, 0], [this.width, this.height]];
    this.zoom.extent(box).translateExtent(box).scaleExtent([1, Math.max(this.span() / 1000, 1)]);
    this.draw();
  }

  span() { return Math.max(this.events.last - this.events.first, 1); }
  x(ns) { return this.transform.applyX((ns - this.events.first) / this.span() * this.width); }
  ns(x) { return this.events.first + this.transform.invertX(x) / this.width * this.span(); }
  by(factor) { this.selection.call(this.zoom.scaleBy, factor); }
  all() { this.selection.call(this.zoom.transform, d3.zoomIdentity); }

  key(event) {
    const step = 60 / this.transform.k;
    const action = {
      ArrowLeft: () => this.selection.call(this.zoom.translateBy, step, 0),
      ArrowRight: () => this.selection.call(this.zoom.translateBy, -step, 0),
      "+": () => this.by(1.5), "=": () => this.by(1.5), "-": () => this.by(1 / 1.5), Home: () => this.all(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // Marks the events whose index a function holds for. Null: none.
  highlight(isMarked) {
    this.isMarked = Boolean(isMarked);
    this.marked = this.events.rows.map((rows) => rows.map((row) => isMarked ? row.filter(isMarked) : []));
    this.draw();
  }

  // The event at a point, or -1. Narrow ones are found within three pixels.
  at(x, y) {
    let top = AXIS;
    for (const rows of this.events.rows) {
      top += TITLE;
      const row = Math.floor((y - top) / ROW);
      if (row >= 0 && row < rows.length) {
        const events = rows[row];
        const after = firstIndex(events.length, (i) => this.x(this.events.begin[events[i]]) > x);
        const near = [after - 1, after].filter((i) => i >= 0 && i < events.length).map((i) => {
          const [left, right] = [this.x(this.events.begin[events[i]]), this.x(this.events.end[events[i]])];
          return {index: events[i], away: Math.max(left - x, x - right, 0)};
        }).sort((a, b) => a.away - b.away);
        return near.length && near[0].away <= 3 ? near[0].index : -1;
      }
      top += rows.length * ROW;
    }
    return -1;
  }

  hover(event) {
    const index = this.at(event.offsetX, event.offsetY);
    this.canvas.style.cursor = index >= 0 ? "pointer" : "grab";
    if (index < 0) return this.hideTip();
    showTip(this.tip, event, this.describe(index));
  }

  hideTip() { this.tip.hidden = true; }

  isKernel(i) { return this.run.strings[this.events.name[i]] === "kernel"; }

  nameOf(i) {
    const {events, run} = this, name = run.strings[events.name[i]];
    return this.isKernel(i) ? run.strings[events.reason[i]] : EVENT_KINDS[name] || name;
  }

  // Texts about an event, the first of which names it.
  describe(i) {
    const {events, run} = this;
    const texts = [`${this.nameOf(i)}, ${timeText(events.end[i] - events.begin[i])}`];
    if (events.self[i] < 0.99 * (events.end[i] - events.begin[i])) texts.push(`${timeText(Math.max(events.self[i], 0))} of it by itself`);
    if (events.reason[i] && !this.isKernel(i)) texts.push(`reason: ${run.strings[events.reason[i]]}`);
    if (events.where[i]) texts.push(`line: ${shortLine(run.strings[events.where[i]])}`);
    if (events.detail[i]) texts.push(run.strings[events.detail[i]]);
    if (events.program[i]) texts.push(`program ${events.program[i]}${events.run[i] ? `, run ${events.run[i]}` : ""}`);
    if (events.ops[i] && !this.isKernel(i)) texts.push(countText(events.ops[i], "op"));
    if (events.bytes[i]) texts.push(sizeText(events.bytes[i]));
    return texts;
  }

  drawNow() {
    if (!this.run) return;
    const context = prepare(this.canvas, this.width, this.height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawAxis(context);
    let top = AXIS;
    this.events.rows.forEach((rows, lane) => {
      context.fillStyle = colours.get("soft");
      context.fillText(this.events.lanes[lane][0], 6, top + TITLE / 2 + 2);
      top += TITLE;
      context.fillStyle = colours.get("panel");
      context.fillRect(0, top, this.width, rows.length * ROW);
      rows.forEach((row, depth) => {
        context.globalAlpha = this.isMarked ? 0.3 : 1;
        this.drawRow(context, row, top);
        context.globalAlpha = 1;
        if (this.isMarked) this.drawRow(context, this.marked[lane][depth], top);
        top += ROW;
      });
    });
  }

  // The first of the events that lie within one pixel stands for all.
  drawRow(context, row, top) {
    const {events} = this;
    const from = this.ns(-2), to = this.ns(this.width + 2);
    let i = firstIndex(row.length, (i) => events.end[row[i]] >= from);
    while (i < row.length && events.begin[row[i]] <= to) {
      const left = this.x(events.begin[row[i]]), right = this.x(events.end[row[i]]);
      this.drawEvent(context, row[i], Math.max(left, -2), Math.min(right, this.width + 2), top + 1);
      const next = right - left < 1 ? this.ns(left + 1) : 0;
      i += next ? Math.max(firstIndex(row.length - i, (k) => events.end[row[i + k]] >= next), 1) : 1;
    }
  }

  drawEvent(context, event, left, right, top) {
    const name = this.run.strings[this.events.name[event]], text = this.nameOf(event);
    const width = Math.max(right - left - (right - left > 3 ? 1 : 0), 1), height = ROW - 2;
    context.fillStyle = colours.get(`k-${name}`);
    context.fillRect(left, top, width, height);
    if (event === this.chosen) {
      context.strokeStyle = colours.get("text");
      context.lineWidth = 2;
      context.strokeRect(left, top, width, height);
    }
    if (width > 7 * text.length + 10) {
      context.fillStyle = colours.get("on-kind");
      context.fillText(text, left + 5, top + height / 2 + 1);
    }
  }

  drawAxis(context) {
    const about = (this.ns(this.width) - this.ns(0)) / Math.max(this.width / 120, 1);
    const power = 10 ** Math.floor(Math.log10(Math.max(about, 1)));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= about) * power;
    const digits = Math.max(0, 6 - Math.floor(Math.log10(step)));
    context.fillStyle = colours.get("soft");
    context.strokeStyle = colours.get("line");
    context.lineWidth = 1;
    context.beginPath();
    for (let t = Math.ceil(Math.max(this.ns(0), 0) / step) * step; t <= this.ns(this.width); t += step) {
      const x = Math.round(this.x(t)) + 0.5;
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, this.height);
      context.fillText(step >= 1e8 ? `${(t / 1e9).toFixed(1)} s` : `${(t / NS_PER_MS).toFixed(digits)} ms`, x + 3, AXIS / 2);
    }
    context.stroke();
  }
}
