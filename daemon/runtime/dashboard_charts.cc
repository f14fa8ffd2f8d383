// SPDX-License-Identifier: Apache-2.0
// What the page draws, by Chart.js. All drawings of a history have the same room at both sides, so
// that a moment stands at the same place in each. Times are seconds before now, negative.
#include "runtime/dashboard.h"

namespace sluice::runtime {

char const dashboard_charts[] = R"js("use strict";
const drawings = new Map();  // by the element they are in
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = 'system-ui, "DejaVu Sans", sans-serif';

const colour = name =>
  getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
// The longest op has room, with its unit.
const sideRoom = place => place.clientWidth < 500 ? {left: 118, right: 58} : {left: 130, right: 80};

// 1, 2 or 5 times a power of ten; of bytes a power of two.
function roundStep(most, unit) {
  const wanted = most / 5;
  if (!(wanted > 0)) return 1;
  if (unit === "bytes") return Math.max(1, 2 ** Math.ceil(Math.log2(wanted)));
  const ten = 10 ** Math.floor(Math.log10(wanted));
  return ten * [1, 2, 5, 10].find(x => x * ten >= wanted);
}
const timeStep = span => [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900].find(s => span / s <= 7);

function timeAxis(span) {
  return {type: "linear", min: -span, max: 0, grid: {color: colour("rule")},
    ticks: {stepSize: timeStep(span), includeBounds: false, color: colour("soft"), maxRotation: 0,
      callback: v => ago(-v)}};
}

// A hatched strip below the lines, where something waited.
const waitStrip = {id: "waitStrip", afterDraw(chart) {
  const strip = chart.data.strip, x = chart.scales.x, tall = 6;
  if (!strip) return;
  chart.ctx.fillStyle = chart.ctx.createPattern(hatched(), "repeat");
  strip.blocked.forEach((v, i) => {
    if (!(v > 0.01)) return;
    const from = x.getPixelForValue((i - strip.blocked.length) * strip.interval_s);
    const to = x.getPixelForValue((i + 1 - strip.blocked.length) * strip.interval_s);
    chart.ctx.fillRect(from, chart.chartArea.bottom - tall, to - from, tall);
  });
}};
function hatched() {
  const tile = document.createElement("canvas"), pen = tile.getContext("2d");
  tile.width = tile.height = 6;
  pen.strokeStyle = colour("wait");
  pen.lineWidth = 1.6;
  for (const at of [-6, 0, 6]) { pen.moveTo(at, 6); pen.lineTo(at + 6, 0); }
  pen.stroke();
  return tile;
}

// A drawing is changed, not made anew, so that the pointer's words stay.
function show(place, says, config) {
  const old = drawings.get(place);
  if (old) {
    old.data = config.data;
    old.options = config.options;
    old.update("none");
    return;
  }
  const canvas = make("canvas", {role: "img", "aria-label": says});
  place.replaceChildren(canvas);
  drawings.set(place, new Chart(canvas, {...config, plugins: [waitStrip]}));
}
function hide(place) {
  drawings.get(place)?.destroy();
  drawings.delete(place);
  place.replaceChildren();
}

const styles = {
  served: {order: 9, fill: true, borderWidth: 0, pointStyle: "rect"},
  grant: {borderWidth: 2},
  demand: {borderDash: [6, 4]},
  limit: {borderDash: [1.5, 3.5], borderWidth: 2},
  capacity: {borderDash: [9, 3, 2, 3]}};

// Steps: a value holds for its interval.
function datasets(lines, interval_s) {
  return lines.map(l => {
    const n = l.values.length;
    const data = l.values.concat(l.values.slice(-1)).map((v, i) =>
      ({x: (i - n) * interval_s, y: v}));
    return {label: l.name, data, stepped: true, pointRadius: 0, pointStyle: "line",
      borderWidth: 1.6,
      borderColor: colour(l.name === "grant" ? "use" : l.name === "served" ? "area" : "line"),
      backgroundColor: colour("area") + (l.name === "served" ? "a6" : "00"), ...styles[l.name]};
  });
}

const blockedAt = (strip, i) =>
  strip && i < strip.blocked.length ? ["time waiting " + part(strip.blocked[i])] : [];

const mostOf = lines => Math.max(0, ...lines.flatMap(l => l.values.map(v => v || 0)));
// Bounds far above all that was used would press the use flat: they are left above the drawing, and
// named with their height.
const far = 8, bounds = ["grant", "limit", "capacity"];
function topOf(lines) {
  const used = mostOf(lines.filter(l => !bounds.includes(l.name))), most = mostOf(lines);
  return used > 0 && most > far * used ? 1.5 * used : most;
}

/// Lines over the last `span_s`. `lines`: name and values, oldest first; `says`: the words for a
/// value of a line of that name.
function showLines(place, lines, row, span_s, says, blocked) {
  const most = topOf(lines);
  const step = roundStep(most, row.unit), room = sideRoom(place);
  const strip = blocked ? {blocked, interval_s: row.interval_s} : null;
  const top = Math.max(step, Math.ceil(most / step) * step);
  const sets = datasets(lines, row.interval_s);
  const above = Object.fromEntries(lines.filter(l => bounds.includes(l.name) &&
    l.values.every(v => v === null || v > top) && mostOf([l]) > top)
    .map(l => [l.name, " (above, " + says(mostOf([l])) + ")"]));
  show(place, lines.map(l => l.name).join(", ") + " over time", {
    type: "line", data: {datasets: sets, strip},
    options: {parsing: false, layout: {padding: {right: room.right}},
      interaction: {mode: "index", axis: "x", intersect: false},
      scales: {x: timeAxis(span_s),
        y: {min: 0, max: top,
          grid: {color: colour("rule")}, afterFit: axis => { axis.width = room.left; },
          ticks: {stepSize: step, color: colour("text"), callback: v => says(v)}}},
      plugins: {legend: {align: "start", labels: {color: colour("soft"),
        usePointStyle: true, generateLabels: chart => Chart.defaults.plugins.legend.labels
          .generateLabels(chart).map(l => ({...l, text: l.text + (above[l.text] ?? "")}))}},
        tooltip: {callbacks: {
          title: items => ago(-items[0].parsed.x),
          label: item => item.dataset.label + " " + says(item.raw.y, item.dataset.label),
          afterBody: items => blockedAt(strip, items[0].dataIndex)}}}}});
}

/// A trend without axes, up to the capacity, or up to what was used where that is far less. The
/// words: how much that was.
function showTrend(place, row) {
  const most = mostOf([{values: row.served}, {values: row.demand}]);
  if (!(most > 0)) {
    hide(place);
    return "no calls in the last hour";
  }
  const sets = datasets([{name: "served", values: row.served}, {name: "demand",
    values: row.demand}], row.interval_s);
  show(place, "served and demand of the last hour", {
    type: "line", data: {datasets: sets, strip: {blocked: row.blocked, interval_s:
      row.interval_s}},
    options: {parsing: false, events: [],
      scales: {x: {type: "linear", display: false, max: 0},
        y: {display: false, min: 0, max: most * far < row.capacity ? 1.2 * most : row.capacity}},
      plugins: {legend: {display: false}, tooltip: {enabled: false}}}});
  return "the last hour, " + rate(mostOf([{values: row.served}]), row.unit) + " at most";
}

// At most 120 cells in a row: the mean of what falls into one.
function cellsOf(row, n, step) {
  const late = n - row.done.length, cells = [];
  for (let from = 0; from < n; from += step) {
    const known = [];
    for (let i = Math.max(from, late); i < Math.min(n, from + step); ++i)
      if (row.done[i - late] !== null) known.push(row.done[i - late]);
    const mean = known.length ? known.reduce((a, b) => a + b) / known.length : 0;
    if (mean > 0) cells.push({from: from - n, to: Math.min(n, from + step) - n, mean});
  }
  return cells;
}

/// What a job did over time: a row each, darker is more, its end stands at the right.
function showHeat(place, rows, span_s) {
  const n = Math.max(...rows.map(r => r.done.length)), step = Math.max(1, Math.ceil(n / 120));
  const says = (v, r) => r.unit === "s" ? finePart(v) : rate(v, r.unit);
  const interval_s = rows[0].interval_s, room = sideRoom(place), data = [], fills = [];
  const names = rows.map(r => r.op + ({bytes: " (bytes)", s: " (time)"}[r.unit] ?? ""));
  const ends = rows.map((r, at) => {
    const cells = cellsOf(r, n, step), most = Math.max(0, ...cells.map(c => c.mean));
    for (const c of cells) {
      const strength = Math.round(255 * (.15 + .85 * c.mean / most));
      data.push({x: [c.from * interval_s, c.to * interval_s], y: names[at],
        says: names[at] + " " + says(c.mean, r)});
      fills.push(colour("use") + strength.toString(16).padStart(2, "0"));
    }
    return says(most, r);
  });
  const across = (side, labels, width, ink) => ({axis: "y", type: "category", position: side,
    labels, grid: {display: side === "left", color: colour("rule")}, offset: true,
    afterFit: axis => { axis.width = width; },
    ticks: {color: colour(ink), autoSkip: false, crossAlign: side === "left" ? "near" : "far"}});
  place.style.height = rows.length * 20 + 40 + "px";
  show(place, "operations over time", {
    type: "bar", data: {labels: names, datasets: [{data, backgroundColor: fills,
      barPercentage: .9, categoryPercentage: 1, borderSkipped: false, yAxisID: "y"}]},
    options: {indexAxis: "y",
      scales: {x: timeAxis(span_s), y: across("left", names, room.left, "text"),
        most: across("right", ends, room.right, "soft")},
      plugins: {legend: {display: false}, tooltip: {displayColors: false, callbacks: {
        title: items => ago(-items[0].raw.x[0]), label: item => item.raw.says}}}}});
}
)js";

}  // namespace sluice::runtime
