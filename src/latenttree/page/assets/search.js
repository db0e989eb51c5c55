// Search with completion: names that begin with the text, then words in names, then anything.
import { isHidden } from "./data.js";
import { element } from "./panel.js";

const MOST = 12;

export function ranked(entries, text) {
  const wanted = text.trim().toLocaleLowerCase();
  if (!wanted) return [];
  const found = [[], [], []];
  for (const entry of entries) {
    const at = entry.key.indexOf(wanted);
    if (at < 0) continue;
    const begins = at === 0 ? 0 : /[\s_\-.,·:/[(]/.test(entry.key[at - 1]) ? 1 : 2;
    found[begins].push(entry);
  }
  for (const group of found) group.sort((a, b) => a.key.length - b.key.length || a.rank - b.rank);
  return found.flat().slice(0, MOST);
}

export function entriesOf(tree) {
  const lower = (text) => text.replace(/\s+/g, " ").toLocaleLowerCase();
  const nodes = tree.names.map((name, v) => ({ key: lower(name), text: name, node: v, note: isHidden(tree, v) ? "hidden" : "", rank: v }));
  const topics = tree.levels.flatMap((level) => level.topics.map((topic) => ({ key: lower(topic.label), text: topic.label, node: topic.node, note: "topic", rank: topic.node })));
  const seen = new Set();
  return [...nodes, ...topics.filter((entry) => !seen.has(entry.text) && seen.add(entry.text))];
}

export class Search {
  constructor(input, list, tree, choose) {
    Object.assign(this, { input, list, choose, entries: entriesOf(tree), found: [], at: 0 });
    input.addEventListener("input", () => this.complete());
    input.addEventListener("focus", () => this.complete());
    input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    input.addEventListener("keydown", (event) => this.key(event));
  }

  complete() {
    this.found = ranked(this.entries, this.input.value);
    this.at = 0;
    this.list.replaceChildren(...this.found.map((entry, i) => this.item(entry, i)));
    if (!this.found.length && this.input.value.trim()) this.list.append(element("li", { class: "none" }, "nothing found"));
    this.list.hidden = !this.list.children.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.mark();
  }

  item(entry, i) {
    const item = element("li", { role: "option", id: `found-${i}` }, element("span", {}, entry.text), element("small", {}, entry.note));
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.take(entry);
    });
    return item;
  }

  mark() {
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === this.at)));
    this.input.setAttribute("aria-activedescendant", this.found.length ? `found-${this.at}` : "");
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      event.preventDefault();
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.mark();
    } else if (event.key === "Enter" && this.found.length) {
      this.take(this.found[this.at]);
    } else if (event.key === "Escape") {
      this.close();
      this.input.blur();
    }
  }

  take(entry) {
    this.input.value = entry.text;
    this.close();
    this.input.blur();
    this.choose(entry.node);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}
