"use strict";
// The memory plan of a program: which bytes of the scratch memory each buffer has, from the kernel that writes it to the last that reads it.

const CHART = {height: 180, left: 8, top: 22, bottom: 22};

class MemoryPlan {
  // `picked` gets the number of the value of a buffer that is clicked.
  constructor(container, tip, picked) {
    this.title = el("small");
    this.canvas = el("canvas", {class: "memory", role: "img"});
    this.box = el("details", {open: ""}, el("summary", {}, "Memory plan ", this.title), this.canvas);
    container.append(this.box);
    Object.assign(this, {tip, picked, buffers: [], kernels: new Set(), value: -1});
    this.draw = inNextFrame(() => this.drawNow());
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("click", (event) => {
      const buffer = this.at(event.offsetX, event.offsetY);
      if (buffer && buffer.value >= 0) this.picked(buffer.value);
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  show(run, program, graph) {
    this.buffers = (program?.buffers || []).map(([label, offset, bytes, first, last]) => {
      const text = run.strings[label], value = Number(/%(\d+)/.exec(text)?.[1] ?? -1);
      return {label: text, offset, bytes, first, last, value, kind: graph?.nodes[graph.maker.get(value)]?.kind ?? "other"};
    });
    this.box.hidden = !this.buffers.length;
    if (this.box.hidden) return;
    this.program = program;
    this.count = Math.max(program.kernels.length, ...this.buffers.map((buffer) => buffer.last + 1));
    this.size = Math.max(...this.buffers.map((buffer) => buffer.offset + buffer.bytes));
    this.peak = this.findPeak();
    this.title.textContent = `${countText(this.buffers.length, "buffer")} in ${sizeText(this.size)}; ` +
      `most, ${sizeText(this.peak.bytes)}, live at kernel ${this.peak.kernel}`;
    this.canvas.setAttribute("aria-label", `Memory plan: ${this.title.textContent}`);
    this.draw();
  }

  // The kernel at which most bytes are alive.
  findPeak() {
    const changes = new Array(this.count + 1).fill(0);
    for (const {first, last, bytes} of this.buffers) {
      changes[first] += bytes;
      changes[last + 1] -= bytes;
    }
    const peak = {kernel: 0, bytes: 0};
    changes.reduce((alive, change, kernel) => {
      if (alive + change > peak.bytes) Object.assign(peak, {kernel, bytes: alive + change});
      return alive + change;
    }, 0);
    return peak;
  }

  // Marks a set of kernels, and the buffer of a value.
  mark(kernels, value) {
    Object.assign(this, {kernels, value});
    this.draw();
  }

  x(kernel) { return CHART.left + kernel / this.count * (this.canvas.clientWidth - 2 * CHART.left); }
  y(offset) { return CHART.height - CHART.bottom - offset / this.size * (CHART.height - CHART.bottom - CHART.top); }

  boxOf({offset, bytes, first, last}) {
    return {left: this.x(first), top: this.y(offset + bytes), width: Math.max(this.x(last + 1) - this.x(first), 1),
            height: Math.max(this.y(offset) - this.y(offset + bytes), 1)};
  }

  at(x, y) {
    return this.buffers.findLast((buffer) => {
      const {left, top, width, height} = this.boxOf(buffer);
      return x >= left - 1 && x <= left + width + 1 && y >= top - 1 && y <= top + height + 1;
    });
  }

  hover(event) {
    const buffer = this.at(event.offsetX, event.offsetY);
    this.canvas.style.cursor = buffer ? "pointer" : "default";
    this.tip.hidden = !buffer;
    if (!buffer) return;
    const name = (kernel) => `${kernel} ${this.program.kernels[kernel]?.name ?? ""}`.trim();
    showTip(this.tip, event, [buffer.label, `${sizeText(buffer.bytes)} at ${sizeText(buffer.offset)}`,
      buffer.first === buffer.last ? `only in kernel ${name(buffer.first)}` : `from kernel ${name(buffer.first)} to ${name(buffer.last)}`]);
  }

  drawNow() {
    const width = this.canvas.clientWidth;
    if (!width || !this.buffers.length) return;
    const context = prepare(this.canvas, width, CHART.height);
    context.fillStyle = colours.get("panel");
    context.fillRect(this.x(0), this.y(this.size), this.x(this.count) - this.x(0), this.y(0) - this.y(this.size));
    context.fillStyle = colours.get("marked");
    for (const kernel of this.kernels) context.fillRect(this.x(kernel), CHART.top, Math.max(this.x(1) - this.x(0), 2), this.y(0) - CHART.top);
    for (const buffer of this.buffers) this.drawBuffer(context, buffer);
    this.drawAxis(context, width);
  }

  drawBuffer(context, buffer) {
    const {left, top, width, height} = this.boxOf(buffer), isChosen = buffer.value >= 0 && buffer.value === this.value;
    const gap = (size) => size > 4 ? size - 1 : size;
    context.fillStyle = colours.get(`k-${buffer.kind}`);
    context.globalAlpha = isChosen ? 1 : 0.75;
    context.fillRect(left, top, gap(width), gap(height));
    context.globalAlpha = 1;
    if (!isChosen) return;
    context.strokeStyle = colours.get("text");
    context.lineWidth = 2;
    context.strokeRect(left, top, gap(width), gap(height));
  }

  drawAxis(context, width) {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.strokeStyle = context.fillStyle = colours.get("soft");
    context.textAlign = "left";
    context.fillText(sizeText(this.size), CHART.left, CHART.top / 2);
    context.fillText("kernel 0", CHART.left, CHART.height - CHART.bottom / 2);
    context.textAlign = "right";
    context.fillText(String(this.count - 1), width - CHART.left, CHART.height - CHART.bottom / 2);
    const x = this.x(this.peak.kernel + 0.5);
    context.strokeStyle = context.fillStyle = colours.get("text");
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, CHART.top);
    context.lineTo(x, this.y(0));
    context.stroke();
    context.setLineDash([]);
    context.textAlign = x > width / 2 ? "right" : "left";
    context.fillText(`peak ${sizeText(this.peak.bytes)}`, Math.min(Math.max(x, CHART.left + 80), width - CHART.left), CHART.top / 2);
  }
}
