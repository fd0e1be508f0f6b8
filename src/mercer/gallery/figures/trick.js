// exponents a with sum <= p over d columns, and the weight sqrt(p! / ((p - |a|)! prod a_j!))
function monomials(d, p) {
  const found = [], fact = n => n < 2 ? 1 : n * fact(n - 1);
  (function grow(a, left) {
    if (a.length === d) { found.push({ a, weight: Math.sqrt(fact(p) / (fact(left) * a.reduce((s, v) => s * fact(v), 1))) }); return; }
    for (let v = 0; v <= left; v++) grow([...a, v], left - v);
  })([], p);
  return found;
}
figure({
  state: d => ({ degree: 3, d: 20, weighted: true, x: d.x.slice(), z: d.z.slice() }),
  hint: "Drag the bars of x and z.",
  controls: [
    slider("degree", "degree p", 1, 6, 1), logarithmic("d", "columns d, for the count", 2, 1000, { whole: true }),
    toggle("weighted", "weights of the kernel"), button("x and z as they were", (s, d) => { s.x = d.x.slice(); s.z = d.z.slice(); }),
  ],
  plots: [
    { id: "pair", title: "Two points with four columns", alt: "the entries of x and of z, to drag", x: [0.5, 4.5], y: [-1.5, 1.5], xticks: [1, 2, 3, 4], ratio: 0.6 },
    { id: "terms", title: "Products of features, running total", alt: "running sum of the products of features towards the kernel", x: [0, 10], y: [0, 1], xlabel: "features added", ratio: 0.6 },
    { id: "cost", title: "Multiplications for one value", alt: "number of operations by degree, features against kernel", x: [1, 6], y: [1, 1e16], logy: true, xlabel: "degree", xticks: [1, 2, 3, 4, 5, 6], ratio: 0.6 },
  ],
  compute({ degree, d, weighted, x, z }) {
    const feature = (v, m) => m.a.reduce((s, e, j) => s * v[j] ** e, weighted ? m.weight : 1);
    const shares = monomials(4, degree).map(m => feature(x, m) * feature(z, m));
    let total = 0;
    return { running: shares.map(v => (total += v)), features: L.sum(shares), kernel: K.make("Polynomial", { degree }).of(x, z), D: L.binomial(d + degree, degree), by: d + degree };
  },
  draw({ pair, terms, cost, say }, { running, features, kernel, D, by }, s) {
    pair.segment(0.5, 0, 4.5, 0, "c-quiet thin");
    for (const [name, at, look] of [["x", -0.17, "plus"], ["z", 0.17, "minus"]]) s[name].forEach((v, j) => {
      pair.bar(j + 1 + at - 0.13, j + 1 + at + 0.13, v, `f-${look} faint`);
      pair.handle(`${name}${j}`, j + 1 + at, v, { label: `${name}, column ${j + 1}`, look: `f-${look}`, r: 5, square: name === "z", move: (_, y) => { s[name][j] = y; } });
    });
    const all = [0, kernel, ...running], low = Math.min(...all), high = Math.max(...all), pad = (high - low) * 0.1 || 1;
    terms.begin({ x: [0, running.length], y: [low - pad, high + 4 * pad] });
    terms.segment(0, kernel, running.length, kernel, "c-minus dashed");
    terms.line(running.map((_, i) => i + 1), running, "c-plus");
    terms.legend([["features so far", "c-plus"], ["(1 + x'z)^p", "c-minus dashed"]], "left", false);
    const degrees = [1, 2, 3, 4, 5, 6];
    cost.line(degrees, degrees.map(p => L.binomial(s.d + p, p)), "c-plus");
    cost.line(degrees, degrees.map(p => s.d + p), "c-minus");
    cost.dot(s.degree, D, "f-plus", 5);
    cost.dot(s.degree, by, "f-minus", 5, true);
    cost.text(5.9, L.binomial(s.d + 6, 6), "features", "strong", "end", -8);
    cost.text(5.9, s.d + 6, "kernel", "strong", "end", -8);
    say(`Features: <b>${fixed(features, 9)}</b>. Kernel: <b>${fixed(kernel, 9)}</b>.${s.weighted ? "" : " Without the weights the sum is that of another kernel."} At d = ${s.d}: ${D.toLocaleString("en")} features against ${by.toLocaleString("en")} multiplications.`);
  },
});
