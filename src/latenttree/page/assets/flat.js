// The map in a 2D canvas: the same picture as `gl.js`, for browsers without WebGL 2.

export function flatRenderer(canvas) {
  const context = canvas.getContext("2d");
  let scene = null;

  const css = (colours, i) => `rgba(${colours[4 * i]},${colours[4 * i + 1]},${colours[4 * i + 2]},${colours[4 * i + 3] / 255})`;

  function draw(view, paper) {
    const [w, h] = [canvas.width, canvas.height];
    const scale = view.scale * view.ratio;
    const x = (at) => (at - view.x) * scale + w / 2;
    const y = (at) => (at - view.y) * scale + h / 2;
    context.fillStyle = `rgb(${paper})`;
    context.fillRect(0, 0, w, h);
    const { edges, nodes } = scene;
    for (let i = 0; i < edges.widths.length; i++) {
      const p = [x(edges.starts[2 * i]), y(edges.starts[2 * i + 1]), x(edges.ends[2 * i]), y(edges.ends[2 * i + 1])];
      if (Math.max(p[0], p[2]) < 0 || Math.min(p[0], p[2]) > w || Math.max(p[1], p[3]) < 0 || Math.min(p[1], p[3]) > h) continue;
      context.strokeStyle = css(edges.colours, i);
      context.lineWidth = edges.widths[i] * view.ratio;
      context.setLineDash(edges.dashes[i] ? [4 * edges.dashes[i], 3 * edges.dashes[i]] : []);
      context.beginPath();
      context.moveTo(p[0], p[1]);
      context.lineTo(p[2], p[3]);
      context.stroke();
    }
    for (let i = 0; i < nodes.radii.length; i++) {
      const [px, py, r] = [x(nodes.places[2 * i]), y(nodes.places[2 * i + 1]), Math.max(nodes.radii[i] * view.unit * view.ratio, 0.7)];
      if (px < -r || px > w + r || py < -r || py > h + r) continue;
      context.fillStyle = css(nodes.colours, i);
      shapePath(context, nodes.shapes[i], px, py, r);
      context.fill();
    }
  }

  return { load: (given) => (scene = given), draw, kind: "2D canvas", finish: () => context.getImageData(0, 0, 1, 1) };
}

// Circle, square, triangle, diamond.
export function shapePath(context, shape, x, y, r) {
  context.beginPath();
  if (shape === 0) return context.arc(x, y, r, 0, 2 * Math.PI);
  const corners = { 1: [[-0.86, -0.86], [0.86, -0.86], [0.86, 0.86], [-0.86, 0.86]], 2: [[0, -1.1], [1, 0.65], [-1, 0.65]], 3: [[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]] };
  for (const [dx, dy] of corners[shape]) context.lineTo(x + dx * r, y + dy * r);
  context.closePath();
}
