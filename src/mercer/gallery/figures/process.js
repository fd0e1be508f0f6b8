const COVARIANCES = {
  matern: ["Matern, ν = 5/2", s => K.make("Matern", { bandwidth: s, nu: 2.5 })], gaussian: ["Gaussian", s => K.make("Gaussian", { bandwidth: s })],
  laplace: ["Laplace", s => K.make("Laplace", { bandwidth: s })], periodic: ["Periodic, period 3", s => K.make("Periodic", { bandwidth: s, period: 3 })],
  linear: ["1 + xz: Bayesian linear", () => K.make("Polynomial", { degree: 1 })],
};
figure({
  state: d => ({ kernel: "matern", bandwidth: 1, noise: 0.04, draws: false, slip: false, points: d.x.map((v, i) => [v, d.y[i]]) }),
  hint: "Click to add a point, drag one to move it, double-click one (or press Delete on it) to take it away. Keyboard: focus the plot, move the cross by arrow keys, press Enter.",
  controls: [
    choice("kernel", "kernel", Object.entries(COVARIANCES).map(([k, v]) => [k, v[0]])), logarithmic("bandwidth", "bandwidth", 0.2, 5, { when: s => s.kernel !== "linear" }), logarithmic("noise", "noise, a variance", 0.001, 2),
    toggle("draws", "functions drawn from it"), toggle("slip", "no noise in the inverse (the slip)"), button("no points: the prior", s => { s.points = []; }), button("points as they were", (s, d) => { s.points = d.x.map((v, i) => [v, d.y[i]]); }),
  ],
  plots: [{ id: "curve", title: "Posterior of f (dark band) and of y (light band), two standard deviations", alt: "data points, posterior mean and bands", x: [-5, 5], y: [-3, 3], xlabel: "x", ylabel: "y", big: true, ratio: 0.52, most: 560, onclick: (s, x, y) => { s.points.push([x, y]); } }],
  compute({ kernel, bandwidth, noise, draws, slip, points }, { grid, normals }) {
    const k = COVARIANCES[kernel][1](bandwidth), X = points.map(p => [p[0]]), y = points.map(p => p[1]), Z = grid.map(v => [v]);
    const p = F.posterior(k, X, y, Z, slip ? 1e-8 : noise), sd = p.variance.map(Math.sqrt);
    let functions = null;
    if (draws) {
      const cross = p.C && K.matrix(k, Z, X).map(row => L.forward(p.C, row)), cov = K.matrix(k, Z).map((row, i) => row.map((v, j) => v - (cross ? L.dot(cross[i], cross[j]) : 0)));
      const C = L.cholesky(L.ridged(cov, 1e-7));
      functions = C && [0, 1, 2, 3].map(j => L.apply(C, normals.map(r => r[j])).map((v, i) => v + p.mean[i]));
    }
    const evidence = p.C ? -0.5 * L.dot(y, p.a) - L.sum(p.C.map((row, i) => Math.log(row[i]))) - y.length / 2 * Math.log(2 * Math.PI) : 0;
    return { mean: p.mean, f: sd, y: p.variance.map(v => Math.sqrt(v + noise)), functions, evidence };
  },
  draw({ curve, say }, { mean, f, y, functions, evidence }, s, { grid }) {
    const around = (sd, sign) => mean.map((m, i) => m + sign * 2 * sd[i]);
    curve.band(grid, around(y, -1), around(y, 1), "f-accent more");
    curve.band(grid, around(f, -1), around(f, 1), "f-accent");
    if (functions) functions.forEach(g => curve.line(grid, g, "c-third thin"));
    curve.line(grid, mean, "c-accent");
    s.points.forEach(([a, b], i) => curve.handle(`p${i}`, a, b, { label: `point ${i + 1}`, look: "f-minus", r: 5.5, move: (p, q) => { s.points[i] = [p, q]; }, remove: () => { s.points.splice(i, 1); } }));
    const mid = grid.findIndex(v => v >= 0);
    say(`${s.points.length} points. At x = 0: f = <b>${fixed(mean[mid], 3)} ± ${fixed(2 * f[mid], 3)}</b>, y within ± ${fixed(2 * y[mid], 3)}. Log marginal likelihood <b>${fixed(evidence, 2)}</b>.${s.slip ? " The noise is left out of the inverse: the mean must pass every point." : ""}`);
  },
});
