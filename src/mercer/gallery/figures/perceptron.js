figure({
  state: d => ({ steps: 6, set: false, X: d.X.map(r => r.slice()) }),
  hint: "Drag points within their side of the field; each step shows one row, and after the last comes the first again.",
  controls: [
    slider("steps", "rows seen", 0, 480, 1),
    button("next mistake", (s, d) => { const before = F.perceptron(s.X, d.y, s.steps, s.set).mistakes; for (let t = s.steps + 1; t <= 480; t++) if (F.perceptron(s.X, d.y, t, s.set).mistakes > before) { s.steps = t; return; } s.steps = 480; }),
    button("from the start", s => { s.steps = 0; }),
    toggle("set", "each row counts once (the slip)"), button("points as they were", (s, d) => { s.X = d.X.map(r => r.slice()); }),
  ],
  plots: [
    { id: "plane", title: "Rows and the line w'x = 0", alt: "two classes of points and the line of the perceptron", x: [-3, 3], y: [-3, 3], square: true, big: true },
    { id: "curve", title: "Mistakes so far", alt: "number of mistakes against rows seen, and the bound", x: [0, 480], y: [1, 1000], logy: true, xlabel: "rows seen", ratio: 0.8 },
  ],
  compute({ steps, set, X }, { y }) {
    const m = F.perceptron(X, y, steps, set), R = Math.max(...X.map(x => Math.sqrt(L.dot(x, x))));
    const best = F.svm(L.gram(X), y, 1e7, false, 1e-7), length = L.sum(best.a), margin = length < 1e7 ? 1 / Math.sqrt(length) : 0;
    const curve = [];
    for (let t = 10; t <= 480; t += 10) curve.push(F.perceptron(X, y, t, set).mistakes);
    return { ...m, margin, bound: margin ? (R / margin) ** 2 : Infinity, curve, wrong: X.filter((x, i) => y[i] * L.dot(m.w, x) <= 0).length };
  },
  draw({ plane, curve: plot, say }, { w, mistakes, counts, last, margin, bound, curve, wrong }, s, { y }) {
    const rows = plane.grid(40).map(line => line.map(([a, b]) => w[0] * a + w[1] * b + w[2]));
    if (w.some(v => v)) { plane.heat(rows.map(r => r.map(Math.sign)).map(r => r.map(v => v * 0.35)), diverging()); plane.contour(rows, 0, "c-ink"); }
    s.X.forEach(([a, b], i) => {
      if (i === last) plane.ring(a, b, 11, "c-accent");
      plane.handle(`p${i}`, a, b, { label: `row ${i + 1}`, look: y[i] > 0 ? "f-plus" : "f-minus", square: y[i] < 0, r: 4.5 + Math.min(4, counts[i]) * 0.7, move: (p, q) => { s.X[i] = [p, q, 1]; } });
    });
    plot.begin({ y: [0.8, Math.max(30, Math.min(1e6, bound * 2))] });
    plot.line(curve.map((_, i) => 10 * (i + 1)), curve.map(v => Math.max(v, 0.8)), "c-accent");
    if (Number.isFinite(bound)) { plot.segment(0, bound, 480, bound, "c-minus dashed"); plot.text(470, bound, "(R/γ)²", "strong", "end", -6); }
    plot.dot(s.steps, Math.max(mistakes, 0.8), "f-accent", 5);
    say(`After <b>${s.steps}</b> rows: <b>${mistakes}</b> mistakes, w = (${w.map(v => fixed(v, 2)).join(", ")}), <b>${wrong}</b> rows on the wrong side. ${margin ? `Margin γ = ${fixed(margin, 3)}, bound ${fixed(bound, 0)}.` : "No line separates these points: there is no bound."}`);
  },
});
