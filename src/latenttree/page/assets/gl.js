// The map in WebGL 2: edges are rectangles of four corners, nodes are points; both are drawn by one
// call each, and moving the map changes three numbers only. `flat.js` draws the same where there is no WebGL.

const EDGE = `#version 300 es
in vec2 a; in vec2 b; in vec4 colour; in float width; in float dashed;
uniform vec2 size; uniform vec3 view; uniform float ratio;
out vec4 shade; out float across; out float half_width; out float along; flat out float dash;
vec2 on_screen(vec2 at) { return (at - view.xy) * view.z; }
void main() {
  vec2 p = on_screen(a), q = on_screen(b), way = q - p;
  float reach = max(length(way), 1e-6);
  vec2 normal = vec2(-way.y, way.x) / reach;
  float w = max(width * ratio, 1.0);
  half_width = 0.5 * w;
  vec2 corner = vec2(gl_VertexID & 1, (gl_VertexID >> 1) & 1);
  across = (2.0 * corner.y - 1.0) * (half_width + 1.0);
  along = corner.x * reach / ratio;
  vec2 at = mix(p, q, corner.x) + normal * across;
  gl_Position = vec4(2.0 * at.x / size.x, -2.0 * at.y / size.y, 0.0, 1.0);
  shade = vec4(colour.rgb, colour.a * min(1.0, width * ratio));
  dash = dashed;
}`;
const EDGE_PIXEL = `#version 300 es
precision mediump float;
in vec4 shade; in float across; in float half_width; in float along; flat in float dash;
out vec4 pixel;
void main() {
  if (dash > 0.5 && mod(along, 7.0 * dash) > 4.0 * dash) discard;
  float cover = clamp(half_width + 0.5 - abs(across), 0.0, 1.0);
  pixel = vec4(shade.rgb * shade.a * cover, shade.a * cover);
}`;
const NODE = `#version 300 es
in vec2 place; in vec4 colour; in float radius; in float shape;
uniform vec2 size; uniform vec3 view; uniform float ratio; uniform float unit;
out vec4 shade; out float wide; flat out int form;
void main() {
  vec2 at = (place - view.xy) * view.z;
  gl_Position = vec4(2.0 * at.x / size.x, -2.0 * at.y / size.y, 0.0, 1.0);
  wide = max(2.0 * radius * unit * ratio, 1.4);
  gl_PointSize = wide + 2.0;
  shade = colour;
  form = int(shape);
}`;
const NODE_PIXEL = `#version 300 es
precision mediump float;
in vec4 shade; in float wide; flat in int form;
uniform vec3 paper;
out vec4 pixel;
void main() {
  vec2 at = (gl_PointCoord - 0.5) * (wide + 2.0);
  float r = 0.5 * wide, reach = length(at) - r;
  if (form == 1) reach = max(abs(at.x), abs(at.y)) - 0.86 * r;
  if (form == 2) reach = max(abs(at.x) * 0.866 - at.y * 0.5, at.y) - 0.62 * r;
  if (form == 3) reach = (abs(at.x) + abs(at.y)) * 0.7071 - 0.8 * r;
  float cover = clamp(0.5 - reach, 0.0, 1.0);
  float rim = wide > 7.0 ? clamp(reach + 1.6, 0.0, 1.0) : 0.0;
  pixel = vec4(mix(shade.rgb, paper, rim) * shade.a * cover, shade.a * cover);
}`;

// Whether WebGL is there and computed by a graphics card.
export function hasGraphicsCard() {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const masked = gl.getParameter(gl.RENDERER) === "WebKit WebGL" && gl.getExtension("WEBGL_debug_renderer_info");
  const name = gl.getParameter(masked ? masked.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !/swiftshader|llvmpipe|software|basic render/i.test(name);
}

// Null where there is no WebGL 2.
export function glRenderer(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true });
  if (!gl) return null;
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const edges = program(gl, EDGE, EDGE_PIXEL);
  const nodes = program(gl, NODE, NODE_PIXEL);
  let counts = { edges: 0, nodes: 0 };

  // Arrays of `scene.js`: places and widths, which stay, and colours, which change.
  function load(scene) {
    counts = { edges: scene.edges.widths.length, nodes: scene.nodes.radii.length };
    const { starts, ends, widths, dashes } = scene.edges;
    const parts = { a: [starts, 2], b: [ends, 2], width: [widths, 1], dashed: [dashes, 1], colour: [scene.edges.colours, 4] };
    for (const part of Object.values(parts)) part[0] = repeated(...part);
    edges.fill(gl, parts, corners(counts.edges));
    nodes.fill(gl, { place: [scene.nodes.places, 2], radius: [scene.nodes.radii, 1], shape: [scene.nodes.shapes, 1], colour: [scene.nodes.colours, 4] });
  }

  function draw(view, paper) {
    const ratio = view.ratio;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...paper.map((x) => x / 255), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    for (const [made, count] of [[edges, counts.edges], [nodes, counts.nodes]]) {
      if (!count) continue;
      made.use(gl);
      gl.uniform2f(made.at("size"), canvas.width, canvas.height);
      gl.uniform3f(made.at("view"), view.x, view.y, view.scale * ratio);
      gl.uniform1f(made.at("ratio"), ratio);
      if (made === edges) {
        gl.drawElements(gl.TRIANGLES, 6 * count, gl.UNSIGNED_INT, 0);
      } else {
        gl.uniform1f(made.at("unit"), view.unit);
        gl.uniform3f(made.at("paper"), ...paper.map((x) => x / 255));
        gl.drawArrays(gl.POINTS, 0, count);
      }
    }
  }

  return { load, draw, kind: "WebGL 2", finish: () => gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)) };
}

// Each group of `n` values four times, once for each corner of an edge.
function repeated(values, n) {
  const found = new values.constructor(4 * values.length);
  for (let i = 0; i < values.length; i += n) {
    for (let corner = 0; corner < 4; corner++) {
      for (let c = 0; c < n; c++) found[4 * i + corner * n + c] = values[i + c];
    }
  }
  return found;
}

// The two triangles of each of so many edges.
function corners(count) {
  const found = new Uint32Array(6 * count);
  for (let i = 0; i < count; i++) found.set([0, 1, 2, 2, 1, 3].map((c) => 4 * i + c), 6 * i);
  return found;
}

function program(gl, vertex, pixel) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, pixel]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  const arrays = gl.createVertexArray();
  const buffers = {};
  const places = {};
  return {
    at: (name) => (places[name] ??= gl.getUniformLocation(made, name)),
    use() {
      gl.useProgram(made);
      gl.bindVertexArray(arrays);
    },
    fill(_, parts, indices) {
      gl.bindVertexArray(arrays);
      for (const [name, [values, n]] of Object.entries(parts)) {
        buffers[name] ??= gl.createBuffer();
        gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
        gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
        const place = gl.getAttribLocation(made, name);
        const bytes = values instanceof Uint8Array;
        gl.enableVertexAttribArray(place);
        gl.vertexAttribPointer(place, n, bytes ? gl.UNSIGNED_BYTE : gl.FLOAT, bytes, 0, 0);
      }
      if (!indices) return;
      buffers.indices ??= gl.createBuffer();
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.indices);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
    },
  };
}
