// Line charts over time, by Chart.js, which stands in the page already.

import { clock, element, isDark } from "./common.js";

const style = getComputedStyle(document.documentElement);
const color = (name) => style.getPropertyValue(`--${name}`).trim();
const colors = ["one", "two", "three", "four"];

/** Seconds are shown while the chart spans some minutes only. */
function timeTick(value) {
  return clock(value).slice(0, this.max - this.min < 900 ? 8 : 5);
}

const timeSteps = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];

/** A few round instants, none at the very end. */
function timeTicks(axis) {
  const step = timeSteps.find((one) => (axis.max - axis.min) / one <= 5) ?? 86400;
  const ticks = [];
  for (let value = Math.ceil(axis.min / step) * step; value <= axis.max; value += step) ticks.push({ value });
  axis.ticks = ticks;
}

/** A power of two of which a few reach a number of bytes. */
const byteStep = (most) => 2 ** Math.ceil(Math.log2(Math.max(most, 4) / 4));

function roundUp(axis) {
  const step = byteStep(axis.max);
  axis.max = Math.ceil(axis.max / step) * step;
}

function byteTicks(axis) {
  const step = byteStep(axis.max);
  axis.ticks = Array.from({ length: Math.floor(axis.max / step) + 1 }, (_, index) => ({ value: index * step }));
}

/** A chart with a series for each of `series`: `{label, value}`, where `value` takes a point's value or nothing. */
export class TimeChart {
  constructor(place, title, series, format, options = {}) {
    this.series = series;
    this.title = title;
    this.format = format;
    this.canvas = element("canvas", { role: "img", "aria-label": title });
    place.append(element("figure", {}, element("figcaption", {}, title), element("div", { class: "chart" }, this.canvas)));
    this.chart = new Chart(this.canvas, {
      type: "line",
      data: { datasets: series.map(TimeChart.dataset) },
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        parsing: false,
        normalized: true,
        interaction: { mode: "index", intersect: false },
        scales: {
          x: { type: "linear", bounds: "data", ticks: { maxRotation: 0, callback: timeTick }, afterBuildTicks: timeTicks },
          y: {
            beginAtZero: true,
            suggestedMax: options.most,
            ticks: { maxTicksLimit: 5, callback: (value) => format(value) },
            ...(options.bytes ? { afterDataLimits: roundUp, afterBuildTicks: byteTicks } : {}),
          },
        },
        plugins: {
          legend: { display: series.length > 1, labels: { boxWidth: 12, boxHeight: 2 } },
          tooltip: {
            callbacks: {
              title: (items) => (items.length > 0 ? clock(items[0].parsed.x) : ""),
              label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
            },
          },
        },
      },
    });
    this.paint();
  }

  static dataset(one) {
    return { label: one.label, data: [], borderWidth: 1.5, pointRadius: 0, tension: 0, spanGaps: false };
  }

  /** Shows other series from now on; `show` brings their points. */
  setSeries(series) {
    if (series.map((one) => one.label).join() === this.series.map((one) => one.label).join()) return;
    this.series = series;
    this.chart.data.datasets = series.map(TimeChart.dataset);
    this.chart.options.plugins.legend.display = series.length > 0;
    this.paint();
  }

  /** Takes the colors of the theme. */
  paint() {
    this.chart.data.datasets.forEach((set, index) => {
      set.borderColor = color(colors[index]);
      set.backgroundColor = color(colors[index]);
    });
    for (const axis of Object.values(this.chart.options.scales)) {
      axis.grid = { color: color("line") };
      axis.ticks.color = color("muted");
    }
    this.chart.options.plugins.legend.labels.color = color("text");
    this.chart.update("none");
  }

  show(points) {
    this.series.forEach((one, index) => {
      this.chart.data.datasets[index].data = points.flatMap((point, at) => {
        const here = { x: point.time, y: one.value(point) ?? NaN };
        // Without a rate the daemon was away before it: no line leads there.
        return at > 0 && (point.commands ?? null) === null ? [{ x: point.time - 0.5, y: NaN }, here] : [here];
      });
    });
    this.chart.update("none");
    const last = points.at(-1);
    const said = this.series.map((one) => `${one.label} ${last ? this.format(one.value(last)) : "–"}`);
    this.canvas.setAttribute("aria-label", `${this.title}, now: ${said.join(", ")}`);
    this.canvas.dataset.points = points.length;
  }
}

export const theme = () => (isDark() ? "dark" : "light");
