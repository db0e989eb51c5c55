// The page: its state, and who is told when it changes. `start` is called at the end of the page.
import { inflated, isHidden, withTree } from "./data.js";
import { looksByColumn, looksByTopic, numberRamp, rgb, SHAPES, THEMES } from "./colours.js";
import { flatRenderer } from "./flat.js";
import { glRenderer, hasGraphicsCard } from "./gl.js";
import { Labels } from "./labels.js";
import { element, Panel, percent, rounded } from "./panel.js";
import { makeScene, paint } from "./scene.js";
import { Search } from "./search.js";
import { followPointers, View } from "./view.js";

const find = (id) => document.getElementById(id);
const NARROW = 760; // pixels, below which the panel lies under the map

class Page {
  constructor(tree) {
    if (innerHeight > 1.2 * innerWidth) upright(tree);
    this.tree = tree;
    this.state = { theme: preferredTheme(), level: 0, column: -1, selected: null, hovered: null, key: undefined, least: 0.5 };
    const byCard = location.search === "?draw=webgl" || hasGraphicsCard();
    this.renderer = (byCard && glRenderer(find("map"))) || flatRenderer(find("map"));
    this.scene = makeScene(tree);
    this.view = new View(find("map"), boundsOf(tree), () => this.redraw());
    this.labels = new Labels(find("labels"), tree);
    this.panel = new Panel(find("panel"), tree, (v) => this.select(v, true));
    this.search = new Search(find("search"), find("found"), tree, (v) => this.select(v, true));
    this.drawTimes = [];
    this.controls();
    this.resize();
    this.restyle();
    this.margins();
    this.view.show(this.view.fitted());
  }

  // ---- state ----

  controls() {
    const { tree, state } = this;
    const slider = find("level");
    slider.max = Math.max(tree.levels.length - 1, 0);
    find("level-box").hidden = tree.levels.length < 2;
    slider.addEventListener("input", () => this.set({ level: Number(slider.value), column: -1, key: undefined }));
    const choice = find("colour");
    const options = [...(tree.levels.length ? [["-1", "topic"]] : []), ...tree.columns.map((column, i) => [String(i), column.name])];
    choice.append(...options.map(([value, text]) => element("option", { value }, text)));
    find("colour-box").hidden = options.length < 2;
    state.column = tree.levels.length ? tree.color_by : Math.max(tree.color_by, 0);
    if (!options.length) state.column = null;
    choice.addEventListener("change", () => {
      choice.blur(); // keys are those of the map again
      this.set({ column: Number(choice.value), key: undefined });
    });
    const least = find("support");
    find("support-box").hidden = !tree.support.some((x, v) => x !== null && tree.isInner(v));
    least.addEventListener("input", () => this.set({ least: Number(least.value) / 100 }));
    find("theme").addEventListener("click", () => this.set({ theme: state.theme === "dark" ? "light" : "dark" }));
    find("whole").addEventListener("click", () => this.view.fly(this.view.fitted()));
    find("about-open").addEventListener("click", () => find("about").showModal());
    find("legend-toggle").addEventListener("click", () => this.toggleLegend());
    find("picture").addEventListener("click", () => this.savePicture());
    followPointers(find("labels"), this.view, (x, y) => this.select(this.nearest(x, y), false), (x, y) => this.hover(x, y));
    addEventListener("resize", () => this.resize());
    addEventListener("keydown", (event) => this.key(event));
    find("legend").classList.toggle("folded", innerWidth < NARROW);
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.restyle();
  }

  key(event) {
    if (find("about").open || event.target.matches("[type=search], select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const pans = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] };
    const actions = {
      "/": () => find("search").focus(),
      "+": () => this.view.zoom(1.3),
      "=": () => this.view.zoom(1.3),
      "-": () => this.view.zoom(1 / 1.3),
      0: () => this.view.fly(this.view.fitted()),
      Escape: () => (this.state.selected === null ? this.set({ key: undefined }) : this.select(null)),
      "?": () => find("about").showModal(),
      d: () => find("theme").click(),
    };
    const ownArrows = find("panel").contains(event.target) || event.target.matches("[type=range]");
    if (pans[event.key] && !ownArrows) this.view.pan(...pans[event.key]);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }

  // The node at a point of the screen, or null.
  nearest(px, py) {
    const { tree, view } = this;
    const [x, y] = view.toMap(px, py);
    let best = null;
    let least = (Math.max(view.unit, 4) + 7) / view.scale;
    for (let v = 0; v < tree.n; v++) {
      const apart = Math.hypot(tree.x[v] - x, tree.y[v] - y) + (isHidden(tree, v) ? 1e-3 : 0);
      if (apart < least) [best, least] = [v, apart];
    }
    return best;
  }

  hover(px, py) {
    const v = px === null ? null : this.nearest(px, py);
    find("labels").style.cursor = v === null ? "grab" : "pointer";
    if (v === this.state.hovered) return;
    this.state.hovered = v;
    this.redraw();
  }

  select(v, fly) {
    this.state.selected = v;
    if (v === null) {
      find("panel").hidden = true;
      this.margins();
    } else {
      this.panel.show(v, this.looks, (u) => this.topicsOf(u));
      this.margins();
      if (fly || this.isCovered(v)) this.view.fly(this.closeUp(v));
    }
    history.replaceState(null, "", v === null ? location.pathname + location.search : `#${encodeURIComponent(this.tree.names[v])}`);
    this.repaint();
  }

  // Of a node the topics that it lies in, coarsest first, as far as levels go.
  topicsOf(v) {
    const chain = this.tree.levels.map((level) => level.topics[level.member[v]]).filter(Boolean);
    return chain.filter((topic, i) => !i || topic.node !== chain[i - 1].node);
  }

  isCovered(v) {
    const [x, y] = this.view.toScreen(this.tree.x[v], this.tree.y[v]);
    const { right, bottom } = this.view.margins;
    return x < 40 || y < 60 || x > this.view.width - right - 40 || y > this.view.height - bottom - 40;
  }

  closeUp(v) {
    const { tree, view } = this;
    const near = [v, ...tree.neighbours(v)];
    const [xs, ys] = [near.map((u) => Math.abs(tree.x[u] - tree.x[v])), near.map((u) => Math.abs(tree.y[u] - tree.y[v]))];
    const [rx, ry] = [Math.min(Math.max(...xs, 3), 14), Math.min(Math.max(...ys, 3), 14)];
    const goal = view.fitted([tree.x[v] - rx, tree.y[v] - ry, tree.x[v] + rx, tree.y[v] + ry]);
    return { ...goal, scale: Math.min(goal.scale, 48) };
  }

  // ---- what follows from the state ----

  restyle() {
    const { tree, state } = this;
    document.documentElement.dataset.theme = state.theme;
    find("theme").textContent = state.theme === "dark" ? "Light" : "Dark";
    const level = tree.levels[state.level];
    if (state.column === null || (state.column < 0 && !level)) {
      this.looks = looksByColumn(tree, { kind: "labels", labels: [], values: tree.names.map(() => null) }, state.theme);
      this.looks.legend = [];
    } else {
      this.looks = state.column < 0 ? looksByTopic(tree, level, state.theme) : looksByColumn(tree, tree.columns[state.column], state.theme);
    }
    find("colour").value = String(state.column ?? -1);
    find("level-text").textContent = level ? String(level.topics.length) : "";
    find("support-text").textContent = percent(state.least);
    find("level").setAttribute("aria-valuetext", level ? `${level.topics.length} topics` : "");
    this.legend();
    if (state.selected !== null) this.panel.show(state.selected, this.looks, (u) => this.topicsOf(u));
    this.repaint();
  }

  isShown(v) {
    const { key } = this.state;
    return key === undefined || this.looks.keyOf(v) === key || (isHidden(this.tree, v) && v === this.state.selected);
  }

  repaint() {
    paint(this.scene, this.tree, this.looks, (v) => this.isShown(v), this.state.least, this.state.theme);
    this.renderer.load(this.scene);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const start = performance.now();
      this.renderer.draw(this.view, rgb(THEMES[this.state.theme].paper));
      this.labels.draw(this.view, this.labelState());
      this.drawTimes.push(performance.now() - start);
      if (this.drawTimes.length > 500) this.drawTimes.shift();
    });
  }

  labelState() {
    const { state, tree } = this;
    const { theme, level, selected, hovered } = state;
    return { theme, selected, hovered, shown: (v) => this.isShown(v), topics: tree.levels.length > 0, level, levels: tree.levels };
  }

  legend() {
    const { looks, tree, state } = this;
    const entries = (looks.legend ?? []).slice(0, 60).map((entry) => this.legendEntry(entry));
    if (looks.legend?.length > 60) entries.push(element("li", { class: "more" }, `and ${looks.legend.length - 60} more`));
    const title = state.column === null ? "" : state.column < 0 ? "topic" : tree.columns[state.column].name;
    const ramp = looks.range ? element("div", { class: "ramp" }, element("span", {}, rounded(looks.range[0])), element("i", { style: `background:${numberRamp()}` }), element("span", {}, rounded(looks.range[1]))) : null;
    find("legend-title").textContent = title || "Key";
    find("legend-body").replaceChildren(...[ramp, entries.length ? element("ul", {}, ...entries) : null].filter(Boolean));
  }

  legendEntry(entry) {
    const { state } = this;
    const mark = element("i", { class: `mark ${SHAPES[entry.shape]}`, style: `--colour: rgb(${entry.colour})` });
    const pressed = state.key === entry.key;
    const button = element("button", { "aria-pressed": String(pressed), title: "Show only these" }, mark, element("span", {}, entry.text), element("small", {}, String(entry.size)));
    button.addEventListener("click", () => this.set({ key: pressed ? undefined : entry.key }));
    return element("li", {}, button);
  }

  toggleLegend() {
    const folded = find("legend").classList.toggle("folded");
    find("legend-toggle").setAttribute("aria-expanded", String(!folded));
    this.margins();
  }

  // ---- sizes ----

  margins() {
    const narrow = innerWidth < NARROW;
    const panel = find("panel");
    const box = panel.hidden ? { width: 0, height: 0 } : panel.getBoundingClientRect();
    const legend = find("legend");
    const left = innerWidth < 1000 || legend.classList.contains("folded") ? 0 : legend.offsetWidth;
    this.view.margins = { left, right: narrow ? 0 : box.width, top: 0, bottom: narrow ? box.height : 0 };
  }

  resize() {
    this.view.resize();
    for (const id of ["map", "labels"]) {
      find(id).width = Math.round(this.view.width * this.view.ratio);
      find(id).height = Math.round(this.view.height * this.view.ratio);
    }
    this.margins();
    this.redraw();
  }

  savePicture() {
    const whole = document.createElement("canvas");
    [whole.width, whole.height] = [find("map").width, find("map").height];
    for (const id of ["map", "labels"]) whole.getContext("2d").drawImage(find(id), 0, 0);
    whole.toBlob((blob) => {
      const link = element("a", { href: URL.createObjectURL(blob), download: "tree.png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}

// The map turned by a right angle, for screens that are higher than wide.
function upright(tree) {
  const turn = (thing) => Object.assign(thing, { x: thing.y, y: thing.x });
  turn(tree);
  tree.levels.forEach((level) => level.topics.forEach(turn));
}

function boundsOf(tree) {
  const ends = (of) => [of.reduce((a, b) => Math.min(a, b), Infinity), of.reduce((a, b) => Math.max(a, b), -Infinity)];
  const [[x0, x1], [y0, y1]] = [ends(tree.x), ends(tree.y)];
  return [x0, y0, x1, y1];
}

function preferredTheme() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export async function start() {
  try {
    const page = new Page(withTree(await inflated(find("data").textContent)));
    window.latenttree = page; // for scripts, and for tests
    const named = page.tree.names.indexOf(decodeURIComponent(location.hash.slice(1)));
    if (location.hash.length > 1 && named >= 0) page.select(named, true);
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    find("trouble").hidden = false;
    find("trouble").textContent = `This page cannot be drawn in this browser (${error.message}). It needs Chrome or Edge 80, Firefox 113, Safari 16.4, or later.`;
    throw error;
  }
}
