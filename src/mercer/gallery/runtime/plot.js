// Plots as SVG: axes, marks, heat maps, contours, handles that pointer and keyboard move, and a turning 3-D view.
"use strict";
const SVG = "http://www.w3.org/2000/svg";
function element(name, attributes = {}, parent = null) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (parent) parent.append(e);
  return e;
}
const raised = n => String(n).replace(/./g, c => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
const short = v => {
  if (v === 0 || (Math.abs(v) < 1e5 && Math.abs(v) >= 1e-3)) return String(+v.toPrecision(4));
  const [digits, power] = v.toExponential(1).split("e");
  return `${digits === "1.0" ? "" : `${+digits}·`}10${raised(+power)}`;
};
const fixed = (v, digits = 3) => Number.isFinite(v) ? (Math.abs(v) >= 1e6 || (v !== 0 && Math.abs(v) < 10 ** -digits / 2) ? v.toExponential(2) : v.toFixed(digits)) : String(v);

function ticks(low, high, n = 5) {
  const raw = (high - low) / n, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(m => m * power >= raw * 0.999) * power, found = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) found.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return found;
}
function decades(low, high) {
  const a = Math.ceil(Math.log10(low) - 1e-9), b = Math.floor(Math.log10(high) + 1e-9), by = Math.max(1, Math.ceil((b - a) / 6)), found = [];
  for (let p = a; p <= b; p += by) found.push(10 ** p);
  if (found.length > 2) return found;
  const fine = [];
  for (let p = a - 1; p <= b + 1; p++) for (const m of [1, 2, 5]) { const v = +`${m}e${p}`; if (v >= low * 0.999 && v <= high * 1.001) fine.push(v); }
  return fine;
}

// colours as the page has them now, light or dark
function colour(name) {
  const probe = colour.probe ??= document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
}
const blend = (a, b, t) => a.map((v, i) => v + (b[i] - v) * t);
// t in [-1, 1] from minus over the sheet to plus; t in [0, 1] from the sheet to the accent
function diverging() { const a = colour("minus"), s = colour("sheet"), b = colour("plus"); return t => blend(s, t < 0 ? a : b, 0.62 * Math.min(1, Math.abs(t))); }
function sequential() { const s = colour("sheet"), b = colour("accent"); return t => blend(s, b, Math.max(0, Math.min(1, t))); }

class Plot {
  constructor(host, spec, redraw) {
    Object.assign(this, { spec, redraw, xr: spec.x ?? [0, 1], yr: spec.y ?? [0, 1], yaw: spec.yaw ?? 0.6, pitch: spec.pitch ?? 0.45, handles: new Map() });
    this.host = document.createElement("div");
    this.host.className = `plot${spec.big ? " big" : ""}${spec.small ? " small" : ""}`;
    if (spec.title) this.host.append(Object.assign(document.createElement("h3"), { textContent: spec.title }));
    this.svg = element("svg", { role: "group", "aria-label": spec.alt ?? spec.title ?? "" });
    this.svg.dataset.plot = spec.id;
    this.host.append(this.svg);
    host.append(this.host);
    this.ground = element("g", {}, this.svg);
    this.marks = element("g", {}, this.svg);
    this.grips = element("g", {}, this.svg);
    if (spec.space) this.#turns();
    if (spec.onclick) this.#adds(spec.onclick);
  }

  // begin a drawing: size, axes
  begin(ranges = {}) {
    if (ranges.x) this.xr = ranges.x;
    if (ranges.y) this.yr = ranges.y;
    const { spec } = this, bare = spec.space || spec.bare;
    const W = Math.round(Math.max(240, this.host.clientWidth || 420)), pad = bare ? { l: 4, r: 4, t: 4, b: 4 } : { l: spec.ylabel ? 54 : 40, r: 16, t: 10, b: spec.xlabel ? 42 : 26 };
    const inner = W - pad.l - pad.r, H = spec.square ? inner + pad.t + pad.b : Math.round(Math.min(spec.most ?? 420, W * (spec.ratio ?? 0.7)));
    Object.assign(this, { W, H, pad });
    this.svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    this.ground.replaceChildren();
    this.marks.replaceChildren();
    this.used = new Set();
    if (!bare) this.#axes();
    return this;
  }
  end() {
    for (const [id, h] of this.handles) if (!this.used.has(id)) { h.node.remove(); this.handles.delete(id); }
  }
  #axes() {
    const { W, H, pad, spec } = this, g = this.ground;
    element("rect", { x: pad.l, y: pad.t, width: W - pad.l - pad.r, height: H - pad.t - pad.b, class: "frame" }, g);
    for (const v of spec.logx ? decades(...this.xr) : spec.xticks ?? ticks(...this.xr, W < 330 ? 4 : 6)) {
      element("line", { x1: this.X(v), x2: this.X(v), y1: pad.t, y2: H - pad.b, class: "gridline" }, g);
      element("text", { x: this.X(v), y: H - pad.b + 15, "text-anchor": "middle" }, g).textContent = short(v);
    }
    for (const v of spec.logy ? decades(...this.yr) : spec.yticks ?? ticks(...this.yr, 5)) {
      element("line", { x1: pad.l, x2: W - pad.r, y1: this.Y(v), y2: this.Y(v), class: "gridline" }, g);
      element("text", { x: pad.l - 6, y: this.Y(v) + 4, "text-anchor": "end" }, g).textContent = short(v);
    }
    if (spec.xlabel) element("text", { x: (pad.l + W - pad.r) / 2, y: H - 6, "text-anchor": "middle", class: "name" }, g).textContent = spec.xlabel;
    if (spec.ylabel) element("text", { transform: `translate(12 ${(pad.t + H - pad.b) / 2}) rotate(-90)`, "text-anchor": "middle", class: "name" }, g).textContent = spec.ylabel;
  }
  #unit(v, [a, b], log) { return log ? Math.log(Math.max(v, a * 1e-3) / a) / Math.log(b / a) : (v - a) / (b - a); }
  X(v) { return +(this.pad.l + this.#unit(v, this.xr, this.spec.logx) * (this.W - this.pad.l - this.pad.r)).toFixed(2); }
  Y(v) { return +(this.H - this.pad.b - this.#unit(v, this.yr, this.spec.logy) * (this.H - this.pad.t - this.pad.b)).toFixed(2); }
  at(event) {
    const box = this.svg.getBoundingClientRect(), s = this.W / box.width;
    return this.back((event.clientX - box.left) * s, (event.clientY - box.top) * s);
  }
  back(px, py) {
    const u = (px - this.pad.l) / (this.W - this.pad.l - this.pad.r), v = (this.H - this.pad.b - py) / (this.H - this.pad.t - this.pad.b);
    const of = ([a, b], t, log) => log ? a * (b / a) ** t : a + (b - a) * t;
    return [of(this.xr, u, this.spec.logx), of(this.yr, v, this.spec.logy)];
  }

  line(xs, ys, look = "c-accent") { return this.path(xs.map((x, i) => [x, ys[i]]), look); }
  path(points, look = "c-accent", closed = false) {
    let d = "", pen = "M";
    for (const [x, y] of points) {
      if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = "M"; continue; }
      const py = Math.max(-2000, Math.min(4000, this.Y(y)));
      d += `${pen}${this.X(x)} ${py}`;
      pen = "L";
    }
    return element("path", { d: d + (closed ? "Z" : ""), class: `curve ${look}`, "clip-path": this.#clip() }, this.marks);
  }
  #clip() {
    const id = `clip-${this.spec.id}`;
    let c = this.svg.querySelector(`#${id}`);
    if (!c) { c = element("clipPath", { id }, element("defs", {}, this.svg)); element("rect", {}, c); }
    const { pad, W, H } = this;
    for (const [k, v] of Object.entries({ x: pad.l, y: pad.t, width: W - pad.l - pad.r, height: H - pad.t - pad.b })) c.firstChild.setAttribute(k, v);
    return `url(#${id})`;
  }
  band(xs, low, high, look = "f-accent") {
    const there = xs.map((x, i) => [this.X(x), this.Y(high[i])]), and = xs.map((x, i) => [this.X(x), this.Y(low[i])]).reverse();
    element("path", { d: `M${[...there, ...and].map(p => p.join(" ")).join("L")}Z`, class: `band ${look}`, "clip-path": this.#clip() }, this.marks);
  }
  segment(x1, y1, x2, y2, look = "c-quiet") { return element("line", { x1: this.X(x1), y1: this.Y(y1), x2: this.X(x2), y2: this.Y(y2), class: `curve ${look}`, "clip-path": this.#clip() }, this.marks); }
  // circles of one class, squares of the other: told apart without colour
  dot(x, y, look = "f-accent", r = 4.5, square = false) { return this.#shape(this.marks, this.X(x), this.Y(y), look, r, square); }
  #shape(parent, x, y, look, r, square) {
    return square ? element("rect", { x: x - r * 0.88, y: y - r * 0.88, width: r * 1.76, height: r * 1.76, class: `dot grip ${look}` }, parent)
      : element("circle", { cx: x, cy: y, r, class: `dot grip ${look}` }, parent);
  }
  ring(x, y, r = 8, look = "") { return element("circle", { cx: this.X(x), cy: this.Y(y), r, class: `ring ${look}` }, this.marks); }
  text(x, y, words, look = "", anchor = "middle", dy = 0) {
    const t = element("text", { x: this.X(x), y: this.Y(y) + dy, class: look, "text-anchor": anchor }, this.marks);
    t.textContent = words;
    return t;
  }
  // names of the curves, in a corner
  legend(entries, corner = "left", low = false) {
    entries.forEach(([words, look], i) => {
      const y = low ? this.H - this.pad.b - 8 - 16 * (entries.length - 1 - i) : this.pad.t + 14 + 16 * i, x = corner === "left" ? this.pad.l + 10 : this.W - this.pad.r - 10, way = corner === "left" ? 1 : -1;
      element("line", { x1: x, x2: x + way * 18, y1: y - 4, y2: y - 4, class: `curve ${look}` }, this.marks);
      element("text", { x: x + way * 24, y, "text-anchor": corner === "left" ? "start" : "end", class: "name" }, this.marks).textContent = words;
    });
  }
  bar(x1, x2, y, look = "f-accent", from = 0) {
    const a = this.X(x1), b = this.X(x2), p = this.Y(y), q = this.Y(from);
    return element("rect", { x: Math.min(a, b), y: Math.min(p, q), width: Math.abs(b - a), height: Math.max(0.5, Math.abs(q - p)), class: look }, this.marks);
  }
  area(x1, y1, x2, y2, look) {
    const a = this.X(x1), b = this.X(x2), p = this.Y(y1), q = this.Y(y2);
    return element("rect", { x: Math.min(a, b), y: Math.min(p, q), width: Math.abs(b - a), height: Math.abs(q - p), class: look }, this.marks);
  }
  // values row by row, the lowest y first, in [-1, 1] or [0, 1] of the palette
  heat(rows, palette, sharp = false, box = [...this.xr, ...this.yr]) {
    const canvas = document.createElement("canvas"), n = rows.length, m = rows[0].length, context = canvas.getContext("2d");
    canvas.width = m;
    canvas.height = n;
    const image = context.createImageData(m, n);
    rows.forEach((row, i) => row.forEach((v, j) => {
      const rgb = palette(v), at = 4 * ((n - 1 - i) * m + j);
      for (let c = 0; c < 3; c++) image.data[at + c] = rgb[c];
      image.data[at + 3] = 255;
    }));
    context.putImageData(image, 0, 0);
    const look = sharp ? "image-rendering: pixelated" : "";
    element("image", { href: canvas.toDataURL(), x: this.X(box[0]), y: this.Y(box[3]), width: this.X(box[1]) - this.X(box[0]), height: this.Y(box[2]) - this.Y(box[3]), preserveAspectRatio: "none", style: look }, this.marks);
  }
  // where values on a grid over the plot (row by row, lowest y first) cross a level: marching squares
  contour(rows, level, look = "c-ink", box = [...this.xr, ...this.yr]) {
    const n = rows.length, m = rows[0].length, x = j => box[0] + (box[1] - box[0]) * (j + 0.5) / m, y = i => box[2] + (box[3] - box[2]) * (i + 0.5) / n;
    let d = "";
    for (let i = 0; i + 1 < n; i++) for (let j = 0; j + 1 < m; j++) {
      const corner = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]], v = corner.map(([a, b]) => rows[a][b] - level), cuts = [];
      for (let s = 0; s < 4; s++) {
        const e = (s + 1) % 4;
        if ((v[s] > 0) === (v[e] > 0)) continue;
        const t = v[s] / (v[s] - v[e]), [a, b] = corner[s], [p, q] = corner[e];
        cuts.push([this.X(x(b + (q - b) * t)), this.Y(y(a + (p - a) * t))]);
      }
      for (let c = 0; c + 1 < cuts.length; c += 2) d += `M${cuts[c].join(" ")}L${cuts[c + 1].join(" ")}`;
    }
    return element("path", { d, class: `curve ${look}` }, this.marks);
  }
  // the middles of the cells of such a grid
  grid(n, m = n) {
    const mid = ([a, b], k) => Array.from({ length: k }, (_, i) => a + (b - a) * (i + 0.5) / k), xs = mid(this.xr, m);
    return mid(this.yr, n).map(y => xs.map(x => [x, y]));
  }

  // a mark that pointer and arrow keys move; it stays the same node, so that focus stays
  handle(id, x, y, { label, move, look = "f-accent", r = 6, square = false, remove = null }) {
    this.used.add(id);
    let h = this.handles.get(id);
    if (!h) {
      const node = element("g", { class: "pick", tabindex: 0, role: "slider", "aria-valuenow": 0 }, this.grips);
      node.dataset.handle = id;
      h = { node };
      this.handles.set(id, h);
      node.addEventListener("pointerdown", e => { node.setPointerCapture(e.pointerId); h.held = true; e.stopPropagation(); });
      node.addEventListener("pointermove", e => { if (h.held) h.move(...this.at(e)); });
      for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => { h.held = false; });
      node.addEventListener("click", e => e.stopPropagation());
      node.addEventListener("dblclick", e => { if (h.remove) { e.stopPropagation(); h.remove(); } });
      node.addEventListener("keydown", e => this.#key(e, h));
    }
    Object.assign(h, { x, y, move: (a, b) => { move(...this.#within(a, b)); this.redraw(); }, remove: remove && (() => { remove(); this.redraw(); }) });
    h.node.replaceChildren();
    h.node.setAttribute("aria-label", label);
    h.node.setAttribute("aria-valuetext", `${fixed(x, 2)}, ${fixed(y, 2)}`);
    element("circle", { cx: this.X(x), cy: this.Y(y), r: Math.max(13, r), class: "reach" }, h.node);
    this.#shape(h.node, this.X(x), this.Y(y), look, r, square);
  }
  #within(x, y) { const [a, b] = this.xr, [c, d] = this.yr; return [Math.min(b, Math.max(a, x)), Math.min(d, Math.max(c, y))]; }
  #key(e, h) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if ((e.key === "Delete" || e.key === "Backspace") && h.remove) { e.preventDefault(); h.remove(); }
    if (!step) return;
    e.preventDefault();
    const by = (this.W - this.pad.l - this.pad.r) / (e.shiftKey ? 15 : 60);
    h.move(...this.back(this.X(h.x) + step[0] * by, this.Y(h.y) + step[1] * by));
  }
  // a click, or Enter where the arrow keys have put the cross
  #adds(onclick) {
    const { svg } = this, place = [0.5, 0.5];
    svg.classList.add("adds");
    svg.setAttribute("tabindex", 0);
    const cross = element("path", { class: "cross" }, svg);
    const put = () => {
      const x = this.pad.l + place[0] * (this.W - this.pad.l - this.pad.r), y = this.pad.t + place[1] * (this.H - this.pad.t - this.pad.b);
      cross.setAttribute("d", `M${x - 9} ${y}h18M${x} ${y - 9}v18`);
      return this.back(x, y);
    };
    svg.addEventListener("focus", put);
    svg.addEventListener("click", e => { const [x, y] = this.at(e), [a, b] = this.#within(x, y); if (a === x && b === y) { onclick(x, y, e.shiftKey); this.redraw(); } });
    svg.addEventListener("keydown", e => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (e.target !== svg || !(step || e.key === "Enter")) return;
      e.preventDefault();
      if (step) step.forEach((s, i) => { place[i] = Math.min(1, Math.max(0, place[i] + s / 30)); });
      const [x, y] = put();
      if (!step) { onclick(x, y, e.shiftKey); this.redraw(); }
    });
  }

  // 3-D: the unit box [-1, 1]^3 seen from yaw and pitch, turned by dragging or arrow keys
  #turns() {
    const { svg } = this;
    svg.classList.add("spin");
    svg.setAttribute("tabindex", 0);
    let from = null;
    const turn = (x, y) => { this.yaw += x; this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + y)); this.redraw(); };
    svg.addEventListener("pointerdown", e => { from = [e.clientX, e.clientY]; svg.setPointerCapture(e.pointerId); });
    svg.addEventListener("pointermove", e => { if (from) { turn((e.clientX - from[0]) / 120, (e.clientY - from[1]) / 120); from = [e.clientX, e.clientY]; } });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { from = null; });
    svg.addEventListener("keydown", e => {
      const step = { ArrowLeft: [-0.12, 0], ArrowRight: [0.12, 0], ArrowUp: [0, -0.12], ArrowDown: [0, 0.12] }[e.key];
      if (step) { e.preventDefault(); turn(...step); }
    });
  }
  see([x, y, z]) {
    const a = Math.cos(this.yaw), b = Math.sin(this.yaw), c = Math.cos(this.pitch), s = Math.sin(this.pitch);
    const u = a * x - b * y, depth = b * x + a * y, size = Math.min(this.W, this.H) * 0.3;
    return { x: this.W / 2 + size * u, y: this.H / 2 - size * (c * z + s * depth), depth: c * depth - s * z };
  }
  path3(points, look = "c-quiet", closed = false) {
    const d = points.map((p, i) => { const q = this.see(p); return `${i ? "L" : "M"}${q.x.toFixed(1)} ${q.y.toFixed(1)}`; }).join("");
    return element("path", { d: d + (closed ? "Z" : ""), class: `curve ${look}` }, this.marks);
  }
  sheet3(points, look = "f-accent band") {
    const d = points.map((p, i) => { const q = this.see(p); return `${i ? "L" : "M"}${q.x.toFixed(1)} ${q.y.toFixed(1)}`; }).join("");
    element("path", { d: `${d}Z`, class: look }, this.marks);
  }
  dots3(points) { // [{p, look, r, square, ring}] drawn from far to near
    points.map(o => ({ ...o, q: this.see(o.p) })).sort((a, b) => b.q.depth - a.q.depth).forEach(o => {
      this.#shape(this.marks, o.q.x, o.q.y, o.look, o.r ?? 4, o.square);
      if (o.ring) element("circle", { cx: o.q.x, cy: o.q.y, r: 7, class: "ring" }, this.marks);
    });
  }
  text3(p, words, look = "") { const q = this.see(p); element("text", { x: q.x, y: q.y, class: look, "text-anchor": "middle" }, this.marks).textContent = words; }
  box3(names) {
    const o = [-1, -1, -1];
    names.forEach((name, i) => {
      const end = o.slice(), word = o.slice();
      end[i] = 1;
      word[i] = 1.14;
      this.path3([o, end], "c-quiet thin");
      this.text3(word, name, "name");
    });
  }
}
