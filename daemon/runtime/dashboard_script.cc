// SPDX-License-Identifier: Apache-2.0
// See dashboard_page.cc. It asks /dashboard/now.json each second and the history of what was
// clicked every few seconds, nothing while nobody looks, and says so when no answer comes.
#include "runtime/dashboard.h"

namespace sluice::runtime {

char const dashboard_script[] = R"js("use strict";
const $ = id => document.getElementById(id);
const storage = "sluice-key";
let now = null, chosen = null, fine = false, order = {by: "blocked", down: true},
  heard = Date.now();

function takeKey() {
  const given = location.hash.slice(1);
  if (/^[0-9a-f]{48}$/.test(given)) {
    sessionStorage.setItem(storage, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(storage);
}
let key = takeKey();
addEventListener("hashchange", () => { key = takeKey(); refresh(); });

async function ask(path) {
  const answer = await fetch(path, {headers: key ? {Authorization: "Bearer " + key} : {},
                                    cache: "no-store", signal: AbortSignal.timeout(5000)});
  if (answer.status === 401) {  // of an earlier life of the daemon
    key = null;
    sessionStorage.removeItem(storage);
    return ask(path);
  }
  if (!answer.ok) throw new Error("status " + answer.status);
  return answer.json();
}

function make(name, facts, ...inside) {
  const svg = ["svg", "path", "rect"].includes(name);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
                : document.createElement(name);
  for (const [k, v] of Object.entries(facts || {}))
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v); else e.setAttribute(k, v);
  e.append(...inside);
  return e;
}

function amount(v, unit) {
  if (v === null || v === undefined) return "-";
  const by = unit === "bytes" ? 1024 : 1000;
  const letters = unit === "bytes" ? ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
                                   : ["", "k", "M", "G", "T", "P"];
  let i = 0;
  while (v >= by && i + 1 < letters.length) { v /= by; ++i; }
  return (Number.isInteger(v) ? v : Number(v.toPrecision(3))) + (letters[i] ? " " +
    letters[i] : "");
}
const rate = (v, unit) => v === null || v === undefined ? "-"
  : amount(v, unit) + (unit === "vops" ? " VOP/s" : "/s");
// Of the seconds of a second: two threads all the time are 200 %.
const finePart = v => Number((v * 100).toPrecision(2)) + " %";
// Of requests, of their bytes or of their VOPs.
const calls = (v, unit) => amount(v, unit) +
  (unit === "bytes" || amount(v) === "-" ? "" : unit === "vops" ? " VOP" : " calls");
const part = v => v === null || v === undefined ? "-" : Math.round(v * 100) + " %";
const demand = r => r.demand === null ? (r.served === null ? "-" : "more") : rate(r.demand, r.unit);
const ago = s => s < 1 ? "now" : "-" + Math.floor(s / 60) + ":" +
  String(Math.floor(s % 60)).padStart(2, "0");

const columns = [
  {key: "job", head: "job", left: true, text: r => r.job},
  {key: "user", head: "user", left: true, text: r => r.user},
  {key: "class", head: "class", left: true, text: r => r.class || "-"},
  {key: "supply", head: "supply", left: true, text: r => r.supply},
  {key: "demand", head: "demand", text: demand, value: r => r.demand === null ?
    Infinity : r.demand},
  {key: "grant", head: "grant", text: r => rate(r.grant, r.unit)},
  {key: "served", head: "served", text: r => rate(r.served, r.unit)},
  {key: "waiting", head: "waiting", text: r => calls(r.waiting, r.unit)},
  {key: "blocked", head: "time waiting", text: r => part(r.blocked), warns: r => r.blocked > 0.01},
  {key: "limit", head: "limit", text: r => rate(r.limit, r.unit)}];
const id = r => [r.supply, r.class, r.uid, r.job].map(x => x === undefined ? "" : x).join("\n");
const sameRow = (a, b) => a && b && a.supply === b.supply && a.job === b.job && a.uid === b.uid &&
  (a.job !== undefined || a.class === b.class);

function sorted(rows) {
  const c = columns.find(x => x.key === order.by), value = c.value || (r => r[c.key]);
  const compare = (a, b) => typeof a === "string" || typeof b === "string"
    ? String(a).localeCompare(String(b)) : (a === null ? -1 : a) - (b === null ? -1 : b) || 0;
  return rows.slice().sort((a, b) => (order.down ? -1 : 1) * compare(value(a), value(b)) ||
                                     id(a).localeCompare(id(b)));
}

function drawTable(table, rows, used) {
  if (!table.tHead) {
    table.append(make("thead", {}, make("tr", {}, ...used.map(c =>
      make("th", {class: c.left ? "left" : "", "data-key": c.key, scope: "col"},
        make("button", {onclick: () => {
          order = {by: c.key, down: order.by === c.key ? !order.down : !c.left};
          draw();
        }}, c.head))))), make("tbody", {}));
  }
  for (const th of table.tHead.rows[0].cells)
    th.setAttribute("aria-sort", th.dataset.key !== order.by ? "none"
                                 : order.down ? "descending" : "ascending");
  const body = table.tBodies[0], old = new Map([...body.rows].map(tr => [tr.dataset.id, tr]));
  const fresh = rows.map(r => {
    const name = id(r);
    let tr = old.get(name);
    if (!tr) {
      tr = make("tr", {tabindex: "0", "data-id": name,
                       onclick: () => choose(tr.row),
                       onkeydown: e => { if (e.key === "Enter") choose(tr.row); }},
                ...used.map(c => make("td", {class: c.left ? "left" : ""})));
    }
    tr.row = r;
    tr.className = (r.live ? "" : "ended ") + (sameRow(r, chosen) ? "chosen" : "");
    used.forEach((c, i) => {
      const text = c.text(r), cell = tr.cells[i];
      if (cell.textContent !== text) cell.textContent = text;
      if (c.left) cell.title = text;
      if (c.warns) cell.className = c.warns(r) ? "waits" : "";
    });
    return tr;
  });
  if (fresh.length !== body.rows.length || fresh.some((tr, i) => body.rows[i] !== tr))
    body.replaceChildren(...fresh);
}

// A card stays the same element as long as its supply is there: a click must not fall between two.
function makeCard(name) {
  const card = make("button", {class: "card", "data-id": name, onclick: () => choose(card.row)});
  const used = make("rect", {height: "10", class: "used"});
  const granted = make("path", {class: "granted"}), title = make("strong");
  const served = make("div"), soft = make("div", {class: "soft"});
  const why = make("div", {class: "soft"}), trend = make("div", {class: "trend"});
  const past = make("div", {class: "soft past"});
  card.append(title,
    make("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"},
      make("rect", {width: "100", height: "10", class: "rail"}), used, granted),
    served, soft, why, trend, past);
  card.show = s => {
    const wide = v => String(Math.min(100, 100 * (v || 0) / s.capacity));
    card.row = s;
    title.textContent = s.supply;
    used.setAttribute("width", wide(s.served));
    granted.setAttribute("d", "M" + wide(s.grant) + " 0V10");
    served.textContent = "served " + rate(s.served, s.unit) + " of " + rate(s.capacity, s.unit);
    soft.textContent = "granted " + rate(s.grant, s.unit) + ", demand " + demand(s) +
      ", waiting " + calls(s.waiting, s.unit);
    why.textContent = s.why || "";
  };
  card.trend = trend;
  card.past = past;
  return card;
}

function drawSupplies() {
  const place = $("supplies"), old = new Map([...place.children].map(e => [e.dataset.id, e]));
  const cards = now.supplies.filter(s => s.capacity).map(s => {
    const card = old.get(id(s)) || makeCard(id(s));
    card.show(s);
    return card;
  });
  if (!cards.length) place.replaceChildren("no supply has a capacity");
  else if (cards.length !== place.childNodes.length ||
           cards.some((card, i) => place.childNodes[i] !== card)) place.replaceChildren(...cards);
  for (const card of old.values()) if (!cards.includes(card)) hide(card.trend);
}

// The last hour of every supply.
async function refreshTrends() {
  const past = await ask("/dashboard/history.json?interval=10");
  for (const row of past.rows) {
    const card = [...$("supplies").children].find(e => e.dataset.id === id(row));
    if (card && row.served.length) card.past.textContent = showTrend(card.trend, row);
  }
}

function draw() {
  if (!now) return;
  $("title").textContent = "sluice " + now.role + " " + now.name;
  document.title = "sluice " + now.name;
  const hint = now.sees === "classes"
    ? "These are sums. Your jobs are shown to you alone: `sluice report --dashboard` prints an " +
      "address with your key; open that."
    : now.left_out ? now.left_out +
      " streams have no room in the history; they are in sluice top." : "";
  $("hint").textContent = hint;
  $("hint").hidden = !hint;
  $("jobs-section").hidden = now.sees === "classes";
  drawSupplies();
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = now.jobs.filter(r => ($("ended-too").checked || r.live) &&
    (!$("waiting-only").checked || r.blocked > 0.01) &&
    words.every(w => [r.job, r.user, r.class, r.supply].join(" ").toLowerCase().includes(w)));
  $("job-count").textContent = rows.length + " of " + now.jobs.length + " (" + now.sees + ")";
  drawTable($("jobs"), sorted(rows), columns);
  drawTable($("classes"), sorted(now.classes.filter(r => r.live)),
    columns.filter(c => !["job", "user", "limit"].includes(c.key)));
}

function choose(row) {
  chosen = row;
  $("past").hidden = false;
  $("past-title").textContent = row.job ? row.job + " (" + row.user + ") at " + row.supply
                                        : (row.class ? "class " + row.class + " at " : "") +
                                          row.supply;
  $("past-charts").hidden = $("past-ops").hidden = true;
  $("past-none").textContent = "asking …";
  $("past-none").hidden = false;
  draw();
  refreshPast();
  $("past").scrollIntoView({block: "nearest"});
}

function drawOps(rows, span_s) {
  const seen = rows.filter(r => r.done.some(v => v > 0));
  const most = r => r.done.reduce((a, v) => a + (v || 0), 0);
  const units = ["ops", "bytes", "s"];
  seen.sort((a, b) => units.indexOf(a.unit) - units.indexOf(b.unit) || most(b) - most(a));
  $("past-ops").hidden = !seen.length;
  if (seen.length) showHeat($("heat"), seen.slice(0, 36), span_s); else hide($("heat"));
}

function drawPast(rows, span_s) {
  const row = rows[0], is_new = !row || !row.served.length;
  const is_empty = is_new || !(mostOf([{values: row.served}, {values: row.waiting}]) > 0);
  $("past-none").hidden = !is_empty;
  $("past-none").textContent = !is_new ? "no calls in this time"
    : "nothing yet: the first figures come after " + (fine ? 1 : 10) + " s";
  $("past-charts").hidden = is_empty;
  if (is_empty) return;
  const flat = v => row.served.map(() => v);
  const lines = ["served", "grant", "demand"].map(name => ({name, values: row[name]}));
  if (row.limit) lines.push({name: "limit", values: flat(row.limit)});
  if (row.capacity) lines.push({name: "capacity", values: flat(row.capacity)});
  showLines($("rates"), lines, row, span_s,
    (v, name) => v === null && name === "demand" ? "more" : rate(v, row.unit), row.blocked);
  showLines($("waiting"), [{name: "waiting", values: row.waiting}], row, span_s,
    v => calls(v, row.unit), null);
}

async function refreshPast() {
  const of = chosen, finely = fine;
  if (!of) return;
  const q = new URLSearchParams({supply: of.supply, interval: finely ? 1 : 10});
  if (of.job) { q.set("job", of.job); q.set("uid", of.uid); } else if (of.class) q.set("class",
    of.class);
  try {
    const has_ops = of.job && now.role === "node";
    const [past, ops] = await Promise.all([ask("/dashboard/history.json?" + q),
      has_ops ? ask("/dashboard/ops.json?" + q) : {rows: []}]);
    if (!sameRow(of, chosen) || finely !== fine) return;
    const span_s = Math.max(0, ...past.rows.map(r => r.served.length * r.interval_s),
      ...ops.rows.map(r => r.done.length * r.interval_s));
    drawOps(ops.rows, span_s);
    drawPast(past.rows, span_s);
  } catch (e) {}  // the state line tells
}

async function refresh() {
  try {
    now = await ask("/dashboard/now.json");
    heard = Date.now();
    $("state").textContent = "version " + now.version + ", you see " + now.sees;
    $("state").className = "";
    draw();
  } catch (e) {
    $("state").textContent = "no answer for " + Math.round((Date.now() - heard) / 1000) + " s";
    $("state").className = "lost";
  }
}

function setFine(on) {
  fine = on;
  $("past-hour").setAttribute("aria-pressed", String(!on));
  $("past-minutes").setAttribute("aria-pressed", String(on));
  refreshPast();
}
$("past-hour").addEventListener("click", () => setFine(false));
$("past-minutes").addEventListener("click", () => setFine(true));
$("past-close").addEventListener("click", () =>
  { chosen = null; $("past").hidden = true; draw(); });
for (const name of ["filter", "waiting-only", "ended-too"]) $(name).addEventListener("input", draw);

async function forever() {
  for (let turn = 0;; ++turn) {
    if (!document.hidden) {
      await refresh();
      if (turn % 10 === 0) await refreshTrends().catch(() => {});
      if (turn % (fine ? 2 : 5) === 0) await refreshPast();
    }
    await new Promise(done => setTimeout(done, 1000));
  }
}
forever();
)js";

}  // namespace sluice::runtime
