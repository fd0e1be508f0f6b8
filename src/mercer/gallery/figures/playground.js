const EXAMPLES = ["Gaussian(bandwidth=0.9) + 0.1 * Linear()", "0.5 * Gaussian(bandwidth=1.0) + Linear() * Polynomial(degree=2)", "Gaussian(0.7)", "Laplace(1.0)", "Matern(1.5, nu=2.5)", "Linear() + 1", "Polynomial(3)", "Periodic(bandwidth=1.0, period=2.0) * Gaussian(3.0)", "exp(0.3 * Linear()).normalized()", "AllSubsets()", "ArcCosine(1)", "Gaussian(0.8).on_columns([0]) + Linear()", "Gaussian() - Linear()"];
const CLASSES = [[-1.2, 0.4, 1], [0.3, 1.1, 1], [-0.2, 1.6, 1], [-1.7, -0.3, 1], [0.9, -0.7, -1], [-0.4, -1, -1], [1.6, 0.2, -1], [0.2, -1.7, -1], [-0.3, 0.2, -1], [1.4, 1.5, 1]];
const CURVE = [[-2.3, -0.8], [-1.5, 0.4], [-0.9, 0.9], [-0.1, 0.2], [0.6, -0.5], [1.3, -0.2], [2.1, 1.1]];
figure({
  state: { mode: "classes", text: EXAMPLES[0], example: EXAMPLES[0], label: "1", C: 1, noise: 0.05, D: 64, seed: 1, classes: CLASSES.map(p => p.slice()), curve: CURVE.map(p => p.slice()) },
  hint: "Click to add a point (with Shift: of the other class), drag to move, double-click or Delete to take away. Keyboard: focus the plot, move the cross by arrow keys, press Enter.",
  controls: [
    typed("text", "kernel expression", { wide: true }), choice("example", "or one of these", EXAMPLES, { then: s => { s.text = s.example; } }), choice("mode", "points of", [["classes", "two classes"], ["curve", "a curve"]]),
    choice("label", "a click adds", [["1", "the first class (circle)"], ["-1", "the second class (square)"]], { when: s => s.mode === "classes" }), logarithmic("C", "C", 0.01, 1000, { when: s => s.mode === "classes" }), logarithmic("noise", "noise", 0.001, 1, { when: s => s.mode === "curve" }),
    logarithmic("D", "random features D", 2, 1024, { whole: true }), button("draw them anew", s => { s.seed++; }), button("points as they were", s => { s.classes = CLASSES.map(p => p.slice()); s.curve = CURVE.map(p => p.slice()); }),
  ],
  plots: [
    { id: "plane", small: true, title: "The machine", alt: "points with the decision surface or the band of a Gaussian process", x: [-3, 3], y: [-3, 3], square: true, onclick: (s, x, y, other) => { if (s.mode === "curve") s.curve.push([x, y]); else s.classes.push([x, y, (other ? -1 : 1) * +s.label]); } },
    { id: "gram", small: true, title: "Gram matrix", alt: "heat map of the Gram matrix of the points", x: [0, 1], y: [0, 1], square: true, xticks: [], yticks: [] },
    { id: "space", small: true, title: "Lifted points, three directions", alt: "the points in the first three kernel principal components", space: true, square: true },
    { id: "approach", small: true, title: "Gram matrix from D random features", alt: "heat map of the Gram matrix estimated by random features", x: [0, 1], y: [0, 1], square: true, xticks: [], yticks: [] },
    { id: "error", small: true, title: "Their error as D grows", alt: "root mean squared error of the estimated Gram matrix against D", x: [2, 1024], y: [0.01, 3], logx: true, logy: true, xlabel: "D", ratio: 0.95 },
  ],
  compute(s) {
    let kernel;
    const points = s.mode === "curve" ? s.curve : s.classes, X = s.mode === "curve" ? points.map(p => [p[0]]) : points.map(p => p.slice(0, 2)), d = s.mode === "curve" ? 1 : 2;
    try { kernel = K.fits(P.parse(s.text), d); } catch (e) { if (!(e instanceof K.Refusal)) throw e; return { error: e.message, X }; }
    const G = K.matrix(kernel, X), result = { kernel, shown: P.shown(kernel), X, G };
    if (G.flat().some(v => !Number.isFinite(v))) return { error: "The kernel overflows on these points; take a smaller scale.", X };
    if (s.mode === "curve") {
      const grid = L.linspace(-3, 3, 121), p = F.posterior(kernel, X, points.map(q => q[1]), grid.map(v => [v]), s.noise);
      Object.assign(result, { grid, mean: p.mean, sd: p.variance.map(Math.sqrt) });
    } else if (points.some(p => p[2] > 0) && points.some(p => p[2] < 0)) {
      const m = F.svm(G, points.map(p => p[2]), s.C, true, 1e-7);
      result.a = m.a;
      result.value = x => X.reduce((t, z, i) => m.coef[i] ? t + m.coef[i] * kernel.of(x, z) : t, m.b);
      result.fitted = X.map(result.value);
    }
    if (X.length > 1) {
      result.lifted = F.components(G, Math.min(3, X.length));
      try { Object.assign(result, approach(kernel, X, G, s.D, s.seed)); } catch (e) { if (!(e instanceof K.Refusal)) throw e; result.none = e.message; }
    }
    return result;
  },
  draw(view, r, s) {
    const { plane, gram, space, approach: near, error, say } = view, curve = s.mode === "curve", points = curve ? s.curve : s.classes;
    if (r.value) {
      const rows = plane.grid(50).map(line => line.map(r.value));
      plane.heat(rows.map(q => q.map(v => v / 1.5)), diverging());
      plane.contour(rows, 0, "c-ink");
    }
    if (r.mean) {
      plane.band(r.grid, r.mean.map((m, i) => m - 2 * Math.sqrt(r.sd[i] ** 2 + s.noise)), r.mean.map((m, i) => m + 2 * Math.sqrt(r.sd[i] ** 2 + s.noise)), "f-accent more");
      plane.band(r.grid, r.mean.map((m, i) => m - 2 * r.sd[i]), r.mean.map((m, i) => m + 2 * r.sd[i]), "f-accent");
      plane.line(r.grid, r.mean);
    }
    points.forEach((p, i) => {
      if (r.a && r.a[i] > 1e-7 * s.C) plane.ring(p[0], p[1]);
      plane.handle(`p${i}`, p[0], p[1], { label: `point ${i + 1}`, look: curve ? "f-ink" : p[2] > 0 ? "f-plus" : "f-minus", square: p[2] < 0, r: 5, move: (x, y) => { p[0] = x; p[1] = y; }, remove: () => { points.splice(i, 1); } });
    });
    if (!curve) plane.text(-2.9, 2.7, `a click adds a ${s.label === "1" ? "circle" : "square"}`, "strong", "start");
    if (r.G?.length) {
      const top = Math.max(1e-12, ...r.G.flat().map(Math.abs));
      gram.heat(r.G.map(q => q.map(v => v / top)).reverse(), diverging(), true);
      if (r.estimate) near.heat(r.estimate.map(q => q.map(v => v / top)).reverse(), diverging(), true);
    }
    if (r.none) near.text(0.5, 0.5, "none for this kernel", "strong");
    if (r.lifted) {
      const top = Math.max(1e-12, ...r.lifted.scores.flat().map(Math.abs));
      space.dots3(r.lifted.scores.map((v, i) => ({ p: [0, 1, 2].map(c => (v[c] ?? 0) / top), look: curve ? "f-ink" : points[i][2] > 0 ? "f-plus" : "f-minus", square: points[i][2] < 0, r: 5 })));
      space.box3(["1st", "2nd", "3rd"]);
    }
    if (r.errors) {
      const all = r.errors.filter(v => v > 0);
      error.begin({ y: [Math.min(...all) / 2, Math.max(...all) * 2] });
      error.line(r.sizes, r.errors, "c-accent");
      error.dot(s.D, r.off, "f-accent", 5);
    }
    const clean = t => t.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    if (r.error) say(`<span class="error">Mercer: ${clean(r.error)}</span>`);
    else say(`k = <b>${clean(r.shown)}</b> on ${points.length} points. ${r.value ? `${r.a.filter(v => v > 1e-7 * s.C).length} support vectors, ${r.fitted.filter((f, i) => f * points[i][2] > 0).length} of ${points.length} right. ` : ""}${r.off !== undefined ? `${s.D} random features are off by <b>${fixed(r.off, 3)}</b> (root mean square, of values up to ${fixed(Math.max(...r.G.flat().map(Math.abs)), 2)}).` : r.none ? clean(r.none) : ""}`);
  },
});
// the Gram matrix from D random features, and its error at every power of two up to 1024
function approach(kernel, X, G, D, seed) {
  const columns = P.features(kernel, X, 1024, seed), sums = L.zeros(X.length, X.length), sizes = [], errors = [];
  let estimate = null, off = 0;
  const now = n => sums.map(row => row.map(v => v / n)), rms = E => Math.sqrt(L.mean(E.flatMap((row, i) => row.map((v, j) => (v - G[i][j]) ** 2))));
  columns.forEach((f, t) => {
    for (let i = 0; i < f.length; i++) for (let j = 0; j < f.length; j++) sums[i][j] += f[i] * f[j];
    const n = t + 1;
    if (n === D) { estimate = now(n); off = rms(estimate); }
    if ((n & (n - 1)) === 0 && n > 1) { sizes.push(n); errors.push(rms(now(n))); }
  });
  return { estimate, off, sizes, errors };
}
