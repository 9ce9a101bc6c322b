// Line charts over time, drawn as SVG. Their colors come from the style sheet, so a change of the theme needs no code.

import { clock, drawing, element } from "./common.js";

const height = 170;
/** `left` is at least this; longer labels of the vertical axis need more. */
const margin = { top: 6, right: 8, bottom: 18, left: 52 };
const names = ["one", "two", "three", "four"];
const timeSteps = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];

/** The smallest axis step that reaches `most` in at most four steps: 1, 2 or 5 times a power of ten; for bytes a power of two. */
function step(most, isBytes) {
  if (isBytes) return 2 ** Math.ceil(Math.log2(Math.max(most, 4) / 4));
  if (!(most > 0)) return 0.25;
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return power * [1, 2, 5, 10].find((factor) => factor * power * 4 >= most * 0.999);
}

/** At most five round instants between two instants. */
function timeTicks(first, last) {
  const step = timeSteps.find((one) => (last - first) / one <= 5) ?? 86400;
  const ticks = [];
  for (let value = Math.ceil(first / step) * step; value <= last; value += step) ticks.push(value);
  return ticks;
}

/** A chart with a line for each of `series`: `{label, value}`, where `value` returns the value of a point, or nothing. */
export class TimeChart {
  constructor(place, title, series, format, options = {}) {
    Object.assign(this, { title, format, options, series: [], points: [] });
    this.drawing = drawing("svg", { class: "chart", role: "img", "aria-label": title });
    this.legend = element("p", { class: "series" });
    this.reading = element("p", { class: "reading", hidden: true });
    this.drawing.addEventListener("pointermove", (event) => this.read(event.offsetX));
    this.drawing.addEventListener("pointerleave", () => this.read(null));
    place.append(element("figure", {}, element("figcaption", {}, title), this.legend, this.drawing, this.reading));
    this.setSeries(series);
    new ResizeObserver(() => this.draw()).observe(this.drawing);
  }

  /** Replaces the series; call `show` afterwards to set their points. */
  setSeries(series) {
    this.series = series;
    this.legend.replaceChildren(
      ...series.map((one, index) => element("span", { class: names[index] }, one.label)));
    this.legend.hidden = series.length < 2;
  }

  show(points) {
    this.points = points;
    const last = points.at(-1);
    const now = this.series.map((one) => `${one.label} ${last ? this.format(one.value(last)) : "–"}`);
    this.drawing.setAttribute("aria-label", `${this.title}, now: ${now.join(", ")}`);
    this.drawing.dataset.points = points.length;
    this.draw();
  }

  draw() {
    const { points, series } = this;
    const width = this.drawing.clientWidth;
    if (width === 0 || points.length === 0) return this.drawing.replaceChildren();
    const first = points[0].time;
    const last = Math.max(points.at(-1).time, first + 1);
    const values = points.flatMap((point) => series.map((one) => one.value(point) ?? 0));
    const tick = step(Math.max(0, this.options.most ?? 0, ...values), this.options.bytes);
    const most = Math.max(tick, Math.ceil(Math.max(this.options.most ?? 0, ...values) / tick - 1e-9) * tick);
    const right = width - margin.right;
    const bottom = height - margin.bottom;
    const y = (value) => bottom - (value / most) * (bottom - margin.top);
    const ticks = [];
    for (let value = 0; value <= most * 1.001; value += tick) ticks.push(value);
    const labels = ticks.map((value) => drawing("text", { y: y(value) + 4, "text-anchor": "end" }, this.format(value)));
    // Only drawn texts have a length.
    this.drawing.replaceChildren(...labels);
    const left = Math.max(margin.left, ...labels.map((label) => label.getComputedTextLength() + 8));
    for (const label of labels) label.setAttribute("x", left - 6);
    this.x = (time) => left + ((time - first) / (last - first)) * (right - left);
    const lines = ticks.map((value) => drawing("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }));
    const parts = [...lines, ...labels];
    // Show seconds only if the chart spans some minutes.
    const digits = last - first < 900 ? 8 : 5;
    for (const time of timeTicks(first, last)) {
      const place = { x: this.x(time), y: height - 4, "text-anchor": "middle" };
      parts.push(drawing("text", place, clock(time).slice(0, digits)));
    }
    series.forEach((one, index) => {
      parts.push(drawing("path", { d: this.path(one, y), class: `line ${names[index]}` }));
    });
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.drawing.replaceChildren(...parts);
  }

  /** A line through the values of a series, with gaps where a value is missing or the daemon was not running. */
  path(one, y) {
    let isDrawing = false;
    return this.points.map((point, at) => {
      const value = one.value(point) ?? null;
      if (value === null || (at > 0 && (point.commands ?? null) === null)) isDrawing = false;
      if (value === null) return "";
      const command = isDrawing ? "L" : "M";
      isDrawing = true;
      return `${command}${this.x(point.time).toFixed(1)} ${y(value).toFixed(1)}`;
    }).join("");
  }

  /** Shows the values of the point nearest to a place as text. */
  read(place) {
    this.reading.hidden = place === null || this.points.length === 0;
    if (this.reading.hidden) return;
    const near = this.points.reduce((best, point) =>
      Math.abs(this.x(point.time) - place) < Math.abs(this.x(best.time) - place) ? point : best);
    this.reading.textContent =
      [clock(near.time), ...this.series.map((one) => `${one.label}: ${this.format(one.value(near))}`)].join(" · ");
  }
}
