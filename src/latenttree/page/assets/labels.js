// Texts over the map: topics first, then names, the most important of each while there is room.
import { isHidden } from "./data.js";
import { THEMES } from "./colours.js";

const CELL = 48; // pixels; texts are looked up by the cells that they touch
const MOST_NAMES = 260;
const NEAR = 30; // pixels of a unit of the map
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

export class Labels {
  constructor(canvas, tree) {
    Object.assign(this, { canvas, tree, context: canvas.getContext("2d"), widths: new Map() });
    const named = Array.from({ length: tree.n - tree.n_observed }, (_, i) => i + tree.n_observed);
    this.order = [...tree.importance, ...named];
  }

  // `state`: {theme, level, selected, hovered, shown(v), topics}.
  draw(view, state) {
    const { context, canvas } = this;
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    this.taken = new Map();
    this.theme = THEMES[state.theme];
    this.rings(view, state);
    for (const v of [state.hovered, state.selected]) if (v !== null) this.nameOf(view, v, 14, true);
    if (state.topics) this.topics(view, state);
    this.noteOnAlone(view);
    this.names(view, state);
  }

  // Over the rows of variables that hang together with no other, how many these are.
  noteOnAlone(view) {
    const { tree } = this;
    if (tree.alone.length < 3) return;
    const least = (of) => tree.alone.reduce((low, v) => Math.min(low, of[v]), Infinity);
    const [x, y] = view.toScreen(least(tree.x), least(tree.y) - 1);
    const text = `${tree.alone.length.toLocaleString("en")} variables that depend on no other`;
    this.take(x, y - 8, this.width(text, 13, 650), 16);
    this.put(text, x, y - 2, 13, 650, this.theme.faint, 1, 3);
  }

  rings(view, { selected, hovered }) {
    for (const [v, width] of [[hovered, 1.5], [selected, 2.5]]) {
      if (v === null) continue;
      const [x, y] = view.toScreen(this.tree.x[v], this.tree.y[v]);
      this.context.beginPath();
      this.context.arc(x, y, view.unit + 4, 0, 2 * Math.PI);
      this.context.lineWidth = width;
      this.context.strokeStyle = this.theme.ink;
      this.context.stroke();
    }
  }

  // From near, names say more than topics: their texts fade out.
  topics(view, { levels, level, shown }) {
    const clear = Math.min(Math.max((NEAR - view.scale) / 8, 0), 1);
    if (!clear) return;
    for (const finer of [0, 1]) {
      const at = levels[level + finer];
      if (!at || (finer && view.scale < 5)) continue;
      for (const topic of [...at.topics].sort((a, b) => b.size - a.size)) {
        const [x, y] = view.toScreen(topic.x, topic.y);
        if (x < -80 || y < -20 || x > view.width + 80 || y > view.height + 20) continue;
        const reach = topic.reach * view.scale; // pixels that the topic takes on the screen
        if (reach < 16 || (finer && reach > view.width)) continue;
        const size = Math.min(Math.max(reach / 6, 11), finer ? 15 : 22);
        this.topic(topic, x, y, size, 1.3 * reach, clear * (shown(topic.node) ? 1 : 0.25));
      }
    }
  }

  topic(topic, x, y, size, room, alpha) {
    const words = topic.words.slice(0, 3);
    for (let n = words.length; n > 0; n--) {
      const text = words.slice(0, n).join(" · ");
      const width = this.width(text, size, 650);
      if ((n > 1 && width > room) || width > 2.2 * room) continue;
      if (!this.take(x - width / 2 - 5, y - size * 0.7, width + 10, size * 1.4)) continue;
      this.put(text, x - width / 2, y, size, 650, this.theme.ink, alpha, 4);
      return;
    }
  }

  names(view, { shown }) {
    const { tree } = this;
    const size = view.scale < 14 ? 11 : Math.min(11 + (view.scale - 14) / 12, 15);
    let count = 0;
    for (const v of this.order) {
      if (count >= MOST_NAMES) return;
      if (isHidden(tree, v) && view.scale < 26) return;
      const [x, y] = view.toScreen(tree.x[v], tree.y[v]);
      if (x < 0 || y < 0 || x > view.width || y > view.height || !shown(v)) continue;
      count += this.nameOf(view, v, isHidden(tree, v) ? 10 : size, false);
    }
  }

  // The name beside its node, away from the edge that leads to it; whether there was room.
  nameOf(view, v, size, forced) {
    const { tree, theme } = this;
    const [x, y] = view.toScreen(tree.x[v], tree.y[v]);
    const text = shortened(tree.names[v], 32);
    const weight = forced ? 650 : 400;
    const width = this.width(text, size, weight);
    const gap = view.unit * (isHidden(tree, v) ? 0.5 : 1) + 3;
    const right = tree.parents[v] < 0 || tree.apart.has(v) || tree.x[v] >= tree.x[tree.parents[v]];
    const left = right ? x + gap : x - gap - width;
    if (!this.take(left, y - size * 0.6, width, size * 1.2) && !forced) return 0;
    this.put(text, left, y, size, weight, isHidden(tree, v) && !forced ? theme.faint : theme.ink, 1, 3);
    return 1;
  }

  put(text, x, y, size, weight, colour, alpha, halo) {
    const { context, theme } = this;
    context.font = `${weight} ${size.toFixed(1)}px ${FONT}`;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.globalAlpha = alpha;
    context.lineWidth = halo;
    context.strokeStyle = theme.paper;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
    context.globalAlpha = 1;
  }

  // Widths are measured once, at 10 pixels, since measuring is slow.
  width(text, size, weight) {
    const key = `${weight} ${text}`;
    if (!this.widths.has(key)) {
      this.context.font = `${weight} 10px ${FONT}`;
      this.widths.set(key, this.context.measureText(text).width / 10);
    }
    return this.widths.get(key) * size;
  }

  // Takes a rectangle of the screen, or says that another text is there.
  take(x, y, w, h) {
    const cells = [];
    for (let i = Math.floor(x / CELL); i <= Math.floor((x + w) / CELL); i++) {
      for (let j = Math.floor(y / CELL); j <= Math.floor((y + h) / CELL); j++) {
        const cell = i * 4096 + j;
        for (const [a, b, c, d] of this.taken.get(cell) ?? []) {
          if (x < a + c && a < x + w && y < b + d && b < y + h) return false;
        }
        cells.push(cell);
      }
    }
    for (const cell of cells) {
      if (!this.taken.has(cell)) this.taken.set(cell, []);
      this.taken.get(cell).push([x, y, w, h]);
    }
    return true;
  }
}

export function shortened(text, most) {
  const line = text.replace(/\s+/g, " ");
  const letters = [...line];
  return letters.length <= most ? line : letters.slice(0, most - 1).join("") + "…";
}
