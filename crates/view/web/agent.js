"use strict";
// An agent, live: each event is a line of its socket (docs/guide/agent-log.md).
const VERSION = 1;
const KEPT_S = 600;
// The connections whose windows are kept, and those in the table: the busiest.
const MOST_KEPT = 50;
const MOST_ROWS = 100;
// Without a tick for so long, lines are parted.
const GAP_S = 3;

const [UP, DOWN, MEAN, ONE, LIMIT, RATE] = ["#2E1F7B", "#3D9989", "#5B6775", "#00507E", "#111828", "#E36400"];
const ticksSeen = [];
let selected = null;

const byId = (id) => document.getElementById(id);
const known = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));
// Nothing is known of connections that are all new.
const sum = (flows, key) => (flows.length && flows.every((flow) => flow[key] === null) ? null : flows.reduce((total, flow) => total + (flow[key] ?? 0), 0));
const ms = (us) => (us === null || us === undefined ? null : us / 1000);
const percent = (ratio) => (ratio === null || ratio === undefined ? "–" : `${ratio < 1 ? "−" : "+"}${Math.abs(100 * (ratio - 1)).toFixed(0)} %`);
const upper = (flow) => flow.bound?.max_segments || null;

function take(now) {
  const flows = new Map(now.flows.slice(0, MOST_KEPT).map((flow) => [flow.cookie, flow]));
  const t = now.t_ns / 1e9;
  const last = ticksSeen.at(-1);
  // A machine that has started anew counts from 0.
  if (last && t < last.t) ticksSeen.length = 0;
  ticksSeen.push({
    t, flows, up: sum(now.flows, "goodput_mbps"), down: sum(now.flows, "received_mbps"),
    excess: ms(now.excess_us), rate: now.common_rate_mbps,
  });
  while (ticksSeen[0].t < t - KEPT_S) ticksSeen.shift();
  if (!flows.has(selected?.cookie)) selected = null;
  const flow = selected ? flows.get(selected.cookie) : now.flows[0];
  tell(now);
  list(now, flow);
  const of = (value) => (tick) => (flow && tick.flows.has(flow.cookie) ? value(tick.flows.get(flow.cookie)) : null);
  const one = flow ? flow.remote : "no connection";
  draw("goodput", "goodput (Mb/s)", [["sent", UP, (tick) => tick.up], ["received", DOWN, (tick) => tick.down]]);
  draw("excess", "RTT above base (ms)", [
    ["mean of busy connections", MEAN, (tick) => tick.excess], [one, ONE, of((flow) => ms(flow.excess_us))],
  ]);
  draw("window", "segments", [
    [`window, ${one}`, ONE, of((flow) => flow.window_segments)], ["upper bound", LIMIT, of(upper)],
  ]);
  draw("rate", "common rate (Mb/s)", [["common rate", RATE, (tick) => tick.rate]]);
  byId("reason").textContent = flow ? `${flow.local} to ${flow.remote}: ${flow.reason}` : "There is no connection.";
}

function tell(now) {
  document.title = `${now.interface}: lasthop agent`;
  byId("title").textContent = `Agent on ${now.interface}`;
  // As Status::place (crates/status/src/status.rs).
  const none = now.group ? `no access point now (its group is still ${now.group})` : "an access point not known yet";
  byId("state").textContent =
    `Mode ${now.mode}, policy ${now.policy}, behind ${now.access_point ?? none}; version ${now.version}.`;
  byId("trouble").textContent = now.loaded ? "" : "The agent cannot use its interface: see its log.";
  const harm = now.harm ? ` Control does not help: ${now.harm}.` : "";
  byId("gain").textContent = now.gain_unknown ? `Gain: ${now.gain_unknown}.${harm}` : harm;
  const tiles = [
    ["peers heard", now.peers], ["hosts sending", now.terminals], ["connections", `${now.connections}, ${now.busy} busy`],
    ["bounded", now.bounded], ["goodput", `${known(sum(now.flows, "goodput_mbps"), 2)} Mb/s`],
    ["received", `${known(sum(now.flows, "received_mbps"), 2)} Mb/s`], ["RTT above base", `${known(ms(now.excess_us), 1)} ms`],
    ["common rate", `${known(now.common_rate_mbps, 2)} Mb/s`],
    ["gain of this host", percent(now.gain_ratio)], ["gain of all hosts", percent(now.group_gain_ratio)],
    ["round trip", `${known(now.round_trip_ms, 0)} ms`], ["round trip while free", `${known(now.free_round_trip_ms, 0)} ms`],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, value]) => {
    const tile = document.createElement("div");
    tile.append(text("dt", name), text("dd", value));
    return tile;
  }));
}

function text(tag, content, kind) {
  const made = document.createElement(tag);
  made.textContent = content;
  if (kind) made.className = kind;
  return made;
}

// A limit in Mb/s; or TCP's own pace, without one.
const pace = ({ bound }) => (bound?.paced && !bound.max_pacing_mbps ? "TCP" : known(bound?.max_pacing_mbps || null, 2));

const COLUMNS = [
  ["remote", (flow) => flow.remote], ["goodput\nMb/s", (flow) => known(flow.goodput_mbps, 2)],
  ["received\nMb/s", (flow) => known(flow.received_mbps, 2)], ["RTT\nms", (flow) => known(ms(flow.rtt_us), 1)],
  ["above\nbase", (flow) => known(ms(flow.excess_us), 1)], ["window\nsegments", (flow) => String(flow.window_segments)],
  ["bound\nsegments", (flow) => known(upper(flow), 0)], ["pace\nMb/s", pace],
  ["reason", (flow) => flow.reason],
];
const kind = (name) => (name === "reason" ? "reason" : name === "remote" ? "" : "number");
document.querySelector(".flows thead tr").replaceChildren(...COLUMNS.map(([name]) => text("th", name, kind(name))));

function list(now, chosen) {
  const rows = now.flows.slice(0, MOST_ROWS).map((flow) => {
    const row = document.createElement("tr");
    row.className = flow.cookie === chosen?.cookie ? "selected" : "";
    row.append(...COLUMNS.map(([name, of]) => text("td", of(flow), kind(name))));
    row.addEventListener("pointerdown", () => (selected = flow));
    return row;
  });
  document.querySelector(".flows tbody").replaceChildren(...rows);
  const more = now.flows.length + now.flows_left_out - rows.length;
  byId("left-out").textContent = `Select one to see its window above.${more > 0 ? ` ${more} more are not shown.` : ""}`;
}

// In the units of the report's figures, which say where they begin and how wide they are: two for each pixel.
const [LEFT, WIDTH] = numbers(document.body.dataset.span);
const BOX = { left: 96, top: 100, width: 1796, height: 300 };
const drawn = {};

function draw(id, name, lines) {
  const before = drawn[id];
  // What is enlarged stands still.
  if (before && !before.isWhole) return;
  const now = ticksSeen.at(-1).t;
  const span = Math.min(Math.max(now - ticksSeen[0].t, 30), KEPT_S);
  const values = lines.flatMap(([, , of]) => ticksSeen.map(of)).filter((value) => value !== null);
  const step = ticks(between(false, 0, Math.max(...values, 0) * 1.05 || 1), 5);
  const x = between(false, -span, 0), y = between(false, 0, step.at(-1) + (step[1] - step[0]));
  const svg = element("svg", { viewBox: `${LEFT} 0 ${WIDTH} 490`, role: "img", "aria-label": name, "font-family": "system-ui, sans-serif" });
  const box = `${BOX.left} ${BOX.top} ${BOX.width} ${BOX.height}`;
  const at = (t, value) => [BOX.left + BOX.width * x.place(t), BOX.top + BOX.height * (1 - y.place(value))];
  const write = (text, x, y, anchor, parent) => {
    element("text", { x, y, dy: "0.5ex", "text-anchor": anchor, "font-size": 23, fill: "#5B6775" }, parent).textContent = text;
  };
  const axes = element("g", { class: "axis", "data-box": box }, svg);
  for (const tick of ticks(y, 5)) {
    const [, height] = at(0, tick);
    element("line", { x1: BOX.left, x2: BOX.left + BOX.width, y1: height, y2: height, stroke: "#E2E6EB", "stroke-width": 2 }, axes);
    write(shown(tick), BOX.left - 16, height, "end", axes);
  }
  for (const tick of ticks(x, 10)) write(shown(tick), at(tick, 0)[0], BOX.top + BOX.height + 28, "middle", axes);
  write(name, 0, BOX.top - 28, "start", svg);
  write("time before now (s)", BOX.left + BOX.width / 2, BOX.top + BOX.height + 66, "middle", svg);
  const said = { "data-x": `linear ${x.from} ${x.to}`, "data-y": `linear ${y.from} ${y.to}`, "data-x-name": "time before now (s)", "data-y-name": name };
  const data = element("g", { class: "data", "data-box": box, ...said }, svg);
  let right = 0;
  for (const [label, colour, of] of lines) {
    const dashes = colour === LIMIT ? { "stroke-dasharray": "10 7" } : {};
    const pen = { fill: "none", stroke: colour, "stroke-width": 3, ...dashes };
    for (const part of parts(of)) {
      const points = part.map(([t, value]) => at(t - now, value).map((unit) => unit.toFixed(1)).join(",")).join(" ");
      element("polyline", { "data-name": label, points, ...pen }, data);
    }
    element("line", { x1: right, x2: right + 44, y1: 20, y2: 20, ...pen }, svg);
    write(label, right + 56, 20, "start", svg);
    right += 56 + label.length * 13 + 40;
  }
  const place = byId(id);
  place.replaceChildren(svg);
  drawn[id] = new Figure(svg);
  if (before?.pointer && place.matches(":hover")) drawn[id].move(before.pointer);
}

// A line, parted where nothing is known.
function parts(of) {
  const found = [[]];
  let last = null;
  for (const tick of ticksSeen) {
    const value = of(tick);
    if (value === null || (last !== null && tick.t - last > GAP_S)) found.push([]);
    if (value !== null) found.at(-1).push([tick.t, value]);
    last = tick.t;
  }
  return found.filter((part) => part.length > 0);
}

const events = new EventSource("events");
events.onmessage = (event) => {
  const now = JSON.parse(event.data);
  if (now.v === VERSION) return take(now);
  byId("trouble").textContent = `The agent speaks version ${now.v} of the format, and this page version ${VERSION}.`;
};
events.addEventListener("gone", (event) => (byId("trouble").textContent = `${event.data} This page goes on when there is one again.`));
events.onerror = () => {
  if (!byId("trouble").textContent) byId("trouble").textContent = "No connection to lasthop view.";
};
