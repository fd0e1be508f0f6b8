// Linear algebra on plain arrays of rows, and random numbers from a seed: what the figures need.
"use strict";
const L = (() => {
  const dot = (a, b) => { let s = 0; for (let i = 0; i < a.length; i++) s += a[i] * b[i]; return s; };
  const zeros = (n, m) => Array.from({ length: n }, () => new Array(m).fill(0));
  const transpose = A => A[0].map((_, j) => A.map(row => row[j]));
  const apply = (A, v) => A.map(row => dot(row, v));
  const times = (A, B) => { const T = transpose(B); return A.map(row => T.map(col => dot(row, col))); };
  const gram = F => F.map(a => F.map(b => dot(a, b)));
  const ridged = (A, alpha) => A.map((row, i) => row.map((v, j) => v + (i === j ? alpha : 0)));
  const linspace = (a, b, n) => Array.from({ length: n }, (_, i) => a + (b - a) * i / (n - 1));
  const sum = v => v.reduce((s, x) => s + x, 0);
  const mean = v => sum(v) / v.length;

  // lower factor of a symmetric positive definite matrix; null where a pivot is not positive
  function cholesky(A) {
    const n = A.length, C = zeros(n, n);
    for (let j = 0; j < n; j++) {
      for (let i = j; i < n; i++) {
        let s = A[i][j];
        for (let k = 0; k < j; k++) s -= C[i][k] * C[j][k];
        if (i > j) C[i][j] = s / C[j][j];
        else if (s > 0) C[j][j] = Math.sqrt(s);
        else return null;
      }
    }
    return C;
  }
  function forward(C, b) {
    const x = b.slice();
    for (let i = 0; i < x.length; i++) {
      for (let k = 0; k < i; k++) x[i] -= C[i][k] * x[k];
      x[i] /= C[i][i];
    }
    return x;
  }
  function backward(C, b) {
    const x = b.slice();
    for (let i = x.length - 1; i >= 0; i--) {
      for (let k = i + 1; k < x.length; k++) x[i] -= C[k][i] * x[k];
      x[i] /= C[i][i];
    }
    return x;
  }
  const solve = (C, b) => backward(C, forward(C, b));

  // eigenvalues, largest first, and unit eigenvectors (rows) of a symmetric matrix, by Jacobi rotations;
  // the largest entry of each vector is positive
  function eigen(matrix) {
    const n = matrix.length, A = matrix.map(row => row.slice()), V = zeros(n, n);
    for (let i = 0; i < n; i++) V[i][i] = 1;
    const size = Math.max(1e-300, ...A.map(row => Math.max(...row.map(Math.abs))));
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) off = Math.max(off, Math.abs(A[p][q]));
      if (off < 1e-14 * size) break;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) rotate(A, V, p, q);
    }
    const order = A.map((_, i) => i).sort((i, j) => A[j][j] - A[i][i]);
    return { values: order.map(i => A[i][i]), vectors: order.map(i => signed(V[i])) };
  }
  function rotate(A, V, p, q) {
    const n = A.length, a = A[p][q];
    if (Math.abs(a) < 1e-300) return;
    const theta = (A[q][q] - A[p][p]) / (2 * a);
    const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1), s = t * c, P = A[p], Q = A[q];
    for (let k = 0; k < n; k++) { const x = P[k], y = Q[k]; P[k] = c * x - s * y; Q[k] = s * x + c * y; }
    for (let k = 0; k < n; k++) { const R = A[k], x = R[p], y = R[q]; R[p] = c * x - s * y; R[q] = s * x + c * y; }
    const v = V[p], w = V[q];
    for (let k = 0; k < n; k++) { const x = v[k], y = w[k]; v[k] = c * x - s * y; w[k] = s * x + c * y; }
  }
  function signed(v) {
    const big = v.reduce((m, x) => Math.abs(x) > Math.abs(m) + 1e-12 ? x : m, 0);
    return big < 0 ? v.map(x => -x) : v;
  }
  // a Gram matrix about the mean of its features
  function centred(K) {
    const rows = K.map(mean), all = mean(rows);
    return K.map((row, i) => row.map((v, j) => v - rows[i] - rows[j] + all));
  }

  function random(seed) {
    let a = seed >>> 0;
    const uniform = () => {
      a = (a + 0x6D2B79F5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    return { uniform, normal, sign: () => uniform() < 0.5 ? -1 : 1 };
  }
  const binomial = (n, k) => { let b = 1; for (let i = 1; i <= k; i++) b = b * (n - k + i) / i; return Math.round(b); };
  return { dot, zeros, transpose, apply, times, gram, ridged, linspace, sum, mean, cholesky, forward, backward, solve,
    eigen, centred, random, binomial };
})();
