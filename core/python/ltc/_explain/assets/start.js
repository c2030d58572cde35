"use strict";
// The parts that need no data, and the start.

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
  makeSortable(table);
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
