// What the page shows, as `content.py` writes it: JSON, compressed by gzip, as base64 text.

export async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// The tree with what follows from it: children, neighbours, sizes of branches, inner edges.
export function withTree(data) {
  const n = data.names.length;
  const children = Array.from({ length: n }, () => []);
  data.parents.forEach((u, v) => u >= 0 && children[u].push(v));
  const order = [data.root];
  for (let i = 0; i < order.length; i++) order.push(...children[order[i]]);
  const size = Array.from({ length: n }, (_, v) => (v < data.n_observed ? 1 : 0));
  for (let i = n - 1; i > 0; i--) size[data.parents[order[i]]] += size[order[i]];
  const total = size[data.root];
  const apart = new Set(data.apart); // lower ends of edges that only join parts without dependence
  const isInner = (v) => size[v] >= 2 && total - size[v] >= 2;
  const joined = children.map((all) => all.filter((u) => !apart.has(u)));
  const neighbours = (v) => (v === data.root || apart.has(v) ? joined[v] : [data.parents[v], ...joined[v]]);
  const alone = order.filter((v) => !neighbours(v).length && n > 1);
  return { ...data, apart, alone, n, children, order, size, isInner, neighbours };
}

// The node below the edge between two neighbours: it holds what is known of the edge.
export function lowerEnd(tree, a, b) {
  return tree.parents[a] === b ? a : b;
}

export function isHidden(tree, v) {
  return v >= tree.n_observed;
}

export function statesOf(tree, v) {
  return tree.label_sets[tree.label_set[v]];
}

// (rows, columns, values[row][column]) of the distribution of a node given its parent, or null.
// Of probabilities of all states the first row is left out in the file: columns sum to one.
export function tableOf(tree, v) {
  const stored = tree.tables[v];
  if (!stored) return null;
  const given = stored.given;
  const node = given === v ? tree.parents[v] : v;
  const columns = stored.columns ?? statesOf(tree, given).map((_, i) => i);
  const rows = stored.rows ?? statesOf(tree, node).map((_, i) => i);
  const k = columns.length;
  const values = [];
  if (stored.completed) values.push(columns.map(() => 1));
  for (let i = 0; i < stored.values.length; i += k) values.push(stored.values.slice(i, i + k));
  if (stored.completed) {
    for (const row of values.slice(1)) row.forEach((p, j) => (values[0][j] -= p));
    values[0] = values[0].map((p) => Math.max(p, 0));
  }
  return { node, given, rows, columns, values, whole: !stored.columns && !stored.rows };
}

// The table of `node` given its neighbour `given`: as it is stored, or turned round by Bayes' rule
// where it is stored the other way and is whole; else as it is stored.
export function conditionalOf(tree, node, given) {
  const table = tableOf(tree, lowerEnd(tree, node, given));
  const turnable = table && table.whole && tree.kinds[node] === "states" && tree.kinds[given] === "states";
  if (!table || table.node === node || !turnable) return table;
  const prior = tree.marginals[node];
  const joint = prior.map((p, i) => table.values.map((row) => row[i] * p)); // [node][given]
  const sums = table.values.map((_, j) => joint.reduce((sum, row) => sum + row[j], 0));
  return {
    node,
    given,
    rows: table.columns,
    columns: table.rows,
    values: joint.map((row) => row.map((p, j) => (sums[j] > 0 ? p / sums[j] : 0))),
    whole: true,
  };
}
