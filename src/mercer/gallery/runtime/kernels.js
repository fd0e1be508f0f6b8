// The kernels: one formula over a pair of rows each, as in mercer.kernels. A kernel is {name, ...parameters, of(x, z)}.
"use strict";
const K = (() => {
  const at = (value, j) => Array.isArray(value) ? value[j] : value;
  const dot = (x, z) => { let s = 0; for (let j = 0; j < x.length; j++) s += x[j] * z[j]; return s; };
  const squared = (x, z, b) => { let s = 0; for (let j = 0; j < x.length; j++) { const r = (x[j] - z[j]) / at(b, j); s += r * r; } return s; };
  const absolute = (x, z, b) => { let s = 0; for (let j = 0; j < x.length; j++) s += Math.abs(x[j] - z[j]) / at(b, j); return s; };
  const ratio = (a, b) => b === 0 ? 0 : a / b;

  function elementary(x, z, order) {
    const e = [1, ...new Array(order).fill(0)];
    for (let j = 0; j < x.length; j++) for (let k = order; k > 0; k--) e[k] += e[k - 1] * x[j] * z[j];
    return e[order];
  }
  // Lanczos; Bessel's integral by the trapezoid rule, which converges geometrically
  function logGamma(v) {
    const c = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.001208650973866179, -5.395239384953e-6];
    let s = 1.000000000190015;
    for (let j = 0; j < 6; j++) s += c[j] / (v + 1 + j);
    return (v + 0.5) * Math.log(v + 5.5) - v - 5.5 + Math.log(2.5066282746310005 * s / v);
  }
  function matern(nu, r) {
    const t = Math.sqrt(2 * nu) * r;
    if (t === 0) return 1;
    if (nu > 1e7) return Math.exp(-r * r / 2);
    if (nu % 1 === 0.5 && nu <= 6.5) {
      const p = nu - 0.5;
      let s = 0;
      for (let i = 0, c = 1; i <= p; i++) { s += c * Math.pow(2 * t, p - i); c *= (p + i + 1) * (p - i) / (i + 1); }
      return s * Math.exp(-t) * Math.exp(logFactorial(p) - logFactorial(2 * p));
    }
    const h = 0.05, scale = (1 - nu) * Math.LN2 - logGamma(nu) + nu * Math.log(t);
    let s = 0;
    for (let i = 0; ; i++) {
      const u = i * h, c = t * Math.cosh(u);
      if (c - nu * u > 740 - Math.min(0, scale)) break;
      s += (i ? 1 : 0.5) * (Math.exp(scale + nu * u - c) + Math.exp(scale - nu * u - c)) / 2;
    }
    return h * s;
  }
  const logFactorial = n => { let s = 0; for (let i = 2; i <= n; i++) s += Math.log(i); return s; };
  const angle = (x, z) => Math.acos(Math.max(-1, Math.min(1, ratio(dot(x, z), Math.sqrt(dot(x, x)) * Math.sqrt(dot(z, z))))));
  function arc(order, x, z) {
    const t = angle(x, z), size = Math.sqrt(dot(x, x) * dot(z, z)), s = Math.sin(t), c = Math.cos(t);
    if (order === 0) return 1 - t / Math.PI;
    if (order === 1) return size * (s + (Math.PI - t) * c) / Math.PI;
    return size * size * (3 * s * c + (Math.PI - t) * (1 + 2 * c * c)) / Math.PI;
  }
  function sinc(x, z, b) {
    if (x.length > 3) throw new Refusal(`Sinc is positive definite only for d <= 3; X has ${x.length} columns. Use Gaussian, or Sinc on chosen columns.`);
    const r = Math.sqrt(squared(x, z, b));
    return r < 1e-8 ? 1 : Math.sin(r) / r;
  }
  function sines(x, z, period, b) {
    let s = 0;
    for (let j = 0; j < x.length; j++) { const v = Math.sin(Math.PI * (x[j] - z[j]) / at(period, j)) / at(b, j); s += v * v; }
    return s;
  }

  class Refusal extends Error {}
  const FORMULAS = {
    Constant: () => () => 1,
    Linear: () => dot,
    Cosine: () => (x, z) => ratio(dot(x, z), Math.sqrt(dot(x, x)) * Math.sqrt(dot(z, z))),
    Polynomial: k => (x, z) => Math.pow(k.bias + dot(x, z), k.degree),
    AllSubsets: () => (x, z) => x.reduce((p, v, j) => p * (1 + v * z[j]), 1),
    Anova: k => (x, z) => elementary(x, z, k.order),
    ArcCosine: k => (x, z) => arc(k.order, x, z),
    Gaussian: k => (x, z) => Math.exp(-squared(x, z, k.bandwidth) / 2),
    Laplace: k => (x, z) => Math.exp(-Math.pow(k.norm === 1 ? absolute(x, z, k.bandwidth) : Math.sqrt(squared(x, z, k.bandwidth)), k.exponent)),
    Matern: k => (x, z) => matern(k.nu, Math.sqrt(squared(x, z, k.bandwidth))),
    Cauchy: k => (x, z) => 1 / (1 + squared(x, z, k.bandwidth)),
    RationalQuadratic: k => (x, z) => Math.exp(-k.mixture * Math.log1p(squared(x, z, k.bandwidth) / (2 * k.mixture))),
    Sinc: k => (x, z) => sinc(x, z, k.bandwidth),
    Periodic: k => (x, z) => Math.exp(-2 * sines(x, z, k.period, k.bandwidth)),
    Sum: k => (x, z) => k.terms.reduce((s, t) => s + t.of(x, z), 0),
    Product: k => (x, z) => k.terms.reduce((s, t) => s * t.of(x, z), 1),
    Scale: k => (x, z) => k.factor * k.kernel.of(x, z),
    Power: k => (x, z) => Math.pow(k.kernel.of(x, z), k.degree),
    Exp: k => (x, z) => Math.exp(k.kernel.of(x, z)),
    Series: k => (x, z) => { const v = k.kernel.of(x, z); return k.coefficients.reduceRight((high, a) => high * v + a, 0); },
    Normalized: k => (x, z) => ratio(k.kernel.of(x, z), Math.sqrt(k.kernel.of(x, x)) * Math.sqrt(k.kernel.of(z, z))),
    OnColumns: k => { const pick = x => k.columns.map(c => x.at(c)); return (x, z) => k.kernel.of(pick(x), pick(z)); },
  };
  const DEFAULTS = {
    Polynomial: { degree: 3, bias: 1 }, Anova: { order: 2 }, ArcCosine: { order: 1 }, Gaussian: { bandwidth: 1 },
    Laplace: { bandwidth: 1, norm: 2, exponent: 1 }, Matern: { bandwidth: 1, nu: 1.5 }, Cauchy: { bandwidth: 1 },
    RationalQuadratic: { bandwidth: 1, mixture: 1 }, Sinc: { bandwidth: 1 }, Periodic: { bandwidth: 1, period: 1 },
  };
  function make(name, parameters = {}) {
    const k = { name, ...DEFAULTS[name], ...parameters };
    k.of = FORMULAS[name](k);
    return k;
  }
  // refuse what does not fit rows of d columns, with Mercer's sentences
  function fits(k, d) {
    for (const name of ["bandwidth", "period"]) if (Array.isArray(k[name]) && k[name].length !== d) throw new Refusal(`${name} has ${k[name].length} values, but X has ${d} columns; give one number, or one a column.`);
    if (k.name === "Sinc" && d > 3) sinc(new Array(d).fill(0), new Array(d).fill(0), 1);
    const out = k.name === "OnColumns" ? k.columns.find(c => c < -d || c >= d) : undefined;
    if (out !== undefined) throw new Refusal(`column ${out} is out of range; X has ${d} columns.`);
    for (const inner of k.terms ?? (k.kernel ? [k.kernel] : [])) fits(inner, k.name === "OnColumns" ? k.columns.length : d);
    return k;
  }
  const matrix = (k, X, Z = X) => X.map(x => Z.map(z => k.of(x, z)));
  return { make, fits, matrix, Refusal, FORMULAS, DEFAULTS, elementary };
})();
