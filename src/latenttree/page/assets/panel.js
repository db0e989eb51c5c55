// What is known of one node: its neighbourhood as a drawing, topics, distribution, tables of edges.
import { conditionalOf, isHidden, lowerEnd, statesOf } from "./data.js";
import { shortened } from "./labels.js";

const MOST_DRAWN = 20; // neighbours in the drawing
const MOST_TABLES = 24; // and with a table each
const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; texts are texts, never markup.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

export class Panel {
  constructor(box, tree, choose) {
    Object.assign(this, { box, tree, choose });
  }

  show(v, looks, topicsOf) {
    const { tree } = this;
    this.looks = looks;
    const close = element("button", { class: "close", title: "Close (Esc)", "aria-label": "Close", onclick: () => this.choose(null) }, "×");
    this.box.replaceChildren(
      close,
      element("h2", { tabindex: "-1" }, tree.names[v]),
      element("p", { class: "kind" }, this.kindOf(v)),
      ...[this.topicLine(v, topicsOf), this.telling(v), this.distribution(v), this.neighbourhood(v), ...this.edges(v)].filter(Boolean),
    );
    this.box.scrollTop = 0;
    this.box.hidden = false;
  }

  kindOf(v) {
    const { tree } = this;
    const states = tree.kinds[v] === "states" ? `, ${statesOf(tree, v).length} states` : "";
    const what = isHidden(tree, v) ? "hidden variable" : `observed, ${tree.families[v]}`;
    const share = isHidden(tree, v) ? tree.explained[v - tree.n_observed] : null;
    const fit = share === null ? "" : `; the tree explains ${percent(share)} of the dependence around it`;
    const alone = tree.neighbours(v).length ? "" : "; it depends on no other";
    return what + states + fit + alone;
  }

  topicLine(v, topicsOf) {
    const chain = topicsOf(v);
    if (!chain.length) return null;
    const parts = chain.flatMap((topic, i) => [i ? " › " : "", this.link(topic.node, topic.label)]);
    return element("p", { class: "chain" }, ...parts);
  }

  link(v, text) {
    return element("button", { class: "link", "data-node": this.tree.names[v], onclick: () => this.choose(v) }, text ?? this.tree.names[v]);
  }

  telling(v) {
    const found = this.tree.telling[v];
    if (!found?.length) return null;
    const most = found[0][1] || 1;
    const rows = found.map(([u, bits, direction, name]) =>
      element("li", {}, this.link(u, name ?? undefined), element("span", { class: "less", title: "less of it in higher states" }, direction < 0 ? "−" : ""), bar(bits / most), element("span", { class: "number" }, `${rounded(bits)} bits`)));
    return section(isHidden(this.tree, v) ? "Tells most about" : "Most related", element("ul", { class: "telling" }, ...rows));
  }

  distribution(v) {
    const { tree } = this;
    const values = tree.marginals[v];
    if (!values) return null;
    if (tree.kinds[v] !== "states") {
      if (isHidden(tree, v)) return null;
      return section("Mean", element("p", {}, values.slice(0, 12).map(rounded).join(", ") + (values.length > 12 ? ", …" : "")));
    }
    const texts = statesOf(tree, v);
    const order = values.map((_, i) => i);
    if (order.length > 12) order.sort((a, b) => values[b] - values[a]);
    const rows = order.slice(0, 12).map((i) => element("li", {}, element("span", { class: "state" }, texts[i]), bar(values[i]), element("span", { class: "number" }, percent(values[i]))));
    if (order.length > 12) rows.push(element("li", { class: "more" }, `and ${order.length - 12} more`));
    return section("Share of samples", element("ul", { class: "telling shares" }, ...rows));
  }

  neighbourhood(v) {
    const { tree } = this;
    const all = tree.neighbours(v);
    if (!all.length) return null;
    const sizeOf = (u) => (u === tree.parents[v] ? Infinity : tree.size[u]);
    const shown = [...all].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, MOST_DRAWN);
    const angle = (u) => Math.atan2(tree.y[u] - tree.y[v], tree.x[u] - tree.x[v]);
    shown.sort((a, b) => angle(a) - angle(b));
    const high = shown.length > 2 ? 112 : 40;
    const drawing = drawn("svg", { viewBox: `-180 ${-high} 360 ${2 * high}`, class: "star", role: "img", "aria-label": `Neighbours of ${tree.names[v]}` });
    const places = shown.map((u, i) => {
      const turn = (2 * Math.PI * i) / shown.length + (shown.length > 2 ? angle(shown[0]) : 0);
      return [Math.cos(turn) * 86, Math.sin(turn) * (high - 28)];
    });
    shown.forEach((u, i) => drawing.append(this.spoke(v, u, places[i])));
    drawing.append(this.dot(v, 0, 0, 8));
    shown.forEach((u, i) => drawing.append(this.neighbour(u, places[i])));
    const note = all.length > shown.length ? `, ${shown.length} of ${all.length}` : "";
    return section(`Neighbourhood${note}`, drawing);
  }

  spoke(v, u, [x, y]) {
    const { tree } = this;
    const e = lowerEnd(tree, v, u);
    const support = tree.isInner(e) ? tree.support[e] ?? 0.5 : 0.35;
    const negative = tree.signs[e] < 0 ? "5 4" : null;
    return drawn("line", { x1: 0, y1: 0, x2: x, y2: y, "stroke-width": 0.8 + 3.4 * support, "stroke-dasharray": negative });
  }

  neighbour(u, [x, y]) {
    const { tree } = this;
    const side = Math.abs(x) < 12 ? "middle" : x > 0 ? "start" : "end";
    const words = isHidden(tree, u) ? wordsOf(tree, u, 2) : "";
    const dx = side === "middle" ? 0 : x > 0 ? 9 : -9;
    const dy = side === "middle" ? (y > 0 ? 17 : -11) : 4;
    const text = drawn("text", { x: x + dx, y: y + dy, "text-anchor": side }, shortened(words || tree.names[u], 14));
    const group = drawn("g", { tabindex: 0, role: "link", class: "neighbour", "data-node": tree.names[u] }, this.dot(u, x, y, isHidden(tree, u) ? 5 : 6.5), text, drawn("title", {}, tree.names[u] + (words ? `: ${words}` : "")));
    group.addEventListener("click", () => this.choose(u));
    group.addEventListener("keydown", (event) => event.key === "Enter" && this.choose(u));
    return group;
  }

  dot(v, x, y, r) {
    return drawn("circle", { cx: x, cy: y, r, fill: `rgb(${this.looks.of[v].colour})`, class: isHidden(this.tree, v) ? "hidden-dot" : "" });
  }

  edges(v) {
    const { tree } = this;
    const all = tree.neighbours(v);
    if (!all.length) return [];
    const short = all.filter((u) => this.fitsOneLine(v, u));
    const long = all.filter((u) => !short.includes(u));
    const found = [];
    if (short.length) found.push(this.sharedTable(v, short));
    for (const u of long.slice(0, MOST_TABLES)) found.push(this.ownTable(v, u, long.length > 3));
    if (long.length > MOST_TABLES) found.push(element("p", { class: "more" }, `and ${long.length - MOST_TABLES} more neighbours`));
    return found;
  }

  // Neighbours of two states, numbers, and slopes: a line each, one column for each state.
  fitsOneLine(v, u) {
    const table = conditionalOf(this.tree, u, v);
    return !table || (table.node === u && (table.values.length === 1 || (table.values.length === 2 && this.tree.kinds[u] === "states")));
  }

  sharedTable(v, neighbours) {
    const { tree } = this;
    const tables = new Map(neighbours.map((u) => [u, conditionalOf(tree, u, v)]));
    const sample = [...tables.values()].find(Boolean);
    const slopes = tree.kinds[v] !== "states";
    const columns = sample ? sample.columns.map((j) => (slopes ? "slope" : `${shortened(statesOf(tree, v)[j], 12)}`)) : [];
    const spread = (u) => {
      const row = tables.get(u)?.values.at(-1) ?? [0];
      return Math.max(...row) - Math.min(...row);
    };
    const order = [...neighbours].sort((a, b) => spread(b) - spread(a));
    const body = order.slice(0, 60).map((u) => {
      const table = tables.get(u);
      const isState = tree.kinds[u] === "states";
      const text = table && isState ? `${nameOrWords(tree, u)} = ${shortened(statesOf(tree, u)[table.rows.at(-1)] ?? "", 10)}` : nameOrWords(tree, u);
      const cells = columns.map((_, j) => valueCell(table?.values.at(-1)[j], isState && !slopes));
      return element("tr", {}, element("th", { scope: "row" }, this.link(u, text)), ...cells, ...this.edgeCells(v, u));
    });
    const name = tree.names[v];
    const title = !sample ? "Edges" : slopes ? `Slopes on ${name}` : `Given ${name}`;
    const head = element("tr", {}, element("th", {}, ""), ...columns.map((text) => element("th", { scope: "col" }, text)), ...EDGE_HEADS());
    const more = order.length > 60 ? element("p", { class: "more" }, `and ${order.length - 60} more`) : null;
    return section(title, element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))), more);
  }

  edgeCells(v, u) {
    const { tree } = this;
    const e = lowerEnd(tree, v, u);
    const support = tree.isInner(e) ? tree.support[e] : null;
    const sign = tree.signs[e] > 0 ? "+" : tree.signs[e] < 0 ? "−" : "";
    return [
      element("td", { class: "edge" }, sign),
      element("td", { class: "edge" }, rounded(tree.lengths[e])),
      element("td", { class: "edge" }, support === null || support === undefined ? "" : percent(support)),
    ];
  }

  ownTable(v, u, folded) {
    const { tree } = this;
    const table = conditionalOf(tree, u, v);
    const [node, given] = [table.node, table.given];
    const isState = tree.kinds[node] === "states" || tree.kinds[node] === "group";
    const symbol = tree.kinds[given] !== "states" ? "slopes" : isState ? "P" : "E";
    const texts = statesOf(tree, node);
    const columns = tree.kinds[given] === "states" ? table.columns.map((j) => shortened(statesOf(tree, given)[j], 12)) : table.columns.map((j) => `[${j}]`);
    const head = element("tr", {}, element("th", {}, ""), ...columns.map((text) => element("th", { scope: "col" }, text)));
    const body = table.rows.map((i, r) => element("tr", {}, element("th", { scope: "row" }, shortened(texts[i] ?? `[${i}]`, 18)), ...table.values[r].map((x) => valueCell(x, isState))));
    const [sign, length, support] = this.edgeCells(v, u).map((cell) => cell.textContent);
    const notes = [length && `length ${length}`, sign && `sign ${sign}`, support && `support ${support}`].filter(Boolean).join(", ");
    const left = texts.length > table.rows.length ? element("p", { class: "more" }, `the ${table.rows.length} of ${texts.length} rows that differ most`) : null;
    const title = `${symbol}(${nameOrWords(tree, node)} | ${nameOrWords(tree, given)})`;
    return element("details", folded ? {} : { open: "" }, element("summary", {}, title), element("p", { class: "kind" }, this.link(u, `go to ${tree.names[u]}`), notes ? `, ${notes}` : ""), element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))), left);
  }
}

const EDGE_HEADS = () => [["sign", "Sign of the correlation"], ["length", "Information distance"], ["support", "How surely the edge is there"]].map(([text, title]) => element("th", { class: "edge", scope: "col", title }, text));

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function bar(share) {
  const made = element("span", { class: "bar" }, element("span", {}));
  made.firstChild.style.width = `${Math.max(0, Math.min(share, 1)) * 100}%`;
  return made;
}

function valueCell(x, shaded) {
  if (x === undefined || x === null) return element("td", {}, "");
  const cell = element("td", { class: "value" }, rounded(x));
  if (shaded) cell.style.setProperty("--share", `${Math.round(Math.min(x, 1) * 70)}%`);
  return cell;
}

function wordsOf(tree, v, n) {
  const found = tree.telling[v] ?? [];
  return found.slice(0, n).map(([u, , , name]) => name ?? tree.names[u]).join(", ");
}

function nameOrWords(tree, v) {
  return shortened(tree.names[v], 28);
}

export function rounded(x) {
  if (!Number.isFinite(x)) return "";
  const size = Math.abs(x);
  if (size >= 1e5 || (size > 0 && size < 1e-4)) return x.toExponential(1);
  return String(Number(x.toPrecision(size >= 100 ? 4 : 3)));
}

export function percent(x) {
  return x > 0 && x < 0.001 ? "<0.1%" : x > 0 && x < 0.1 ? `${(100 * x).toFixed(1)}%` : `${Math.round(100 * x)}%`;
}
