// Kernel expressions as Python would read them, with the refusals of mercer.kernels word for word.
// A number is {value, whole}, since 2 and 2.0 print differently; a kernel is what K.make gives.
"use strict";
const P = (() => {
  const refuse = text => { throw new K.Refusal(text); };
  const SIGNS = {
    Constant: [], Linear: [], Cosine: [], AllSubsets: [], Polynomial: ["degree", "bias"], Anova: ["order"], ArcCosine: ["order"],
    Gaussian: ["bandwidth"], Laplace: ["bandwidth", "norm", "exponent"], Matern: ["bandwidth", "nu"], Cauchy: ["bandwidth"],
    RationalQuadratic: ["bandwidth", "mixture"], Sinc: ["bandwidth"], Periodic: ["bandwidth", "period"],
  };
  const NAMES = [...Object.keys(SIGNS), "exp"];

  // numbers as Python prints them
  function shown(v) {
    if (v === undefined) return "None";
    if (Array.isArray(v)) return v.length === 1 ? `(${shown(v[0])},)` : `(${v.map(shown).join(", ")})`;
    if (v.name) return kernel(v);
    return v.whole ? String(v.value) : float(v.value);
  }
  function float(v) {
    if (!Number.isFinite(v)) return Number.isNaN(v) ? "nan" : v > 0 ? "inf" : "-inf";
    const size = Math.abs(v);
    if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
      const [digits, power] = v.toExponential().split("e"), n = Math.abs(+power);
      return `${digits}e${+power < 0 ? "-" : "+"}${n < 10 ? "0" : ""}${n}`;
    }
    return Number.isInteger(v) ? `${v}.0` : String(v);
  }
  // the expression of a kernel, as repr(k) prints it
  const BINDS = { Sum: 1, Product: 2, Scale: 2, Power: 4 };
  const inside = (k, level) => (BINDS[k.name] ?? 9) >= level ? kernel(k) : `(${kernel(k)})`;
  const list = (v, print) => Array.isArray(v) ? (v.length === 1 ? `(${print(v[0])},)` : `(${v.map(print).join(", ")})`) : print(v);
  const WHOLE = new Set(["degree", "order", "norm"]);
  function kernel(k) {
    switch (k.name) {
      case "Sum": return k.terms.map(t => inside(t, 1)).join(" + ");
      case "Product": return [k.terms[0].name === "Scale" ? kernel(k.terms[0]) : inside(k.terms[0], 3), ...k.terms.slice(1).map(t => inside(t, 3))].join(" * ");
      case "Scale": return `${float(k.factor)} * ${inside(k.kernel, 3)}`;
      case "Power": return `${inside(k.kernel, 5)} ** ${k.degree}`;
      case "Exp": return `exp(${kernel(k.kernel)})`;
      case "Series": return `${inside(k.kernel, 5)}.compose([${k.coefficients.map(float).join(", ")}])`;
      case "Normalized": return `${inside(k.kernel, 5)}.normalized()`;
      case "OnColumns": return `${inside(k.kernel, 5)}.on_columns([${k.columns.join(", ")}])`;
    }
    const given = SIGNS[k.name].filter(p => k[p] !== K.DEFAULTS[k.name][p]);
    return `${k.name}(${given.map(p => `${p}=${list(k[p], WHOLE.has(p) ? String : float)}`).join(", ")})`;
  }

  // the checks of mercer.kernels
  function positive(v, name, zero = false) {
    const good = v && v.value !== undefined && Number.isFinite(v.value) && (v.value > 0 || (zero && v.value === 0));
    return good ? v.value : refuse(`${name} must be a number ${zero ? ">= 0" : "> 0"}, got ${shown(v).slice(0, 60)}.`);
  }
  function positives(v, name) {
    if (!Array.isArray(v)) return positive(v, name);
    return v.length ? v.map(one => positive(one, name)) : refuse(`${name} is empty; give one number, or one a column.`);
  }
  function whole(v, name, least = 0) {
    const good = v && v.value !== undefined && v.value >= least && v.value % 1 === 0;
    return good ? v.value : refuse(`${name} must be an integer >= ${least}, got ${shown(v)}.`);
  }
  const real = v => v && v.whole ? { value: v.value, whole: false } : v;
  function among(v, options, sentence) { return v && options.includes(v.value) ? v.value : refuse(`${sentence}, got ${shown(v)}.`); }
  const CHECKS = {
    degree: v => whole(v, "degree"), bias: v => positive(real(v), "bias", true), mixture: v => positive(real(v), "mixture"),
    bandwidth: v => positives(v, "bandwidth"), period: v => positives(v, "period"),
    norm: v => among(v, [1, 2], "norm must be 1 or 2"), exponent: v => positive(real(v), "exponent"),
    nu: v => v && v.value > 0 ? v.value : refuse(`nu must be a number > 0 (or inf, the Gaussian), got ${shown(real(v))}.`),
  };
  function leaf(name, positional, named) {
    const signs = SIGNS[name], given = {};
    if (positional.length > signs.length) {
      const takes = signs.length ? `from 1 to ${signs.length + 1} positional arguments` : "1 positional argument";
      refuse(`${name}.__init__() takes ${takes} but ${positional.length + 1} were given`);
    }
    positional.forEach((v, i) => { given[signs[i]] = v; });
    for (const key of Object.keys(named)) {
      if (!signs.includes(key)) refuse(`${name}.__init__() got an unexpected keyword argument '${key}'`);
      if (key in given) refuse(`${name}.__init__() got multiple values for argument '${key}'`);
      given[key] = named[key];
    }
    const found = {};
    for (const key of signs.filter(s => s in given)) found[key] = key === "order" ? order(name, given[key]) : CHECKS[key](given[key]);
    const most = found.norm ?? 2;
    if (found.exponent > most) refuse(`exponent must be at most the norm, ${most}, as exp(-r^q) is no kernel beyond; got ${float(found.exponent)}.`);
    return K.make(name, found);
  }
  const order = (name, v) => name === "Anova" ? whole(v, "order", 1) : among(v, [0, 1, 2], "order must be 0, 1 or 2");

  // the algebra
  const isKernel = v => v && v.name !== undefined, isNumber = v => v && v.value !== undefined;
  const number = (value, isWhole) => ({ value, whole: isWhole && Number.isInteger(value) });
  const kind = v => isKernel(v) ? v.name : Array.isArray(v) ? "tuple" : v.whole ? "int" : "float";
  const scale = (v, k) => K.make("Scale", { factor: positive({ value: v.value, whole: false }, "the scale of a kernel", true), kernel: k });
  const literal = v => isKernel(v) ? v : K.make("Scale", { factor: positive(real(v), "the scale of a kernel", true), kernel: K.make("Constant") });
  const flat = (terms, node) => K.make(node, { terms: terms.flatMap(t => t.name === node ? t.terms : [t]) });
  const unsupported = (op, a, b) => refuse(`unsupported operand type(s) for ${op}: '${kind(a)}' and '${kind(b)}'`);
  function add(a, b) {
    if (isNumber(a) && isNumber(b)) return number(a.value + b.value, a.whole && b.whole);
    if (Array.isArray(a) || Array.isArray(b)) unsupported("+", a, b);
    if (isNumber(a) && a.value === 0) return b;
    return flat([literal(a), literal(b)], "Sum");
  }
  function subtract(a, b) {
    if (isKernel(a) || isKernel(b)) refuse("kernels cannot be subtracted: the difference need not be positive semidefinite; use sums and products.");
    return isNumber(a) && isNumber(b) ? number(a.value - b.value, a.whole && b.whole) : unsupported("-", a, b);
  }
  function multiply(a, b) {
    if (isNumber(a) && isNumber(b)) return number(a.value * b.value, a.whole && b.whole);
    if (isKernel(a) && isKernel(b)) return flat([a, b], "Product");
    if (isKernel(a) && isNumber(b)) return scale(b, a);
    return isNumber(a) && isKernel(b) ? scale(a, b) : unsupported("*", a, b);
  }
  function divide(a, b) {
    if (isNumber(b) && b.value === 0 && (isNumber(a) || isKernel(a))) refuse("division by zero");
    if (isNumber(a) && isNumber(b)) return number(a.value / b.value, false);
    return isKernel(a) && isNumber(b) ? scale({ value: 1 / b.value, whole: false }, a) : unsupported("/", a, b);
  }
  function power(a, b) {
    if (isKernel(a)) return K.make("Power", { kernel: a, degree: whole(b, "the power of a kernel (others need not be positive semidefinite)") });
    return isNumber(a) && isNumber(b) ? number(Math.pow(a.value, b.value), a.whole && b.whole && b.value >= 0) : unsupported("** or pow()", a, b);
  }
  function negate(a) {
    if (isKernel(a)) refuse("a kernel cannot be negated, as -k is not positive semidefinite; use a scale >= 0.");
    return isNumber(a) ? number(-a.value, a.whole) : refuse(`bad operand type for unary -: '${kind(a)}'`);
  }
  const plus = a => isNumber(a) ? a : refuse(`bad operand type for unary +: '${kind(a)}'`);
  const METHODS = {
    normalized: k => K.make("Normalized", { kernel: k }),
    compose: (k, v) => {
      if (!Array.isArray(v) || !v.length) refuse(`compose takes one or more coefficients, got ${shown(v)}.`);
      return K.make("Series", { kernel: k, coefficients: v.map(a => positive(a, "a coefficient of compose", true)) });
    },
    on_columns: (k, v) => {
      const columns = isNumber(v) ? [v] : v;
      if (!Array.isArray(columns) || !columns.length || !columns.every(c => c.whole)) refuse(`on_columns takes positions or names, got ${shown(v)}.`);
      return K.make("OnColumns", { kernel: k, columns: columns.map(c => c.value) });
    },
  };

  // the grammar of Python's expressions, as much of it as kernels need
  function parse(text) {
    const tokens = [];
    const sign = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/()[\],.=])|$)/y;
    while (sign.lastIndex < text.length) {
      const from = sign.lastIndex, found = sign.exec(text);
      if (!found) refuse(`'${text.slice(from).trim()[0]}' is not part of a kernel expression.`);
      if (found[1] || found[2] || found[3]) tokens.push({ number: found[1], word: found[2], sign: found[3] });
    }
    let i = 0;
    const next = s => tokens[i] && tokens[i].sign === s;
    const take = s => next(s) ? (i++, true) : false;
    const need = s => take(s) || refuse(`'${s}' is missing ${tokens[i] ? `before '${Object.values(tokens[i]).find(Boolean)}'` : "at the end"}.`);
    function sums() {
      let a = products();
      for (;;) { if (take("+")) a = add(a, products()); else if (take("-")) a = subtract(a, products()); else return a; }
    }
    function products() {
      let a = unary();
      for (;;) { if (take("*")) a = multiply(a, unary()); else if (take("/")) a = divide(a, unary()); else return a; }
    }
    const unary = () => take("-") ? negate(unary()) : take("+") ? plus(unary()) : powers();
    function powers() { const a = methods(); return take("**") ? power(a, unary()) : a; }
    function methods() {
      let a = atom();
      while (take(".")) {
        const word = tokens[i++]?.word ?? refuse("a name is missing after '.'.");
        if (!isKernel(a) || !METHODS[word]) refuse(`'${isKernel(a) ? a.name : kind(a)}' has no '${word}' here; kernels have ${Object.keys(METHODS).join(", ")}.`);
        need("(");
        const { positional } = inputs();
        a = METHODS[word](a, ...positional);
      }
      return a;
    }
    function atom() {
      const t = tokens[i++];
      if (!t) refuse("the expression ends too early.");
      if (t.number) return { value: Number(t.number), whole: /^\d+$/.test(t.number) };
      if (t.word === "inf") return { value: Infinity, whole: false };
      if (t.word) return called(t.word);
      if (t.sign === "[") return items("]");
      if (t.sign !== "(") refuse(`'${t.sign}' is not expected here.`);
      if (next(")")) { i++; return []; }
      const first = sums();
      if (take(")")) return first;
      need(",");
      return [first, ...items(")")];
    }
    function items(end) {
      const found = [];
      while (!take(end)) { found.push(sums()); if (!next(end)) need(","); }
      return found;
    }
    function inputs() {
      const positional = [], named = {};
      while (!take(")")) {
        if (tokens[i]?.word && tokens[i + 1]?.sign === "=") { const name = tokens[i].word; i += 2; named[name] = sums(); } else positional.push(sums());
        if (!next(")")) need(",");
      }
      return { positional, named };
    }
    function called(word) {
      if (!NAMES.includes(word)) refuse(`name '${word}' is not defined; here are ${NAMES.join(", ")}.`);
      if (!next("(")) refuse(`${word} is a name; write ${word}() for a kernel.`);
      i++;
      const { positional, named } = inputs();
      if (word !== "exp") return leaf(word, positional, named);
      return isKernel(positional[0]) ? K.make("Exp", { kernel: positional[0] }) : refuse(`exp takes a kernel, got ${shown(positional[0])}.`);
    }
    const value = sums();
    if (i < tokens.length) refuse(`'${Object.values(tokens[i]).find(Boolean)}' is not expected here.`);
    return isKernel(value) ? value : refuse(`a kernel is needed, got ${shown(value)}.`);
  }

  // One random feature of any expression: a function f with E f(x) f(z) = k(x, z); one rule a kernel.
  const product = fs => x => fs.reduce((p, f) => p * f(x), 1);
  const copies = (k, n, d, rng) => product(Array.from({ length: n }, () => feature(k, d, rng)));
  const gaussian = (d, rng) => Array.from({ length: d }, rng.normal);
  const row = (k, d, w) => Array.isArray(k.bandwidth) ? w.map((v, j) => v / k.bandwidth[j]) : w.map(v => v / k.bandwidth);
  function gammaDraw(shape, rng) { // Marsaglia and Tsang
    if (shape < 1) return gammaDraw(shape + 1, rng) * Math.pow(1 - rng.uniform(), 1 / shape);
    const a = shape - 1 / 3, c = 1 / Math.sqrt(9 * a);
    for (;;) {
      const x = rng.normal(), v = Math.pow(1 + c * x, 3);
      if (v > 0 && Math.log(1 - rng.uniform()) < x * x / 2 + a - a * v + a * Math.log(v)) return a * v;
    }
  }
  const FREQUENCIES = {
    Gaussian: (k, d, rng) => gaussian(d, rng),
    Laplace: (k, d, rng) => k.exponent !== 1 ? null : k.norm === 1 ? Array.from({ length: d }, () => Math.tan(Math.PI * (rng.uniform() - 0.5)))
      : over(gaussian(d, rng), Math.abs(rng.normal())),
    Matern: (k, d, rng) => k.nu > 1e7 ? gaussian(d, rng) : over(gaussian(d, rng), Math.sqrt(gammaDraw(k.nu, rng) / k.nu)),
    Cauchy: (k, d, rng) => over(gaussian(d, rng), 1 / Math.sqrt(2 * gammaDraw(1, rng))),
    RationalQuadratic: (k, d, rng) => over(gaussian(d, rng), 1 / Math.sqrt(gammaDraw(k.mixture, rng) / k.mixture)),
    Sinc: (k, d, rng) => { const g = gaussian(3, rng); return over(g, Math.hypot(...g)).slice(0, d); },
  };
  const over = (v, s) => v.map(x => x / s);
  // without random features of its own: exp of an exponent other than 1, and the period's discrete law
  function wave(k, d, rng) {
    const w = FREQUENCIES[k.name](k, d, rng);
    if (!w) return null;
    const scaled = row(k, d, w), shift = 2 * Math.PI * rng.uniform();
    return x => Math.SQRT2 * Math.cos(L.dot(scaled, x) + shift);
  }
  // exp(-2 sin^2(pi t / p) / b^2) = sum over n of I_n(1/b^2) exp(-1/b^2) cos(2 pi n t / p): n by inversion
  const laws = new Map();
  function harmonic(b, rng) {
    if (!laws.has(b)) laws.set(b, Array.from({ length: 200 }, (_, n) => (n ? 2 : 1) * bessel(n, 1 / (b * b))));
    let u = rng.uniform(), n = 0;
    for (const p of laws.get(b)) { u -= p; if (u < 0) break; n++; }
    return n;
  }
  function bessel(n, c) { // I_n(c) exp(-c), by its integral
    const m = 400;
    let s = 0;
    for (let i = 0; i < m; i++) { const t = Math.PI * (i + 0.5) / m; s += Math.exp(c * (Math.cos(t) - 1)) * Math.cos(n * t); }
    return s / m;
  }
  const entry = (v, j) => Array.isArray(v) ? v[j] : v;
  function feature(k, d, rng) {
    if (FREQUENCIES[k.name]) return wave(k, d, rng) ?? refuse(`${kernel(k)} has no random features here; use exponent 1.`);
    const inner = () => feature(k.kernel, d, rng), g = () => gaussian(d, rng), signs = () => Array.from({ length: d }, rng.sign);
    switch (k.name) {
      case "Constant": { const s = rng.sign(); return () => s; }
      case "Linear": { const w = g(); return x => L.dot(w, x); }
      case "Cosine": { const w = g(); return x => { const n = Math.hypot(...x); return n ? L.dot(w, x) / n : 0; }; }
      case "Polynomial": return product(Array.from({ length: k.degree }, () => { const w = g(), s = Math.sqrt(k.bias) * rng.sign(); return x => s + L.dot(w, x); }));
      case "AllSubsets": { const s = signs(), t = signs(); return x => x.reduce((p, v, j) => p * (s[j] + t[j] * v), 1); }
      case "Anova": { const s = signs(); return x => K.elementary(x.map((v, j) => v * s[j]), x.map(() => 1), k.order); }
      case "ArcCosine": { const w = g(); return x => { const v = L.dot(w, x); return v > 0 ? Math.SQRT2 * Math.pow(v, k.order) : 0; }; }
      case "Periodic": return product(Array.from({ length: d }, (_, j) => {
        const w = 2 * Math.PI * harmonic(entry(k.bandwidth, j), rng) / entry(k.period, j), shift = 2 * Math.PI * rng.uniform();
        return x => Math.SQRT2 * Math.cos(w * x[j] + shift);
      }));
      case "Sum": { const parts = k.terms.map(t => [rng.sign(), feature(t, d, rng)]); return x => parts.reduce((s, [c, f]) => s + c * f(x), 0); }
      case "Product": return product(k.terms.map(t => feature(t, d, rng)));
      case "Scale": { const f = inner(), c = Math.sqrt(k.factor); return x => c * f(x); }
      case "Power": return copies(k.kernel, k.degree, d, rng);
      case "Exp": { // n with probability 2^-(n+1)
        let n = 0, weight = 2;
        while (rng.uniform() < 0.5) { n++; weight *= 2 / n; }
        const f = copies(k.kernel, n, d, rng), s = rng.sign() * Math.sqrt(weight);
        return x => s * f(x);
      }
      case "Series": {
        const n = Math.floor(rng.uniform() * k.coefficients.length), f = copies(k.kernel, n, d, rng);
        const s = rng.sign() * Math.sqrt(k.coefficients.length * k.coefficients[n]);
        return x => s * f(x);
      }
      case "Normalized": { const f = inner(); return x => { const n = k.kernel.of(x, x); return n > 0 ? f(x) / Math.sqrt(n) : 0; }; }
      case "OnColumns": { const f = feature(k.kernel, k.columns.length, rng); return x => f(k.columns.map(c => x.at(c))); }
    }
    return refuse(`${kernel(k)} has no random features here.`);
  }
  // the columns of D random features at rows X, D long
  function features(k, X, D, seed) {
    const rng = L.random(seed), d = X[0].length;
    return Array.from({ length: D }, () => { const f = feature(k, d, rng); return X.map(f); });
  }
  return { parse, shown: kernel, feature, features, NAMES };
})();
