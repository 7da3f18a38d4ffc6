"use strict";
// The playground: choices make a scenario, the scenario runs, and the address says which it is.

const form = document.querySelector("form");
const [text, casesText] = ["toml", "cases"].map((id) => document.getElementById(id));
const [status, mistake, notes, report, results, command] = ["status", "mistake", "notes", "report", "results", "command"].map((id) =>
  document.getElementById(id),
);
const simulator = new Simulator();

// What people buy, as presets of the scenario's format; the room of its FIFO in packets; and how slow a device far away is.
const ACCESS = {
  g: { name: "802.11g", preset: "2012", room: 100, far: "rate_mbps = 6" },
  n: { name: "802.11n", preset: "n-home", room: 256, far: "mcs = 0" },
  ac: { name: "802.11ac", preset: "ac-vendor", room: 1000, far: "mcs = 0" },
  ax: { name: "802.11ax", preset: "ax", room: 1000, far: "mcs = 0" },
};
// The usual room of queues that keep themselves short.
const ROOM = { fq_codel: 10240, cake: 10240, dualpi2: 10000, mac80211: 8192 };
const QUEUES = { fifo: "FIFO", fq_codel: "FQ-CoDel", cake: "CAKE", dualpi2: "DualPI2", mac80211: "Linux's mac80211" };

// Block by block: the name, how many, what each sends, whether the agent may be on it, and other keys.
function blocks(chosen, access) {
  const flow = { up: ["up"], down: ["down"], both: ["up", "down"] };
  const of = (name, count, flows, more = []) => ({ name, count: Number(count), flows, more });
  const all = [
    of("up", chosen.up, flow.up),
    of("down", chosen.down, flow.down),
    of("both", chosen.both, flow.both),
    of("far", chosen.far, flow.up, [access.far]),
    { ...of("stranger", chosen.strangers, flow.up), isStranger: true },
  ];
  return all.filter((block) => block.count > 0);
}

// The scenario and the cases of these choices.
function scenario(chosen) {
  const access = ACCESS[chosen.access];
  const hosts = blocks(chosen, access);
  const counted = hosts.map((block) => `${block.count} ${block.name}`).join(", ");
  const stack = chosen.stack === "2012" ? 'era = "2012"' : chosen.access === "g" ? 'era = "modern"' : `preset = "${access.preset}"`;
  const lines = [
    `name = "${access.name}, ${QUEUES[chosen.queue]}: ${counted}"`,
    `duration_s = ${chosen.seconds}`,
    `warmup_s = ${Math.round(0.4 * chosen.seconds)}                 # left out of the figures' numbers`,
    `seed = ${chosen.seed}`,
    "",
    "[access]",
    `preset = "${access.preset}"`,
    `queue = "${chosen.queue}"`,
    `queue_packets = ${ROOM[chosen.queue] ?? access.room}`,
  ];
  if (Number(chosen.errors)) lines.push(`frame_error_rate = ${Number(chosen.errors) / 100}`);
  lines.push("", "[path]", `rtt_ms = ${chosen.rtt}`, "rate_mbps = 1000");
  if (Number(chosen.loss)) lines.push(`loss = ${Number(chosen.loss) / 100}`);
  for (const block of hosts) {
    lines.push("", "[[hosts]]", `name = "${block.name}"`, `count = ${block.count}`, stack);
    lines.push(`congestion_control = "${chosen.law}"`, ...block.more);
    if (block.isStranger) lines.push('agent = "off"              # it has none in either case');
    for (const direction of block.flows) lines.push("[[hosts.flows]]", `direction = "${direction}"`, "start_s = [0.0, 2.0]");
  }
  return { toml: lines.join("\n") + "\n", cases: cases(chosen, hosts, access) };
}

function cases(chosen, hosts, access) {
  const agents = hosts.flatMap((block, number) => (block.isStranger ? [] : [`hosts.${number}.policy=lasthop`]));
  const prefer = hosts.flatMap((block, number) => (block.isStranger ? [] : [`hosts.${number}.prefer=latency`]));
  const queue = (name) => `access.queue=${name} access.queue_packets=${ROOM[name] ?? access.room}`;
  const second = {
    agent: agents.length && `with the agent: ${agents.join(" ")}`,
    latency: agents.length && `the agent, for latency: ${[...agents, ...prefer].join(" ")}`,
    bbr: "BBR: hosts.*.congestion_control=bbr",
    cubic: "CUBIC: hosts.*.congestion_control=cubic",
  };
  for (const name of ["fifo", "fq_codel", "cake", "dualpi2"]) second[name] = `${QUEUES[name]}: ${queue(name)}`;
  // What is chosen already is no second case.
  second[chosen.law] = second[chosen.queue] = null;
  return second[chosen.second] ? ["as chosen:", second[chosen.second]] : [];
}

const chosen = () => Object.fromEntries(new FormData(form));
const lines = (area) => area.value.split("\n").map((line) => line.trim()).filter(Boolean);
// Whether the texts are something else than what the choices make.
let isEdited = false;
// Whether there is a picture of what runs.
let isShown = false;
// What a choice begins when no other follows it.
let soon;

function tell(state, words) {
  status.textContent = words;
  document.documentElement.dataset.state = state;
}

// As one word for a shell.
const quoted = (words) => `'${words.replaceAll("'", "'\\''")}'`;

function showCommand(cases) {
  const of = cases.map((one) => ` \\\n  --case ${quoted(one)}`).join("");
  const verb = cases.length ? "compare" : "run";
  command.textContent = `lasthop ${verb} scenario.toml${of} --out out`;
}

// The address; a new one is a step that Back undoes.
function remember(toml, cases, isNew) {
  const said = new URLSearchParams(new FormData(form));
  if (isEdited) {
    said.set("scenario", toml);
    cases.forEach((one) => said.append("case", one));
  }
  if (location.hash === `#${said}`) return;
  isNew ? history.pushState(null, "", `#${said}`) : history.replaceState(null, "", `#${said}`);
}

// Says why nothing runs.
function refuse(state, words, why) {
  simulator.stop();
  notes.replaceChildren();
  report.replaceChildren();
  results.replaceChildren();
  mistake.textContent = why;
  mistake.hidden = false;
  tell(state, words);
}

function run(isNew = true) {
  clearTimeout(soon);
  const [toml, cases] = [text.value, lines(casesText)];
  remember(toml, cases, isNew);
  showCommand(cases);
  document.getElementById("own").hidden = !isEdited;
  mistake.hidden = true;
  notes.replaceChildren();
  if (!isEdited && !toml.includes("[[hosts]]")) return refuse("mistake", "There is nothing to run.", "Choose at least one device.");
  tell("running", "Running.");
  isShown = false;
  const begin = performance.now();
  simulator.ask({ toml, cases, run: true }, (answer) => heard(answer, begin, cases));
}

function heard(answer, begin, cases) {
  const label = (number) => (cases.length ? `: ${cases[number].split(":")[0]}` : "");
  switch (answer.event) {
    case "checked": {
      results.replaceChildren();
      const same = !isEdited && !cases.length && form.elements.second.value !== "none";
      const said = same ? ["beside it there would be the same once more: one case alone", ...answer.notes] : answer.notes;
      notes.replaceChildren(...said.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
      break;
    }
    case "going":
      isShown = true;
      show(report, answer.html);
      break;
    case "ended":
      addResult(answer, label(answer.case));
      break;
    case "done":
      show(report, answer.html);
      tell("done", `Done: in ${((performance.now() - begin) / 1000).toFixed(1)} s, on this machine.`);
      break;
    default:
      refuse(
        answer.event,
        answer.event === "broken" ? "lasthop itself has failed here: please report it." : "This scenario cannot be run.",
        answer.text,
      );
  }
}

function addResult(answer, label) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([answer.result], { type: "application/json" }));
  link.download = answer.case ? `result-${answer.case + 1}.json` : "result.json";
  link.textContent = `result.json${label}`;
  results.appendChild(document.createElement("li")).append(link);
}

// From the choices to the texts.
function write() {
  const made = scenario(chosen());
  text.value = made.toml;
  casesText.value = made.cases.join("\n");
  isEdited = false;
}

function showNumbers() {
  for (const output of form.querySelectorAll("output")) {
    output.value = form.elements[output.htmlFor.value].value + (output.dataset.unit ?? "");
  }
}

onWidth(() => ["running", "done", "stopped"].includes(document.documentElement.dataset.state) && run());

function later(what) {
  clearTimeout(soon);
  soon = setTimeout(what, 250);
}

form.addEventListener("input", () => {
  showNumbers();
  later(() => {
    const wrong = [...form.elements].find((field) => !field.checkValidity());
    if (wrong) return refuse("mistake", "There is nothing to run.", `${wrong.name}: ${accepted(wrong)}`);
    write();
    run();
  });
});
form.addEventListener("submit", (event) => event.preventDefault());
for (const area of [text, casesText]) {
  area.addEventListener("input", () => {
    isEdited = true;
    later(run);
  });
}
document.getElementById("stop").addEventListener("click", () => {
  clearTimeout(soon);
  if (document.documentElement.dataset.state !== "running") return;
  simulator.stop();
  if (!isShown) report.replaceChildren();
  tell("stopped", isShown ? "Stopped: the figures show what ran until then." : "Stopped.");
});
document.getElementById("copy").addEventListener("click", async () => {
  const copied = await navigator.clipboard.writeText(command.textContent).then(() => true, () => false);
  const words = copied ? "Copied: save the scenario as scenario.toml beside it." : "The browser lets no page copy: select the command.";
  tell(document.documentElement.dataset.state, words);
});
document.getElementById("roaming").addEventListener("click", () => {
  text.value = document.getElementById("roaming-toml").textContent.trim() + "\n";
  casesText.value = "";
  isEdited = true;
  run();
  report.scrollIntoView();
  report.focus();
});
document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text.value], { type: "application/toml" }));
  link.download = "scenario.toml";
  link.click();
});

// What a choice may be.
function accepted(field) {
  if (field.options) return `accepted: ${[...field.options].map((option) => option.value).join(", ")}`;
  return `accepted: ${field.min} to ${field.max}${field.step ? `, in steps of ${field.step}` : ", a whole number"}`;
}

function open() {
  clearTimeout(soon);
  const said = new URLSearchParams(location.hash.slice(1));
  const wrong = [];
  form.reset();
  for (const field of form.elements) {
    if (!field.name || !said.has(field.name)) continue;
    const value = said.get(field.name);
    field.value = value;
    // A list and a slider take nothing else; a number may be too large.
    const isTaken = field.options ? field.value === value : value !== "" && Number(field.value) === Number(value);
    if (!isTaken || field.selectedIndex === -1 || !field.checkValidity()) wrong.push(`${field.name} = ${value}; ${accepted(field)}`);
  }
  if (wrong.length) {
    form.reset();
    showNumbers();
    write();
    showCommand(lines(casesText));
    document.getElementById("own").hidden = true;
    return refuse("mistake", "There is nothing to run.", `The address has what cannot be chosen: ${wrong.join("; ")}.`);
  }
  showNumbers();
  write();
  if (said.has("scenario")) {
    [text.value, casesText.value, isEdited] = [said.get("scenario"), said.getAll("case").join("\n"), true];
  }
  run(false);
}
window.addEventListener("hashchange", open);
open();
