"use strict";
// The graphs of a program, before and after each pass, and a layered layout of each.

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

const ONLY_HERE = 1, DIFFERS = 2, REMOVED = 3;

const baseName = (op) => op.replace(/^.*::/, "").replace(/\..*$/, "");
const kindOf = (op) => NODE_KINDS.find(([, , pattern]) => pattern.test(baseName(op)))[0];
const withoutStrides = (type) => type.replace(/;.*\]$/, "]");

// The graphs of a program by stage, the final one last. `ids` has for a node the same number in each stage: its position in the final
// graph, if that has it. A record that two stages share has not changed.
function readStages(run, program) {
  const stages = [{...program.graph, name: "final", ids: program.graph.nodes.map((node, i) => i)}];
  let unused = program.graph.nodes.length;
  for (const stage of [...(program.stages || [])].reverse()) {
    const later = stages[0], nodes = [], ids = [];
    for (const item of stage.nodes) {
      const [first, count] = item.length === 2 ? item : [0, 0];
      nodes.push(...later.nodes.slice(first, first + count));
      ids.push(...later.ids.slice(first, first + count));
      if (count) continue;
      nodes.push(item);
      ids.push(item[5] < 0 ? unused++ : later.ids[item[5]]);
    }
    stages.unshift({name: run.strings[stage.name], nodes, ids, params: stage.params || later.params, outputs: stage.outputs || later.outputs});
  }
  return stages;
}

// Nodes of a stage with what its pass has done to them; those that it has removed stand among them.
function withChanges(before, stage) {
  const positions = new Map(before.ids.map((id, i) => [id, i])), kept = new Set(stage.ids);
  const merged = [];
  let next = 0;
  const addRemoved = (end) => {
    for (; next < end; next++) if (!kept.has(before.ids[next])) merged.push([before.nodes[next], before.ids[next], REMOVED]);
  };
  stage.nodes.forEach((record, i) => {
    const position = positions.get(stage.ids[i]) ?? -1;
    addRemoved(position);
    merged.push([record, stage.ids[i], position < 0 ? ONLY_HERE : before.nodes[position] === record ? 0 : DIFFERS]);
  });
  addRemoved(before.nodes.length);
  return merged;
}

// A stage's nodes with texts, users and places. The first and the final one have no `changes`: they show what is recorded and what runs.
function readGraph(run, program, stages, number) {
  const stage = stages[number], isFinal = number === stages.length - 1, isPass = number > 0 && !isFinal;
  const merged = isPass ? withChanges(stages[number - 1], stage) : stage.nodes.map((record, i) => [record, stage.ids[i], 0]);
  const params = new Map(stage.params.map(([value, type, alias], i) => [value, {index: i, type: run.strings[type], alias}]));
  const maker = new Map();
  const nodes = merged.map(([[op, where, attributes, inputs, results], id], i) => {
    const outputs = [];
    for (let k = 0; k < results.length; k += 2) {
      if (results[k] < 0) continue;
      outputs.push([results[k], run.strings[results[k + 1]]]);
      maker.set(results[k], i);
    }
    const type = outputs.length ? withoutStrides(outputs[0][1]) + (outputs.length > 1 ? ` +${outputs.length - 1}` : "") : "";
    const name = run.strings[op];
    return {index: i, id, op: name, label: name.replace(/^aten::/, ""), kind: kindOf(name), where: run.strings[where],
            kernels: program.kernelsOf.get(id) ?? [], attributes: run.strings[attributes], inputs, outputs, type, users: [], before: [],
            group: -1};
  });
  for (const node of nodes) {
    node.before = [...new Set(node.inputs.filter((value) => maker.has(value)).map((value) => maker.get(value)))];
    for (const i of node.before) nodes[i].users.push(node.index);
  }
  // Only nodes of kernels that compute several are a group.
  for (const node of nodes) node.group = node.kernels.find((kernel) => program.kernels[kernel].nodes.length > 1) ?? -1;
  const graph = {nodes, params, maker, lines: run.lineNumbers(merged.map(([record]) => record[1])), name: stage.name, isFinal, isPass,
                 results: new Map(stage.outputs.map((value, i) => [value, i])), byId: new Map(nodes.map((node) => [node.id, node.index])),
                 changes: isPass ? merged.map(([, , change]) => change) : null};
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
