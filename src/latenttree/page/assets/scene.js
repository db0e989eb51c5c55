// What is drawn: arrays of places, widths and colours of edges and nodes, for either renderer.
import { isHidden } from "./data.js";
import { rgb, THEMES } from "./colours.js";

const FADED = 0.13;
const LEAST_WIDTH = 0.5; // pixels, at support 0
const MOST_WIDTH = 2.6; // and 1

export function makeScene(tree) {
  const below = tree.order.slice(1).filter((v) => !tree.apart.has(v));
  const ends = (of) => Float32Array.from(below.flatMap((v) => [tree.x[of(v)], tree.y[of(v)]]));
  const nodes = [...tree.order].sort((a, b) => isHidden(tree, b) - isHidden(tree, a)); // observed on top
  return {
    below,
    drawn: nodes,
    edges: {
      starts: ends((v) => tree.parents[v]),
      ends: ends((v) => v),
      widths: Float32Array.from(below, (v) => edgeWidth(tree, v)),
      dashes: Float32Array.from(below, (v) => (tree.signs[v] < 0 ? 1 : 0)),
      colours: new Uint8Array(4 * below.length),
    },
    nodes: {
      places: Float32Array.from(nodes.flatMap((v) => [tree.x[v], tree.y[v]])),
      radii: Float32Array.from(nodes, (v) => (isHidden(tree, v) ? 0.5 : 1)),
      shapes: new Float32Array(nodes.length),
      colours: new Uint8Array(4 * nodes.length),
    },
  };
}

function edgeWidth(tree, v) {
  if (!tree.isInner(v)) return 1.1;
  const support = tree.support[v] ?? 0.5;
  return LEAST_WIDTH + (MOST_WIDTH - LEAST_WIDTH) * support;
}

// Sets the colours. `looks.of[v]` is the look of a node, `shown(v)` whether it is not faded, and
// edges of less support than `least` are dotted and faint.
export function paint(scene, tree, looks, shown, least, theme) {
  const grey = rgb(THEMES[theme].edge);
  const put = (array, i, colour, alpha) => {
    for (let c = 0; c < 3; c++) array[4 * i + c] = colour[c];
    array[4 * i + 3] = Math.round(255 * alpha);
  };
  scene.below.forEach((v, i) => {
    const u = tree.parents[v];
    const weak = tree.isInner(v) && tree.support[v] !== null && tree.support[v] < least;
    const alpha = (shown(v) && shown(u) ? 1 : FADED) * (weak ? 0.45 : 1);
    put(scene.edges.colours, i, edgeColour(tree, looks, u, v, grey), alpha);
    scene.edges.dashes[i] = weak ? 0.5 : tree.signs[v] < 0 ? 1 : 0;
  });
  scene.drawn.forEach((v, i) => {
    put(scene.nodes.colours, i, looks.of[v].colour, shown(v) ? 1 : FADED);
    scene.nodes.shapes[i] = looks.of[v].shape;
  });
}

// The colour that both ends share, softened; that of a leaf for its edge; else grey.
function edgeColour(tree, looks, u, v, grey) {
  const [a, b] = [looks.of[u], looks.of[v]];
  const leaf = isHidden(tree, u) && !isHidden(tree, v) ? b : isHidden(tree, v) && !isHidden(tree, u) ? a : null;
  const shared = a === b ? a : leaf;
  return shared ? shared.colour.map((x, i) => Math.round(0.7 * x + 0.3 * grey[i])) : grey;
}
