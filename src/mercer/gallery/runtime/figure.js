// A figure: controls, plots, compute (pure, what the tests compare with Mercer) and draw (all else).
// figure({state, controls, plots, compute(state, data), draw(view, result, state, data)})
"use strict";
const slider = (key, label, low, high, step, options = {}) => ({ kind: "slider", key, label, low, high, step, ...options });
const logarithmic = (key, label, low, high, options = {}) => ({ kind: "slider", key, label, low, high, log: true, ...options });
const choice = (key, label, options, more = {}) => ({ kind: "choice", key, label, options, ...more });
const toggle = (key, label, more = {}) => ({ kind: "toggle", key, label, ...more });
const button = (label, press, more = {}) => ({ kind: "button", label, press, ...more });
const typed = (key, label, more = {}) => ({ kind: "typed", key, label, ...more });

function figure(spec) {
  if (typeof document === "undefined") { globalThis.FIGURE = spec; return; }
  const data = JSON.parse(document.getElementById("data").textContent);
  const home = document.getElementById("figure"), state = structuredClone(typeof spec.state === "function" ? spec.state(data) : spec.state);
  const make = (tag, look, parent) => { const e = document.createElement(tag); e.className = look; parent.append(e); return e; };
  const controls = make("div", "controls", home), plots = make("div", "plots", home), readout = make("p", "readout", home);
  readout.setAttribute("aria-live", "polite");
  if (spec.hint) make("p", "hint", home).textContent = spec.hint;
  let waiting = false;
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; now(); }); } };
  const view = { say: html => { readout.innerHTML = html; }, home, readout };
  for (const p of spec.plots) view[p.id] = new Plot(plots, { ...p, onclick: p.onclick && ((...at) => p.onclick(state, ...at)) }, later);
  const parts = spec.controls.map(c => control(c, state, data, controls, later));
  function now() {
    parts.forEach(p => p());
    const result = spec.compute(state, data);
    for (const p of spec.plots) view[p.id].begin();
    spec.draw(view, result, state, data);
    for (const p of spec.plots) view[p.id].end();
    home.dataset.drawn = String(1 + Number(home.dataset.drawn ?? 0));
  }
  let width = 0;
  new ResizeObserver(() => { if (home.clientWidth !== width) { width = home.clientWidth; later(); } }).observe(home);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  document.addEventListener("themed", later);
  now();
}

function control(c, state, data, host, later) {
  const box = host.appendChild(document.createElement("div")), id = `control-${c.key ?? c.label.replace(/\W+/g, "-")}`;
  box.className = `control${c.wide ? " wide" : ""}${c.kind === "button" || c.kind === "toggle" ? " small" : ""}`;
  const label = box.appendChild(document.createElement(c.kind === "button" ? "span" : "label"));
  const set = value => { state[c.key] = value; if (c.then) c.then(state, data); later(); };
  const refresh = CONTROLS[c.kind](c, { box, label, id, set, state, data, later });
  if (label.tagName === "LABEL") label.htmlFor = id;
  return () => { box.hidden = c.when ? !c.when(state, data) : false; refresh(); };
}
const limit = (value, data) => typeof value === "function" ? value(data) : value;
const CONTROLS = {
  slider(c, { box, label, id, set, state, data }) {
    const low = limit(c.low, data), high = limit(c.high, data), steps = 100;
    const input = Object.assign(document.createElement("input"), { type: "range", id });
    const of = v => c.log ? Math.log(v / low) / Math.log(high / low) * steps : v;
    Object.assign(input, c.log ? { min: 0, max: steps, step: 1 } : { min: low, max: high, step: c.step });
    label.append(c.label);
    const out = label.appendChild(document.createElement("output"));
    input.addEventListener("input", () => {
      const v = c.log ? +(low * (high / low) ** (input.valueAsNumber / steps)).toPrecision(4) : input.valueAsNumber;
      set(c.whole ? Math.round(v) : v);
    });
    box.append(input);
    return () => {
      const v = of(state[c.key]), words = c.show ? c.show(state[c.key], data) : short(state[c.key]);
      if (!(c.log && c.whole && input === document.activeElement)) input.value = v;
      out.textContent = words;
      input.setAttribute("aria-valuetext", words);
    };
  },
  choice(c, { box, label, id, set, state, data }) {
    const input = Object.assign(document.createElement("select"), { id }), options = limit(c.options, data);
    for (const o of options) { const [value, words] = Array.isArray(o) ? o : [o, o]; input.append(new Option(words, value)); }
    label.append(c.label);
    input.addEventListener("change", () => set(input.value));
    box.append(input);
    return () => { input.value = state[c.key]; };
  },
  toggle(c, { label, id, set, state }) {
    const input = Object.assign(document.createElement("input"), { type: "checkbox", id });
    label.className = "check";
    label.append(input, c.label);
    input.addEventListener("change", () => set(input.checked));
    return () => { input.checked = state[c.key]; };
  },
  button(c, { box, id, state, data, later }) {
    const b = Object.assign(document.createElement("button"), { type: "button", textContent: c.label, id });
    b.addEventListener("click", () => { c.press(state, data); later(); });
    box.append(b);
    return () => {};
  },
  typed(c, { box, label, id, set, state }) {
    const input = Object.assign(document.createElement("input"), { type: "text", id, spellcheck: false, autocomplete: "off" });
    label.append(c.label);
    input.addEventListener("input", () => set(input.value));
    box.append(input);
    return () => { if (input !== document.activeElement || input.value !== state[c.key]) input.value = state[c.key]; };
  },
};

if (typeof document !== "undefined") {
  const root = document.documentElement, theme = document.getElementById("theme");
  theme?.addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
    document.dispatchEvent(new Event("themed"));
  });
  document.getElementById("copy")?.addEventListener("click", async event => {
    const text = document.querySelector(".code code").textContent;
    try { await navigator.clipboard.writeText(text); event.target.textContent = "copied"; } catch {
      getSelection().selectAllChildren(document.querySelector(".code code"));
      event.target.textContent = "selected: Ctrl+C";
    }
    setTimeout(() => { event.target.textContent = "copy"; }, 2000);
  });
}
