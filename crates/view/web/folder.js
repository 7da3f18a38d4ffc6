"use strict";
// Loads the page anew when the result in the folder is another one.
const banner = document.createElement("p");
banner.id = "banner";
banner.hidden = true;
document.body.prepend(banner);

const said = document.currentScript.dataset;

if (said.version) {
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = "Point at a line, a bar or a mark for its numbers. Drag across a figure to enlarge a part; double-click for all.";
  document.querySelector("h1").after(hint);
}

async function look() {
  try {
    const state = await (await fetch(said.state, { cache: "no-store" })).json();
    if (state.version !== said.version) return location.reload();
    banner.textContent = "lasthop is at work in this folder. Its result will be here when it is complete.";
    banner.hidden = !state.written || !state.version;
  } catch {
    banner.textContent = "lasthop view has ended: what is here stays, and is not renewed.";
    banner.hidden = false;
  }
  setTimeout(look, 2000);
}
look();
