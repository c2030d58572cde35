"use strict";
// All parts of the page use these: data, texts and colours.

const NS_PER_MS = 1e6;
const BACKWARD = " (in its backward)";

// Reads what page.py packed: JSON, compressed, in base64.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// An element with attributes and children. Text stays text: no data of the report is ever read as HTML.
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function timeText(ns) {
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(2)} s`;
  if (ns >= 1e5) return `${(ns / NS_PER_MS).toFixed(1)} ms`;
  return ns >= 100 ? `${(ns / 1e3).toFixed(1)} us` : `${Math.round(ns)} ns`;
}

function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  for (const unit of ["KB", "MB", "GB"]) {
    bytes /= 1024;
    if (bytes < 1024 || unit === "GB") return `${bytes.toFixed(1)} ${unit}`;
  }
}

const byId = (id) => document.getElementById(id);
const countText = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const lineOf = (where) => where.endsWith(BACKWARD) ? where.slice(0, -BACKWARD.length) : where;

// Without the folders, but for the last one of a long path.
function shortLine(where) {
  const parts = where.split("/");
  return where.length <= 40 || parts.length < 3 ? where : `.../${parts.slice(-2).join("/")}`;
}

// Colours of the style sheet by name, read again when the theme changes.
const colours = {
  known: new Map(),
  get(name) {
    if (!this.known.has(name)) {
      document.body.style.caretColor = `var(--${name}, var(--k-other))`;
      this.known.set(name, getComputedStyle(document.body).caretColor);
      document.body.style.caretColor = "";
    }
    return this.known.get(name);
  },
};

// Makes a canvas as sharp as the screen; returns its context in CSS pixels.
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// Texts beside the pointer, the first of which is a title.
function showTip(tip, event, texts) {
  tip.replaceChildren(...texts.map((text, i) => el(i ? "div" : "b", {}, text)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

// Calls `draw` once in the next frame, however often it is asked to.
function inNextFrame(draw) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      draw();
    });
  };
}

// Index of the first item for which `isAfter` holds, where it holds for all later ones too.
function firstIndex(count, isAfter) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAfter(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Rows are sorted by the column whose head is clicked, by `data-n` of its cells where they have it. The largest number comes first.
function makeSortable(table) {
  const body = table.tBodies[0];
  table.querySelectorAll("[data-sort]").forEach((button) => button.addEventListener("click", () => {
    const column = Number(button.dataset.sort), head = button.closest("th"), isNumber = body.rows[0]?.cells[column].dataset.n !== undefined;
    const isDown = isNumber ? head.ariaSort !== "descending" : head.ariaSort === "ascending";
    table.querySelectorAll("th").forEach((other) => { other.ariaSort = "none"; });
    head.ariaSort = isDown ? "descending" : "ascending";
    const value = (row) => isNumber ? Number(row.cells[column].dataset.n) : row.cells[column].textContent;
    const order = (a, b) => isNumber ? value(a) - value(b) : value(a).localeCompare(value(b));
    body.append(...[...body.rows].sort((a, b) => isDown ? order(b, a) : order(a, b)));
  }));
}

function legend(container, entries) {
  container.replaceChildren(...entries.map(([kind, text]) => el("span", {}, el("span", {class: `dot k-${kind}`}), text)));
}
