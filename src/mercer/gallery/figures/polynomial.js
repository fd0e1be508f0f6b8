figure({
  state: d => ({ degree: 4, alpha: 0.1, X: d.X.map(r => r.slice()) }),
  hint: "Drag points; double-click one, or press Delete on it, to give it the other class.",
  controls: [slider("degree", "degree p", 1, 9, 1), logarithmic("alpha", "penalty alpha", 0.001, 100), button("points as they were", (s, d) => { s.X = d.X.map(r => r.slice()); s.y = null; })],
  plots: [
    { id: "plane", title: "The boundary", alt: "two classes and the polynomial boundary between them", x: [-1.5, 1.5], y: [-1.5, 1.5], square: true, big: true },
    { id: "count", title: "Features C(2+p, p)", alt: "number of monomials by degree", x: [0.4, 9.6], y: [0, 60], xlabel: "degree", ratio: 0.8 },
  ],
  compute({ degree, alpha, X, at }, { y }, labels = y) {
    const k = K.make("Polynomial", { degree }), a = F.dual(K.matrix(k, X), labels, alpha);
    const value = x => X.reduce((s, z, i) => s + a[i] * k.of(x, z), 0);
    return { value, fitted: X.map(value), D: L.binomial(2 + degree, degree), at: at && at.map(value) };
  },
  draw({ plane, count, say }, r, s, data) {
    s.y ??= data.y.slice();
    const { value, fitted, D } = this.compute(s, data, s.y);
    const rows = plane.grid(56).map(line => line.map(value));
    plane.heat(rows, diverging());
    plane.contour(rows, 0, "c-ink");
    s.X.forEach(([x, y], i) => plane.handle(`p${i}`, x, y, {
      label: `point ${i + 1}`, look: s.y[i] > 0 ? "f-plus" : "f-minus", square: s.y[i] < 0, r: 4.5,
      move: (a, b) => { s.X[i] = [a, b]; }, remove: () => { s.y[i] = -s.y[i]; },
    }));
    for (let p = 1; p <= 9; p++) count.bar(p - 0.35, p + 0.35, L.binomial(2 + p, p), p === s.degree ? "f-accent" : "f-grid");
    const right = fitted.filter((f, i) => f * s.y[i] > 0).length;
    say(`Degree ${s.degree}: <b>${D}</b> features, ${s.X.length} equations; <b>${right}</b> of ${s.X.length} points on their side.`);
  },
});
