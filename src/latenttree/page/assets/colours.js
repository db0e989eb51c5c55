// Colours that people who do not see all of them can tell apart, and shapes that tell more apart.
import { isHidden } from "./data.js";

export const THEMES = {
  light: { paper: "#fdfdfb", ink: "#22262c", faint: "#8d949e", edge: "#b3b9c2", hidden: "#868d97", none: "#c9cdd3" },
  dark: { paper: "#15181d", ink: "#eceef1", faint: "#8d949e", edge: "#4d545e", hidden: "#7d858f", none: "#4d545e" },
};
export const SHAPES = ["circle", "square", "triangle", "diamond"];

// Okabe and Ito's palette, without black; yellow darker on white.
const LABELS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#b8a800"],
  dark: ["#4aa3df", "#f07f2e", "#22c79a", "#e79bc4", "#8ccff5", "#f2b637", "#f0e442"],
};
// Cividis: its lightness grows evenly, for all kinds of sight.
const NUMBERS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

export function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

// sRGB from Oklab lightness, chroma and hue, so that even steps look even.
function oklch(light, chroma, hue) {
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const c = Math.min(Math.max(x, 0), 1);
    return Math.round(255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055));
  });
}

// Topics lie side by side on the map: neighbours in their order differ in hue and in lightness.
export function topicColour(i, count, theme) {
  const steps = theme === "dark" ? [0.7, 0.82, 0.62] : [0.62, 0.48, 0.72];
  return oklch(steps[i % 3], 0.13, (2 * Math.PI * ((i * 0.381966) % 1)) + 0.6);
}

export function numberColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (NUMBERS.length - 1);
  const low = Math.min(Math.floor(at), NUMBERS.length - 2);
  const [a, b] = [rgb(NUMBERS[low]), rgb(NUMBERS[low + 1])];
  return a.map((x, i) => Math.round(x + (b[i] - x) * (at - low)));
}

export function numberRamp() {
  return `linear-gradient(to right, ${NUMBERS.join(", ")})`;
}

// What a label looks like: seven colours, then the same in other shapes.
export function labelLook(i, theme) {
  const colours = LABELS[theme];
  return { colour: rgb(colours[i % colours.length]), shape: Math.floor(i / colours.length) % SHAPES.length };
}

// Of every node {colour, shape}, and the entries of the legend [{text, colour, shape, nodes}].
export function looksByTopic(tree, level, theme) {
  const topics = level.topics;
  const none = { colour: rgb(THEMES[theme].none), shape: 0 };
  const looks = topics.map((_, i) => ({ colour: topicColour(i, topics.length, theme), shape: 0 }));
  const of = level.member.map((t) => (t < 0 ? none : looks[t]));
  const legend = topics.map((topic, i) => ({ text: topic.label, size: topic.size, key: i, ...looks[i] }));
  return { of, legend, keyOf: (v) => level.member[v] };
}

export function looksByColumn(tree, column, theme) {
  const hidden = { colour: rgb(THEMES[theme].hidden), shape: 0 };
  const none = { colour: rgb(THEMES[theme].none), shape: 0 };
  const look = column.kind === "labels" ? (x) => labelLook(x, theme) : numberLook(column);
  const of = tree.names.map((_, v) => {
    if (isHidden(tree, v)) return hidden;
    return column.values[v] === null ? none : look(column.values[v]);
  });
  const keyOf = (v) => (isHidden(tree, v) ? null : column.values[v]);
  if (column.kind === "numbers") return { of, legend: null, range: column.range, keyOf };
  const sizes = column.labels.map(() => 0);
  column.values.forEach((x) => x !== null && sizes[x]++);
  const legend = column.labels.map((text, i) => ({ text, size: sizes[i], key: i, ...labelLook(i, theme) }));
  const missing = column.values.filter((x) => x === null).length;
  if (missing) legend.push({ text: "no value", size: missing, key: null, ...none });
  return { of, legend, keyOf };
}

function numberLook(column) {
  const [low, high] = column.range;
  return (x) => ({ colour: numberColour(high > low ? (x - low) / (high - low) : 0.5), shape: 0 });
}
