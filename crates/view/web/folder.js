"use strict";
// Loads the page anew when the result in the folder is another one, and shows what is at work there until then.
const banner = document.createElement("p");
banner.id = "banner";
banner.hidden = true;
document.body.prepend(banner);

const live = document.createElement("section");
live.id = "live";

const said = document.currentScript.dataset;

const hint = document.createElement("p");
hint.className = "hint";
hint.textContent = "Point at a line, a bar or a mark for its numbers. Drag across a figure to enlarge a part; double-click for all.";
document.querySelector("h1").after(hint, live);
// Below what is said of the folder.
if (!said.version) document.body.append(live);

const liveFigures = new Map();

// What goes on, anew. A figure of which a part is enlarged, or is being chosen, stands still.
function show(text) {
  const made = document.createElement("template");
  made.innerHTML = text;
  const drawn = new Map();
  for (const place of made.content.querySelectorAll("div[id^=live-]")) {
    const before = liveFigures.get(place.id);
    if (before && !before.isWhole) {
      place.querySelector("svg").replaceWith(before.svg);
      drawn.set(place.id, before);
    }
  }
  live.replaceChildren(made.content);
  if (said.version) live.append(Object.assign(document.createElement("h2"), { textContent: "The result until then" }));
  for (const place of live.querySelectorAll("div[id^=live-]")) {
    if (drawn.has(place.id)) continue;
    const before = liveFigures.get(place.id);
    const figure = new Figure(place.querySelector("svg"));
    drawn.set(place.id, figure);
    if (before?.pointer && place.matches(":hover")) figure.move(before.pointer);
  }
  liveFigures.clear();
  for (const [id, figure] of drawn) liveFigures.set(id, figure);
}

async function look() {
  let wait = 2000;
  try {
    const state = await (await fetch(said.state, { cache: "no-store" })).json();
    if (state.version !== said.version) return location.reload();
    banner.textContent = "lasthop is at work in this folder. Its report will be here when it is complete.";
    banner.hidden = !state.written || !state.version;
    const answer = state.written ? await fetch(said.live, { cache: "no-store" }) : null;
    if (answer?.ok) {
      show(await answer.text());
      wait = 1000;
    } else if (live.firstChild) {
      live.replaceChildren();
      tip.hidden = true;
    }
  } catch {
    banner.textContent = "lasthop view has ended: what is here stays, and is not renewed.";
    banner.hidden = false;
  }
  setTimeout(look, wait);
}
look();
