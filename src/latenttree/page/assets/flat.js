// The map in a 2D canvas: the same picture as `gl.js`, where WebGL is missing
// or computed on the processor, which is slower than this.

export function flatRenderer(canvas) {
  const context = canvas.getContext("2d");
  let scene = null;
  let edgeGroups = [];
  let nodeGroups = [];

  const css = (colours, i) => `rgba(${colours[4 * i]},${colours[4 * i + 1]},${colours[4 * i + 2]},${colours[4 * i + 3] / 255})`;

  // What looks alike is drawn by one call.
  function load(given) {
    scene = given;
    const { edges, nodes } = scene;
    edgeGroups = alike(edges.widths.length, (i) => ({ colour: css(edges.colours, i), width: Math.round(4 * edges.widths[i]) / 4, dash: edges.dashes[i] }));
    nodeGroups = alike(nodes.radii.length, (i) => ({ colour: css(nodes.colours, i), radius: nodes.radii[i], shape: nodes.shapes[i] }));
  }

  function draw(view, paper) {
    const [w, h] = [canvas.width, canvas.height];
    const scale = view.scale * view.ratio;
    const [x0, y0] = [w / 2 - view.x * scale, h / 2 - view.y * scale];
    context.fillStyle = `rgb(${paper})`;
    context.fillRect(0, 0, w, h);
    for (const group of edgeGroups) drawEdges(group, scale, x0, y0, view.ratio);
    for (const group of nodeGroups) drawNodes(group, scale, x0, y0, Math.max(group.radius * view.unit * view.ratio, 0.7));
  }

  function drawEdges({ colour, width, dash, members }, scale, x0, y0, ratio) {
    const { starts, ends } = scene.edges;
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.setLineDash(dash ? [4 * dash, 3 * dash] : []);
    context.beginPath();
    for (const i of members) {
      const [px, py, qx, qy] = [starts[2 * i] * scale + x0, starts[2 * i + 1] * scale + y0, ends[2 * i] * scale + x0, ends[2 * i + 1] * scale + y0];
      if (Math.max(px, qx) < 0 || Math.min(px, qx) > canvas.width || Math.max(py, qy) < 0 || Math.min(py, qy) > canvas.height) continue;
      context.moveTo(px, py);
      context.lineTo(qx, qy);
    }
    context.stroke();
  }

  function drawNodes({ colour, shape, members }, scale, x0, y0, r) {
    const { places } = scene.nodes;
    context.fillStyle = colour;
    context.beginPath();
    for (const i of members) {
      const [px, py] = [places[2 * i] * scale + x0, places[2 * i + 1] * scale + y0];
      if (px < -r || px > canvas.width + r || py < -r || py > canvas.height + r) continue;
      if (r < 1.5) context.rect(px - r, py - r, 2 * r, 2 * r);
      else addShape(context, shape, px, py, r);
    }
    context.fill();
  }

  return { load, draw, kind: "2D canvas", finish: () => context.getImageData(0, 0, 1, 1) };
}

// Groups of the numbers below `count` with equal looks: each look with its `members`.
function alike(count, lookOf) {
  const found = new Map();
  for (let i = 0; i < count; i++) {
    const look = lookOf(i);
    const key = Object.values(look).join("|");
    if (!found.has(key)) found.set(key, { ...look, members: [] });
    found.get(key).members.push(i);
  }
  return [...found.values()];
}

// Circle, square, triangle, diamond.
function addShape(context, shape, x, y, r) {
  if (shape === 0) {
    context.moveTo(x + r, y);
    context.arc(x, y, r, 0, 2 * Math.PI);
    return;
  }
  const corners = { 1: [[-0.86, -0.86], [0.86, -0.86], [0.86, 0.86], [-0.86, 0.86]], 2: [[0, -1.1], [1, 0.65], [-1, 0.65]], 3: [[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]] }[shape];
  corners.forEach(([dx, dy], i) => (i ? context.lineTo(x + dx * r, y + dy * r) : context.moveTo(x + dx * r, y + dy * r)));
  context.closePath();
}
