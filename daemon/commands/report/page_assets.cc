// SPDX-License-Identifier: Apache-2.0
// Style and script of the page. Areas have the colours of Okabe and Ito with a pattern each; use is
// blue and waiting vermillion, told apart by brightness too; paper is always light.
#include "commands/report/page.h"

namespace sluice::report {

char const page_style[] = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606a; --rule: #d0d7de;
  --use: #0b5c9e; --wait: #b3430b; --card: #f6f8fa; --area: #56b4e9; --line: #1b1f24;
  --mark: #ffffff99; }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --text: #e6edf3; --soft: #9aa5b1;
  --rule: #343b44; --use: #6cb6ff; --wait: #ff9157; --card: #1c2229; --area: #2f6f99;
  --line: #e6edf3; --mark: #0000008c; } }
@media print { :root { color-scheme: light; --back: #fff; --text: #000; --soft: #333; --rule: #999;
  --use: #0b5c9e; --wait: #b3430b; --card: #fff; --area: #9fd0ee; --line: #000;
  --mark: #ffffff99; }
  section, svg.chart, table { break-inside: avoid; } svg.chart { min-width: 0; }
  .readout, .switch { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: clamp(72rem, 50vw, 100rem);
  background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
body.many { max-width: none; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
h3 { font-size: .95rem; margin: 1rem 0 .2rem; overflow-wrap: anywhere; }
p, ul, ol { margin: .3rem 0; }
.soft, figcaption, footer { color: var(--soft); font-size: .87rem; overflow-wrap: anywhere; }
.said { background: var(--card); border: 1px solid var(--rule); border-radius: 6px;
  padding: .6rem 1rem; overflow-wrap: anywhere; }
.said p:nth-child(2) { font-size: 1.1rem; font-weight: 600; }
.beside { display: grid; grid-auto-columns: minmax(26rem, 1fr); grid-auto-flow: column; gap: 1.5rem;
  overflow-x: auto; }
figure { margin: .4rem 0 1rem; padding-bottom: .4rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--rule);
  vertical-align: top; white-space: nowrap; }
th { font-weight: 600; color: var(--soft); white-space: normal; }
th:first-child, td:first-child, th.left, td.left { text-align: left; overflow-wrap: anywhere;
  white-space: normal; }
td:first-child { min-width: 11rem; } td.left { min-width: 14rem; }
.scroll { overflow-x: auto; }
details summary { cursor: pointer; color: var(--soft); }
svg.chart { display: block; width: 100%; min-width: 42rem; height: auto; fill: var(--text);
  font: 11px system-ui, "DejaVu Sans", sans-serif; }
svg.bar { width: 7rem; height: .55rem; }
svg.swatch { width: 1rem; height: .75rem; margin-right: .3rem; border: 1px solid var(--rule); }
svg.definitions { position: absolute; width: 0; height: 0; }
.label { text-anchor: end; } .tick { text-anchor: middle; fill: var(--soft); }
.small, .note { fill: var(--soft); }
.axis { stroke: var(--soft); fill: none; } .grid { stroke: var(--rule); fill: none; }
.h0 { fill: var(--use); } .h1 { fill: var(--wait); }
.l1 { fill-opacity: .13; } .l2 { fill-opacity: .25; } .l3 { fill-opacity: .37; }
.l4 { fill-opacity: .49; } .l5 { fill-opacity: .61; } .l6 { fill-opacity: .74; }
.l7 { fill-opacity: .87; } .l8 { fill-opacity: 1; }
.unknown, .strip { fill: url(#hatch); } .hatch { stroke: var(--wait); stroke-width: 1.6; }
.unknown { opacity: .35; } .rail { fill: var(--rule); opacity: .6; }
.paused { fill: var(--soft); fill-opacity: .22; stroke: var(--soft); stroke-dasharray: 1 3; }
.area { fill: var(--area); fill-opacity: .65; }
.line { fill: none; stroke: var(--line); stroke-width: 1.7; }
.line.solid { stroke: var(--use); stroke-width: 2; } .line.dashed { stroke-dasharray: 6 4; }
.line.dotted { stroke-dasharray: 1.5 3.5; stroke-width: 2; }
.line.dashdot { stroke-dasharray: 9 3 2 3; }
.span { fill: var(--use); } .span.open { fill: url(#hatch); stroke: var(--wait); }
.mark { stroke: var(--mark); fill: none; stroke-width: 1.3; }
.s0 { fill: #0072b2; } .s1 { fill: #e69f00; } .s2 { fill: #009e73; } .s3 { fill: #cc79a7; }
.s4 { fill: #56b4e9; } .s5 { fill: #d55e00; } .s6 { fill: #f0e442; } .s7 { fill: #8a929b; }
.pointer { stroke: var(--soft); stroke-dasharray: 2 2; }
body.many svg.chart { min-width: 26rem; }
.readout { min-height: 1.4em; font-size: .85rem; color: var(--soft); overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; position: sticky; left: 0; }
)css";

char const page_script[] = R"js(
"use strict";
// Under the pointer: the time and the values of the column, as text.
(function () {
  const steps = {bytes: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]],
                 other: [1000, ["", "k", "M", "G", "T", "P"]]};
  function amount(v, unit) {
    if (v === null || v === undefined) return "-";
    if (unit === "part") return Math.round(v * 100) + " %";
    if (unit === "time") return v.toPrecision(3) + " s";
    const [by, letters] = steps[unit === "bytes" ? "bytes" : "other"];
    let i = 0;
    while (v >= by && i + 1 < letters.length) { v /= by; ++i; }
    const end = unit === "threads" ? " threads" : unit === "s" ? "s/s"
              : unit === "vops" ? " VOP/s" : "/s";
    const number = Number.isInteger(v) ? v : v.toPrecision(3);
    return number + (letters[i] ? " " + letters[i] : "") + end;
  }
  function clock(s) {
    const two = n => String(Math.floor(n)).padStart(2, "0");
    const days = Math.floor(s / 86400);
    return (days ? days + " d " : "") + Math.floor(s / 3600 % 24) + ":" + two(s / 60 % 60) + ":" +
           two(s % 60);
  }
  for (const chart of document.querySelectorAll("svg.chart")) {
    if (!chart.dataset.hover) continue;
    const facts = JSON.parse(chart.dataset.hover);
    const readout = document.createElement("div");
    readout.className = "readout";
    chart.after(readout);
    const pointer = document.createElementNS("http://www.w3.org/2000/svg", "path");
    pointer.setAttribute("class", "pointer");
    chart.append(pointer);
    chart.addEventListener("pointermove", event => {
      const box = chart.getBoundingClientRect(), view = chart.viewBox.baseVal;
      const x = (event.clientX - box.left) * view.width / box.width;
      const at = Math.floor((x - facts.left) / facts.column);
      if (!(at >= 0) || x > facts.right || facts.rows.every(r => at >= r.values.length)) return;
      pointer.setAttribute("d", "M" + x + " 0V" + view.height);
      readout.textContent = clock(at * facts.step) + "   " + facts.rows
        .filter(r => r.values[at] !== 0 && r.values[at] !== undefined)
        .map(r => r.label + " " + amount(r.values[at], r.unit)).join("   ");
    });
    chart.addEventListener("pointerleave", () => {
      pointer.removeAttribute("d");
      readout.textContent = "";
    });
  }
})();
)js";

}  // namespace sluice::report
