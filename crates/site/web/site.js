"use strict";
// What all pages have: the simulator in a worker, and its reports as parts of the page. `MODULE` is the module of crates/site, packed with
// gzip, in Base64 (module.js): a page from a folder may not fetch a file.

// Runs in the worker; the page has no other part of it.
function work() {
  let exports;
  const text = new TextDecoder();
  const worker = {
    say: (at, bytes) => postMessage(JSON.parse(text.decode(new Uint8Array(exports.memory.buffer, at, bytes)))),
    now_ms: () => performance.now(),
  };
  onmessage = ({ data: { module, request } }) => {
    if (module) exports = new WebAssembly.Instance(module, { worker }).exports;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    // First: its memory may grow, and then be another buffer.
    const at = exports.room(bytes.length);
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    exports.answer();
  };
}

const WORKER = URL.createObjectURL(new Blob([`(${work})()`], { type: "text/javascript" }));

let compiled;
function compiledModule() {
  const unpacked = async () => {
    const packed = Uint8Array.from(atob(MODULE), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  };
  compiled ??= unpacked();
  return compiled;
}

// Short words for what tables and figures call by its name alone.
const WORDS = [
  [
    /\bstarved\b/i,
    "Starved: of the connections with something to send for 95 % of the time, those with less than a twentieth of their mean.",
  ],
  [/\bJain\b/i, "Jain's index: how equal the shares are; 1 if all are equal, 1/n if one of n connections has all."],
  [/\bvalid\b/i, "Valid: nothing happened that could have falsified the result, such as a failed check."],
  [/\bp95\b/i, "p95: 95 % of the measured round trips are shorter."],
];

// The definitions of those of these words that a table has, below it.
function define(place) {
  for (const wide of place.querySelectorAll(".wide, .tiles")) {
    const heads = [...wide.querySelectorAll("th, dt")].map((head) => head.textContent).join(" ");
    const said = WORDS.filter(([word]) => word.test(heads)).map(([, words]) => words);
    if (said.length) wide.after(Object.assign(document.createElement("p"), { className: "caption", textContent: said.join(" ") }));
  }
}

// One worker, which does one thing at a time.
class Simulator {
  // Does what crates/site/src/request.rs describes, and ends what it was doing. `heard` gets each answer.
  async ask(request, heard) {
    const turn = (this.turn = {});
    const module = await compiledModule();
    if (this.turn !== turn) return;
    if (this.busy) this.end();
    const isNew = !this.worker;
    this.worker ??= new Worker(WORKER);
    this.busy = true;
    this.worker.onmessage = ({ data }) => {
      this.busy = !["mistake", "done", "broken"].includes(data.event) && (request.run || data.event !== "checked");
      // What has failed once is not asked again.
      if (data.event === "broken") this.end();
      heard(data);
    };
    this.worker.onerror = (error) => {
      this.end();
      heard({ event: "broken", text: error.message });
    };
    // Figures are drawn for the width of the page.
    const sized = { width: document.querySelector("main").clientWidth, ...request };
    this.worker.postMessage(isNew ? { module, request: sized } : { request: sized });
  }

  stop() {
    this.turn = {};
    if (this.busy) this.end();
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
    this.busy = false;
  }
}

// Puts HTML of a report into the page. `only`: the names of the figures that are shown, in their order; none: all of it.
function show(place, html, only) {
  const made = document.createElement("template");
  made.innerHTML = html;
  // The list of all figures stays open once it is.
  const opened = place.querySelector("details")?.open;
  if (opened !== undefined) place.dataset.opened = opened;
  const figures = [...made.content.querySelectorAll("figure")];
  const named = (name) => figures.find((figure) => figure.dataset.name === name);
  if (only) place.replaceChildren(...only.map(named).filter(Boolean));
  else {
    // Of cases, what there is to see comes first, then their table; the rest waits to be opened.
    const first = ["before-and-after", "queue"].map(named).filter(Boolean);
    const rest = [...made.content.children].filter((part) => !first.includes(part));
    const seen = named("before-and-after") ? rest.splice(0, 1 + rest.findIndex((part) => part.matches(".wide"))) : rest.splice(0);
    place.replaceChildren(...first, ...seen);
    if (rest.length) {
      const details = place.appendChild(document.createElement("details"));
      details.open = place.dataset.opened === "true";
      details.append(Object.assign(document.createElement("summary"), { textContent: "All figures and tables" }), ...rest);
    }
  }
  place.querySelectorAll("figure svg").forEach((svg) => new Figure(svg));
  define(place);
  reach();
}

// What is wider than its place is scrolled by keys, too.
function reach() {
  for (const wide of document.querySelectorAll(".wide")) {
    const name = wide.closest("figure")?.querySelector("h2, h3")?.textContent ?? "a wide table";
    const said = { tabindex: 0, role: "group", "aria-label": `${name}, to be scrolled` };
    const isWide = wide.scrollWidth > wide.clientWidth;
    for (const [key, value] of Object.entries(said)) isWide ? wide.setAttribute(key, value) : wide.removeAttribute(key);
  }
}
window.addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);

// Calls it when the page has become so much wider or narrower that its figures are to be drawn anew.
function onWidth(call) {
  const room = () => Math.max(Math.min(document.querySelector("main").clientWidth, 960), 400);
  let [drawn, soon] = [room(), 0];
  window.addEventListener("resize", () => {
    clearTimeout(soon);
    soon = setTimeout(() => {
      if (Math.abs(room() / drawn - 1) < 0.1) return;
      drawn = room();
      call();
    }, 250);
  });
}

// The address of the playground with this scenario.
function playground(folder, toml, cases) {
  const said = new URLSearchParams({ scenario: toml });
  cases.forEach((of) => said.append("case", of));
  return `${folder}index.html#${said}`;
}

// A lesson's example: <div class="example" data-figures="NAMES" data-cases="CASE|CASE"><script type="text/plain">TOML</script></div>.
function example(place) {
  const toml = place.querySelector("script").textContent.trim() + "\n";
  const cases = (place.dataset.cases ?? "").split("|").map((one) => one.trim()).filter(Boolean);
  const only = place.dataset.figures.split(" ");
  const [status, figures, links] = ["p", "div", "p"].map((name) => place.appendChild(document.createElement(name)));
  figures.className = "figures";
  status.className = "caption";
  status.role = "status";
  status.textContent = "The simulator begins.";
  const href = playground("../", toml, cases);
  links.append(Object.assign(document.createElement("a"), { href, textContent: "Change it in the playground" }));
  document.querySelectorAll(`a[data-of="${place.id}"]`).forEach((link) => tried(link, toml, cases));
  const heard = (answer) => {
    if (answer.event === "going") show(figures, answer.html, ["rtt"]);
    else if (answer.event === "done") {
      show(figures, answer.html, only);
      status.textContent = "Simulated just now, on this machine. Point at a line for its numbers; drag across a figure to enlarge a part.";
      running.delete(place);
      if (!running.size) document.documentElement.dataset.state = "done";
    } else if (answer.event === "mistake" || answer.event === "broken") {
      status.textContent = answer.text;
      document.documentElement.dataset.state = answer.event;
    }
  };
  const simulator = new Simulator();
  const run = () => {
    running.add(place);
    document.documentElement.dataset.state = "running";
    simulator.ask({ toml, cases, run: true }, heard);
  };
  run();
  onWidth(run);
}

// The examples that are not done.
const running = new Set();

// A link to the playground with an example's scenario in which some lines differ: data-change="OLD>NEW|OLD>NEW" of the scenario, and
// data-cases in place of the example's. OLD that is not there is a mistake of the page.
function tried(link, toml, cases) {
  const changes = (link.dataset.change ?? "").split("|").filter(Boolean);
  const changed = changes.reduce((text, change) => {
    const [from, to] = change.split(">");
    if (!text.includes(from)) throw new Error(`no ${from} in the scenario`);
    return text.replaceAll(from, to.replaceAll("\\n", "\n"));
  }, toml);
  const of = link.dataset.cases === undefined ? cases : link.dataset.cases.split("|").map((one) => one.trim()).filter(Boolean);
  link.href = playground("../", changed, of);
}

document.querySelectorAll(".example").forEach(example);
