// The learners of the figures, in their plainest form: solve, vote, scan, two variables at a time.
"use strict";
const F = (() => {
  // (K + alpha I)^-1 y, the dual weights of ridge and of the mean of a Gaussian process
  const dual = (Kn, y, alpha) => L.solve(L.cholesky(L.ridged(Kn, alpha)), y);

  // ridge on explicit features: (F'F + alpha I)^-1 F'y; with an intercept, about the means
  function ridge(features, y, alpha, intercept = false) {
    const T = L.transpose(features), middle = T.map(c => intercept ? L.mean(c) : 0), level = intercept ? L.mean(y) : 0;
    const A = T.map((c, j) => c.map(v => v - middle[j])), b = y.map(v => v - level);
    const w = L.solve(L.cholesky(L.ridged(A.map(a => A.map(c => L.dot(a, c))), alpha)), L.apply(A, b));
    return { w, w0: level - L.dot(middle, w) };
  }

  // posterior of a Gaussian process at rows Z: mean and variance of f
  function posterior(k, X, y, Z, noise) {
    if (!X.length) return { mean: Z.map(() => 0), variance: Z.map(z => k.of(z, z)), C: null };
    const C = L.cholesky(L.ridged(K.matrix(k, X), noise)), a = L.solve(C, y);
    const cross = K.matrix(k, Z, X);
    const variance = Z.map((z, i) => Math.max(0, k.of(z, z) - L.forward(C, cross[i]).reduce((s, v) => s + v * v, 0)));
    return { mean: cross.map(row => L.dot(row, a)), variance, C, a };
  }

  // max sum a - a'Qa/2 with 0 <= a <= C, Q = y y' K; with a bias also y'a = 0. Pairs of largest violation.
  function svm(Kn, y, C, bias = true, tol = 1e-9) {
    const n = y.length, a = new Array(n).fill(0), g = y.map(() => -1);
    const step = (i, d) => { a[i] += d; for (let t = 0; t < n; t++) g[t] += d * y[t] * y[i] * Kn[t][i]; };
    for (let round = 0; round < 400000; round++) if (!(bias ? pair(Kn, y, C, a, g, step, tol) : single(Kn, C, a, g, step, tol))) break;
    return { a, b: bias ? offset(y, C, a, g) : 0, coef: a.map((v, i) => v * y[i]) };
  }
  function pair(Kn, y, C, a, g, step, tol) {
    let i = -1, j = -1, up = -Infinity, low = Infinity;
    for (let t = 0; t < y.length; t++) {
      const v = -y[t] * g[t];
      if ((y[t] > 0 ? a[t] < C : a[t] > 0) && v > up) { up = v; i = t; }
      if ((y[t] > 0 ? a[t] > 0 : a[t] < C) && v < low) { low = v; j = t; }
    }
    if (i < 0 || j < 0 || up - low < tol) return false;
    const most = Math.min(y[i] > 0 ? C - a[i] : a[i], y[j] > 0 ? a[j] : C - a[j]);
    const d = Math.min(most, (up - low) / Math.max(Kn[i][i] + Kn[j][j] - 2 * Kn[i][j], 1e-12));
    step(i, y[i] * d);
    step(j, -y[j] * d);
    clip(a, i, C); clip(a, j, C);
    return true;
  }
  function clip(a, i, C) { if (a[i] < 1e-12 * C) a[i] = 0; else if (a[i] > C * (1 - 1e-12)) a[i] = C; }
  function single(Kn, C, a, g, step, tol) {
    let best = -1, most = tol;
    for (let t = 0; t < a.length; t++) {
      const v = a[t] <= 0 ? Math.max(0, -g[t]) : a[t] >= C ? Math.max(0, g[t]) : Math.abs(g[t]);
      if (v > most) { most = v; best = t; }
    }
    if (best < 0) return false;
    step(best, Math.min(C, Math.max(0, a[best] - g[best] / Math.max(Kn[best][best], 1e-12))) - a[best]);
    return true;
  }
  function offset(y, C, a, g) {
    const free = [], lows = [], highs = [];
    y.forEach((s, t) => {
      const v = -s * g[t];
      if (a[t] > 0 && a[t] < C) free.push(v);
      if (s > 0 ? a[t] < C : a[t] > 0) lows.push(v);
      if (s > 0 ? a[t] > 0 : a[t] < C) highs.push(v);
    });
    return free.length ? L.mean(free) : (Math.max(...lows) + Math.min(...highs)) / 2;
  }

  // shares of a vote by a Gaussian of some bandwidth, relative to the nearest, so that nothing underflows
  function votes(X, z, bandwidth, without = -1) {
    const logs = X.map((x, i) => i === without ? -Infinity : -x.reduce((s, v, j) => s + (v - z[j]) ** 2, 0) / (2 * bandwidth * bandwidth));
    const top = Math.max(...logs), w = logs.map(v => Math.exp(v - top)), total = L.sum(w);
    return w.map(v => v / total);
  }
  // Nadaraya-Watson: means of y by such votes, and those without the point itself
  const smooth = (X, y, Z, bandwidth) => Z.map(z => L.dot(votes(X, z, bandwidth), y));
  const leftOut = (X, y, bandwidth) => X.map((z, i) => L.dot(votes(X, z, bandwidth, i), y));

  // one presentation after another: w += y x where y w'x <= 0
  function perceptron(X, y, steps, set = false) {
    let w = X[0].map(() => 0), mistakes = 0, last = -1;
    const counts = X.map(() => 0);
    for (let t = 0; t < steps; t++) {
      const i = t % X.length;
      if (y[i] * L.dot(w, X[i]) > 0) continue;
      mistakes++;
      last = i;
      if (set && counts[i]) continue;
      counts[i]++;
      w = w.map((v, j) => v + y[i] * X[i][j]);
    }
    return { w, mistakes, counts, last };
  }

  // the kernel perceptron, row after row; beyond the budget the oldest point goes, or the mistake is projected
  function budgeted(k, X, y, steps, budget, policy, eta = 0.1) {
    let points = [], weights = [], mistakes = 0, projected = 0;
    const curve = [];
    for (let t = 0; t < steps; t++) {
      const x = X[t % X.length], label = y[t % X.length], values = points.map(p => k.of(x, p));
      if (label * L.dot(weights, values) <= 0) {
        mistakes++;
        const d = policy === "projectron" && points.length ? onto(k, points, values, k.of(x, x), budget, eta) : null;
        if (d) { weights = weights.map((w, i) => w + label * d[i]); projected++; } else {
          points.push(x);
          weights.push(label);
          if (policy === "oldest" && points.length > budget) { points.shift(); weights.shift(); }
        }
      }
      curve.push({ mistakes, size: points.length });
    }
    return { points, weights, mistakes, projected, curve };
  }
  function onto(k, points, values, top, budget, eta) {
    const d = L.solve(L.cholesky(L.ridged(K.matrix(k, points), 1e-13)), values), outside = Math.max(top - L.dot(d, values), 0);
    return points.length >= budget || outside <= Math.max(eta * eta, 1e-10) * top ? d : null;
  }

  // kernel principal components: scores of the points, largest component first
  function components(Kn, m) {
    const { values, vectors } = L.eigen(L.centred(Kn));
    const all = values.map(v => Math.max(0, v));
    return { scores: Kn.map((_, i) => L.linspace(0, m - 1, Math.max(m, 2)).slice(0, m).map(c => vectors[c][i] * Math.sqrt(all[c]))), values: all };
  }
  return { dual, ridge, posterior, svm, votes, smooth, leftOut, perceptron, budgeted, components };
})();
