"use strict";
// Values on hover, and parts enlarged, for figures whose panels say their axes: g.data has data-box (left, top, width and height
// of the panel), data-x and data-y (scale and both ends). Everything else in a figure says what it is in a <title>.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);

function axis(said) {
  const [kind, from, to] = said.split(" ").map((word, at) => (at ? Number(word) : word));
  return between(kind === "log", from, to);
}

// A place is 0 at the beginning and 1 at the end.
function between(log, from, to) {
  if (log) return { log, from, to, number: (place) => from * (to / from) ** place, place: (n) => Math.log(n / from) / Math.log(to / from) };
  return { log, from, to, number: (place) => from + (to - from) * place, place: (n) => (n - from) / (to - from) };
}

function ticks(axis, most) {
  const range = axis.to - axis.from;
  if (axis.log && axis.to / axis.from > 5) {
    const all = [];
    for (let decade = Math.floor(Math.log10(axis.from)); decade <= Math.log10(axis.to); decade++)
      for (const factor of [1, 2, 5]) all.push(factor * 10 ** decade);
    const inside = all.filter((tick) => tick >= axis.from && tick <= axis.to);
    return inside.length <= most + 2 ? inside : inside.filter((tick) => Number.isInteger(Math.round(1e6 * Math.log10(tick)) / 1e6));
  }
  const decade = 10 ** Math.floor(Math.log10(range / most));
  const step = [1, 2, 5, 10].map((factor) => factor * decade).find((step) => step >= (range / most) * 0.999);
  const found = [];
  for (let count = Math.ceil(axis.from / step - 1e-9); count * step <= axis.to + 1e-9 * range; count++) found.push(count * step);
  return found;
}

// Four digits: as many as a figure has.
const shown = (number) => String(Number(number.toPrecision(4)));

const numbers = (text) => text.trim().split(/[ ,]+/).map(Number);

// One rectangle with axes. `view` is the part of it that is shown, in places of the whole.
class Panel {
  constructor(svg, group) {
    [this.left, this.top, this.width, this.height] = numbers(group.dataset.box);
    Object.assign(this, { svg, x: axis(group.dataset.x), y: axis(group.dataset.y), groups: [], view: [0, 1, 0, 1] });
    this.names = [group.dataset.xName, group.dataset.yName];
    this.axes = [...svg.querySelectorAll("g.axis")].filter((axis) => axis.dataset.box === group.dataset.box);
  }

  has([x, y]) {
    return x >= this.left && x <= this.left + this.width && y >= this.top && y <= this.top + this.height;
  }

  // Between places of the whole and the figure's units.
  at(x, y) {
    const [x0, x1, y0, y1] = this.view;
    return [this.left + (this.width * (x - x0)) / (x1 - x0), this.top + this.height * (1 - (y - y0) / (y1 - y0))];
  }

  place([x, y]) {
    const [x0, x1, y0, y1] = this.view;
    const right = x0 + ((x - this.left) / this.width) * (x1 - x0);
    return [right, y0 + (1 - (y - this.top) / this.height) * (y1 - y0)];
  }

  // What it was drawn with, in places, read once.
  get shapes() {
    if (this.read) return this.read;
    const whole = (x, y) => [(x - this.left) / this.width, 1 - (y - this.top) / this.height];
    const of = (shape, key) => Number(shape.getAttribute(key));
    this.read = this.groups.flatMap((group) => [...group.querySelectorAll("polyline, polygon, circle, rect, line")]).map((shape) => {
      const kind = shape.tagName;
      if (kind === "polyline" || kind === "polygon") {
        const flat = numbers(shape.getAttribute("points"));
        const points = [];
        for (let at = 0; at + 1 < flat.length; at += 2) points.push(whole(flat[at], flat[at + 1]));
        return { kind, shape, points };
      }
      if (kind === "circle") return { kind, shape, points: [whole(of(shape, "cx"), of(shape, "cy"))] };
      if (kind === "line") return { kind, shape, points: [whole(of(shape, "x1"), of(shape, "y1")), whole(of(shape, "x2"), of(shape, "y2"))] };
      const [x, y, width, height] = ["x", "y", "width", "height"].map((key) => of(shape, key));
      return { kind, shape, points: [whole(x, y), whole(x + width, y + height)], mark: width <= 20 && height <= 20 };
    });
    return this.read;
  }

  show(view) {
    // Read while the whole is shown.
    const shapes = this.shapes;
    this.view = view;
    for (const { kind, shape, points, mark } of shapes) {
      const places = points.map(([x, y]) => this.at(x, y));
      const set = (values) => Object.entries(values).forEach(([key, value]) => shape.setAttribute(key, value.toFixed(1)));
      if (kind === "polyline") shape.setAttribute("points", places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
      else if (kind === "circle") set({ cx: places[0][0], cy: places[0][1] });
      else if (kind === "line") set({ x1: places[0][0], y1: places[0][1], x2: places[1][0], y2: places[1][1] });
      else if (kind === "polygon" || mark) {
        // A marker moves and keeps its size.
        const middle = (list) => [0, 1].map((axis) => list.reduce((sum, point) => sum + point[axis], 0) / list.length);
        const [x, y] = middle(points);
        const [from, to] = [[this.left + x * this.width, this.top + (1 - y) * this.height], this.at(x, y)];
        shape.setAttribute("transform", `translate(${to[0] - from[0]} ${to[1] - from[1]})`);
      } else {
        const [[x, y], [right, bottom]] = places;
        set({ x, y, width: Math.max(right - x, 1), height: Math.max(bottom - y, 1) });
      }
    }
    this.drawAxes();
  }

  get isWhole() {
    return this.view.join() === "0,1,0,1";
  }

  drawAxes() {
    this.own?.remove();
    this.axes.forEach((axis) => (axis.style.display = this.isWhole ? "" : "none"));
    if (!this.clip) {
      this.clip = `clip-${++Panel.count}`;
      const clip = element("clipPath", { id: this.clip }, this.svg);
      element("rect", { x: this.left, y: this.top, width: this.width, height: this.height }, clip);
    }
    this.groups.forEach((group) => (this.isWhole ? group.removeAttribute("clip-path") : group.setAttribute("clip-path", `url(#${this.clip})`)));
    if (this.isWhole) return;
    const [x0, x1, y0, y1] = this.view;
    this.own = element("g", { class: "enlarged" });
    this.groups[0].before(this.own);
    const label = (text, x, y, anchor) => {
      const said = { x, y, dy: "0.5ex", "text-anchor": anchor, "font-size": 23, fill: "#5B6775" };
      element("text", said, this.own).textContent = text;
    };
    const right = this.left + this.width, bottom = this.top + this.height;
    const x = between(this.x.log, this.x.number(x0), this.x.number(x1)), y = between(this.y.log, this.y.number(y0), this.y.number(y1));
    for (const tick of ticks(x, this.width / 160)) {
      const at = this.left + this.width * x.place(tick);
      element("line", { x1: at, y1: bottom, x2: at, y2: bottom + 8, stroke: "#5B6775", "stroke-width": 2 }, this.own);
      label(shown(tick), at, bottom + 28, "middle");
    }
    if (!this.names[1]) return;
    for (const tick of ticks(y, this.height / 68)) {
      const at = this.top + this.height * (1 - y.place(tick));
      element("line", { x1: this.left, y1: at, x2: right, y2: at, stroke: "#E2E6EB", "stroke-width": 2 }, this.own);
      label(shown(tick), this.left - 16, at, "end");
    }
  }

  // The point of a line that is nearest, within what is shown.
  nearest([x, y]) {
    const [place] = this.place([x, y]);
    let best = null;
    for (const { kind, shape, points } of this.shapes) {
      if (kind !== "polyline" || !points.length) continue;
      let [low, high] = [0, points.length - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (points[middle][0] < place) low = middle + 1;
        else high = middle;
      }
      for (let at = Math.max(low - 3, 0); at < Math.min(low + 4, points.length); at++) {
        const [px, py] = this.at(...points[at]);
        const far = Math.hypot(px - x, py - y);
        if (this.has([px, py]) && (!best || far < best.far)) best = { far, px, py, point: points[at], shape };
      }
    }
    return best;
  }
}
Panel.count = 0;

class Figure {
  constructor(svg) {
    Object.assign(this, { svg, panels: [] });
    // The script tells what a thing is, at once; the browser's own label would come later and above it.
    for (const title of [...svg.querySelectorAll("title")]) {
      if (title.parentNode === svg) svg.setAttribute("aria-label", title.textContent);
      else title.parentNode.dataset.title = title.textContent;
      title.remove();
    }
    for (const group of svg.querySelectorAll("g.data")) {
      let panel = this.panels.find((panel) => panel.box === group.dataset.box);
      if (!panel) {
        panel = Object.assign(new Panel(svg, group), { box: group.dataset.box });
        this.panels.push(panel);
      }
      panel.groups.push(group);
    }
    svg.addEventListener("pointermove", (event) => this.move(event));
    svg.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.leave();
    });
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("pointerup", (event) => this.release(event));
    svg.addEventListener("dblclick", () => this.panels.forEach((panel) => panel.show([0, 1, 0, 1])));
  }

  // In the figure's units.
  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  leave() {
    tip.hidden = true;
    this.dot?.remove();
  }

  move(event) {
    const at = this.at(event);
    this.pointer = event;
    if (this.from) return this.drag(at);
    this.leave();
    const panel = this.panels.find((panel) => panel.has(at));
    const titled = event.target.closest("[data-title]");
    const lines = titled ? titled.dataset.title.split("\n") : [];
    const near = panel && !titled ? panel.nearest(at) : null;
    if (near) {
      lines.push(near.shape.dataset.name, `${panel.names[0]}: ${shown(panel.x.number(near.point[0]))}`);
      lines.push(`${panel.names[1]}: ${shown(panel.y.number(near.point[1]))}`);
      const ring = { cx: near.px, cy: near.py, r: 8, fill: "none", stroke: near.shape.getAttribute("stroke"), "stroke-width": 4, "stroke-dasharray": "none" };
      this.dot = element("circle", { ...ring, "pointer-events": "none" }, this.svg);
    } else if (titled && panel) {
      lines.push(`${panel.names[0]}: ${shown(panel.x.number(panel.place(at)[0]))}`);
    }
    if (!lines.length) return;
    tip.replaceChildren(...lines.filter(Boolean).map((line) => Object.assign(document.createElement("div"), { textContent: line })));
    tip.hidden = false;
    const { clientWidth, clientHeight } = document.documentElement;
    tip.style.left = `${Math.max(Math.min(event.clientX + 14, clientWidth - tip.offsetWidth - 4), 4)}px`;
    tip.style.top = `${event.clientY + 18 + tip.offsetHeight > clientHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
  }

  press(event) {
    const at = this.at(event);
    const panel = this.panels.find((panel) => panel.has(at));
    if (!panel || event.button !== 0) return;
    event.preventDefault();
    this.svg.setPointerCapture(event.pointerId);
    this.leave();
    this.from = { at, panel, mark: element("rect", { class: "chosen", "pointer-events": "none" }, this.svg) };
  }

  // The part between two points: across the whole height, unless the pointer also went up or down.
  chosen(at) {
    const { at: from, panel } = this.from;
    const inside = ([x, y]) => [
      Math.min(Math.max(x, panel.left), panel.left + panel.width),
      Math.min(Math.max(y, panel.top), panel.top + panel.height),
    ];
    const [a, b] = [inside(from), inside(at)];
    if (Math.abs(a[1] - b[1]) < 40 || !panel.names[1]) [a[1], b[1]] = [panel.top, panel.top + panel.height];
    return [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
  }

  drag(at) {
    const [left, right, top, bottom] = this.chosen(at);
    const place = { x: left, y: top, width: right - left, height: bottom - top };
    for (const [key, value] of Object.entries(place)) this.from.mark.setAttribute(key, value);
  }

  release(event) {
    if (!this.from) return;
    const { panel, mark } = this.from;
    const [left, right, top, bottom] = this.chosen(this.at(event));
    mark.remove();
    this.from = null;
    if (right - left < 16) return;
    const [x0, y0] = panel.place([left, bottom]);
    const [x1, y1] = panel.place([right, top]);
    panel.show([x0, x1, y0, y1]);
  }

  get isWhole() {
    return !this.from && this.panels.every((panel) => panel.isWhole);
  }
}

const figures = [...document.querySelectorAll("figure svg")].map((svg) => new Figure(svg));
document.documentElement.dataset.figures = figures.length;
