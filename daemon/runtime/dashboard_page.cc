// SPDX-License-Identifier: Apache-2.0
// The dashboard's page, style and script. Names of jobs are strangers' text: they reach the page as
// text nodes only. The key comes in the fragment of the address, which no server and no referrer
// sees, and is taken out of it.
#include "runtime/dashboard.h"

namespace sluice::runtime {

char const dashboard_page[] = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sluice</title>
<link rel="stylesheet" href="/dashboard/page.css">
<script src="/dashboard/chart.js" defer></script>
<script src="/dashboard/charts.js" defer></script>
<script src="/dashboard/page.js" defer></script>
</head>
<body>
<header><h1 id="title">sluice</h1><p id="state" role="status">asking …</p></header>
<noscript><p>This page draws with a script of its own; /metrics has the figures as
  text.</p></noscript>
<p id="hint" hidden></p>
<section><h2>Supplies</h2><div id="supplies"></div></section>
<section id="past" hidden aria-live="polite">
<h2><span id="past-title"></span> <button id="past-close">close</button></h2>
<p><button id="past-hour" aria-pressed="true">last hour</button>
<button id="past-minutes" aria-pressed="false">last ten minutes</button></p>
<p id="past-none"></p>
<div id="past-ops" hidden><div id="heat" class="plot"></div>
<p class="soft">Operations of the job over time, at all supplies. A stronger colour is more; every
row has its own scale, whose end is at the right. Time is the part of a second that threads were
in the call itself, by a sample; two threads all the time are 200 %.</p></div>
<div id="past-charts" hidden><div id="rates" class="plot"></div>
<p class="soft">The hatched strip marks times in which a request waited. Demand has a
gap where it was above the grant.</p><div id="waiting" class="plot"></div></div></section>
<section id="jobs-section"><h2>Jobs <span id="job-count" class="soft"></span></h2>
<p><label>Filter <input id="filter" type="search" placeholder="job, user, class, supply"></label>
<label><input id="waiting-only" type="checkbox"> only those that wait</label>
<label><input id="ended-too" type="checkbox"> ended ones too</label></p>
<div class="scroll"><table id="jobs"></table></div></section>
<section><h2>Classes</h2><div class="scroll"><table id="classes"></table></div></section>
</body>
</html>
)html";

char const dashboard_style[] = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606a; --rule: #d0d7de;
  --use: #0b5c9e; --wait: #b3430b; --card: #f6f8fa; --area: #56b4e9; --line: #1b1f24; }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --text: #e6edf3; --soft: #9aa5b1;
  --rule: #343b44; --use: #6cb6ff; --wait: #ff9157; --card: #1c2229; --area: #2f6f99;
  --line: #e6edf3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: clamp(80rem, 60vw, 140rem);
  background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
header { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: baseline; }
p { margin: .3rem 0; } #state, .soft { color: var(--soft); font-size: .9rem; font-weight: 400; }
#state.lost { color: var(--wait); font-weight: 600; }
#hint { border: 1px solid var(--rule); border-radius: 6px; padding: .4rem .7rem; background:
  var(--card); }
#supplies { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap:
  .8rem; }
.card { text-align: left; font: inherit; color: inherit; background: var(--card); cursor: pointer;
  border: 1px solid var(--rule); border-radius: 6px; padding: .6rem .8rem; overflow-wrap: anywhere;
  display: flex; flex-direction: column; justify-content: start; }
.card strong { display: block; } .card svg { display: block; width: 100%; height: 1rem; margin:
  .3rem 0; }
button, input { font: inherit; font-size: .85rem; color: inherit; background: var(--card);
  border: 1px solid var(--rule); border-radius: 4px; padding: .15rem .5rem; }
button { cursor: pointer; } input::placeholder { color: var(--soft); opacity: 1; }
button[aria-pressed=true] { font-weight: 700; }
label { margin-right: 1rem; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th.left, td.left { text-align: left; max-width: 22rem; overflow: hidden; text-overflow: ellipsis; }
th button { border: 0; background: none; color: var(--soft); font-weight: 600; cursor: pointer;
  padding: 0; }
@media (max-width: 40rem) { th.left, td.left { min-width: 8rem; max-width: 9rem;
    white-space: normal; overflow-wrap: anywhere; }
  #jobs :is(th, td):is(:nth-child(2), :nth-child(3)) { display: none; }
  #jobs :is(th, td):first-child { position: sticky; left: 0; background: var(--back); } }
tbody tr { cursor: pointer; } tbody tr:hover, tbody tr:focus { background: var(--card); }
tbody tr.chosen { outline: 2px solid var(--use); outline-offset: -2px; } tr.ended { color:
  var(--soft); }
td.waits { color: var(--wait); font-weight: 600; }
.plot { position: relative; height: 15rem; } #waiting { height: 9rem; } .trend { position:
  relative; height: 3rem; margin-top: .3rem; } .trend:empty { display: none; }
.rail { fill: var(--rule); } .used { fill: var(--use); } .granted { fill: none; stroke:
  var(--line); }
)css";

}  // namespace sluice::runtime
