// What part of the map is seen: `x`, `y` is the middle, `scale` the pixels of a unit of the map.

const LARGEST = 220; // scale

export class View {
  constructor(canvas, bounds, changed) {
    Object.assign(this, { canvas, bounds, changed, x: 0, y: 0, scale: 1, ratio: 1, width: 1, height: 1 });
    this.margins = { left: 0, right: 0, top: 0, bottom: 0 };
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    [this.width, this.height] = [Math.max(box.width, 1), Math.max(box.height, 1)];
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
  }

  // Radius in pixels of a node of radius 1: grows with the scale, within bounds.
  get unit() {
    return Math.min(Math.max(0.2 * this.scale, 0.7), 7);
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  toMap(px, py) {
    return [(px - this.width / 2) / this.scale + this.x, (py - this.height / 2) / this.scale + this.y];
  }

  fitted(bounds = this.bounds) {
    const { left, right, top, bottom } = this.margins;
    const [w, h] = [bounds[2] - bounds[0], bounds[3] - bounds[1]];
    const names = Math.min(this.width * 0.12, 110); // room for names at both sides
    const [free, high] = [Math.max(this.width - left - right - 2 * names, 60), Math.max(this.height - top - bottom - 56, 60)];
    const scale = Math.min(free / Math.max(w, 1), high / Math.max(h, 1), LARGEST / 2);
    return {
      scale,
      x: (bounds[0] + bounds[2]) / 2 + (right - left) / 2 / scale,
      y: (bounds[1] + bounds[3]) / 2 + (bottom - top) / 2 / scale,
    };
  }

  pan(dx, dy) {
    this.flight = null;
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.changed();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    this.flight = null;
    const [x, y] = this.toMap(px, py);
    const least = 0.5 * this.fitted().scale;
    this.scale = Math.min(Math.max(this.scale * factor, least), LARGEST);
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y - (py - this.height / 2) / this.scale;
    this.changed();
  }

  show(goal) {
    this.flight = null;
    Object.assign(this, goal);
    this.changed();
  }

  // Glides to a goal {x, y, scale} in a third of a second, at once where motion is unwanted.
  fly(goal) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.show(goal);
    const from = { x: this.x, y: this.y, scale: this.scale };
    const start = performance.now();
    const flight = {};
    this.flight = flight;
    const step = (now) => {
      if (this.flight !== flight) return;
      const t = Math.min(Math.max((now - start) / 350, 0), 1);
      const share = t * t * (3 - 2 * t);
      this.scale = from.scale * (goal.scale / from.scale) ** share;
      this.x = from.x + (goal.x - from.x) * share;
      this.y = from.y + (goal.y - from.y) * share;
      if (t === 1) this.flight = null;
      this.changed();
      if (t < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}

// Mouse, touch (one finger pans, two zoom) and wheel; `clicked(px, py)` where nothing was dragged.
export function followPointers(canvas, view, clicked, hovered) {
  const fingers = new Map();
  let travelled = 0;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const middle = () => {
    const all = [...fingers.values()];
    const [x, y] = [0, 1].map((i) => all.reduce((sum, p) => sum + p[i], 0) / all.length);
    const apart = all.length > 1 ? Math.hypot(all[0][0] - all[1][0], all[0][1] - all[1][1]) : 0;
    return { x, y, apart };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    if (!fingers.size) travelled = 0;
    fingers.set(event.pointerId, at(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return hovered(...at(event));
    const before = middle();
    fingers.set(event.pointerId, at(event));
    const after = middle();
    travelled += Math.hypot(after.x - before.x, after.y - before.y);
    if (travelled > 4 || before.apart) view.pan(after.x - before.x, after.y - before.y);
    if (before.apart && after.apart) view.zoom(after.apart / before.apart, after.x, after.y);
  });
  canvas.addEventListener("pointerup", (event) => {
    const single = fingers.size === 1 && fingers.delete(event.pointerId);
    fingers.delete(event.pointerId);
    if (single && travelled <= 4) clicked(...at(event));
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => hovered(null));
  canvas.addEventListener("dblclick", (event) => view.zoom(2, ...at(event)));
  const wheel = (event) => {
    event.preventDefault();
    const step = event.deltaMode === 1 ? 24 : 1;
    view.zoom(Math.exp(-Math.min(Math.max(event.deltaY * step, -240), 240) * 0.0022), ...at(event));
  };
  canvas.addEventListener("wheel", wheel, { passive: false });
}
