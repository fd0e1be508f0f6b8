const LEAVES = {
  Gaussian: s => K.make("Gaussian", { bandwidth: s }), Laplace: s => K.make("Laplace", { bandwidth: s }), Matern: s => K.make("Matern", { bandwidth: s }),
  Periodic: s => K.make("Periodic", { bandwidth: s, period: 1.5 }), Linear: () => K.make("Linear"), Polynomial: () => K.make("Polynomial", { degree: 2 }),
  Cauchy: s => K.make("Cauchy", { bandwidth: s }), Constant: () => K.make("Constant"), Sinc: s => K.make("Sinc", { bandwidth: s / 3 }),
};
const two = (name, f) => ({ name, of: f });
const WAYS = {
  product: ["k1 · k2", (a, b) => K.make("Product", { terms: [a, b] })], sum: ["k1 + k2", (a, b) => K.make("Sum", { terms: [a, b] })],
  first: ["k1 alone", a => a], square: ["k1²", a => K.make("Power", { kernel: a, degree: 2 })], exp: ["exp(k1)", a => K.make("Exp", { kernel: a })],
  normalized: ["k1 + k2, normalised", (a, b) => K.make("Normalized", { kernel: K.make("Sum", { terms: [a, b] }) })],
  difference: ["k1 − 0.9 k2: no kernel", (a, b) => two("difference", (x, z) => a.of(x, z) - 0.9 * b.of(x, z))],
  root: ["√(1 + x²z²): no kernel", () => two("root", (x, z) => Math.sqrt(1 + x[0] * x[0] * z[0] * z[0]))],
};
figure({
  state: { first: "Gaussian", second: "Periodic", way: "product", s1: 1, s2: 1 },
  controls: [
    choice("first", "k1", Object.keys(LEAVES)), choice("way", "put together", Object.entries(WAYS).map(([k, v]) => [k, v[0]])), choice("second", "k2", Object.keys(LEAVES), { when: s => !["first", "square", "exp", "root"].includes(s.way) }),
    logarithmic("s1", "bandwidth of k1", 0.15, 6, { when: s => s.way !== "root" && !["Linear", "Polynomial", "Constant"].includes(s.first) }), logarithmic("s2", "bandwidth of k2", 0.15, 6, { when: s => !["first", "square", "exp", "root"].includes(s.way) && !["Linear", "Polynomial", "Constant"].includes(s.second) }),
  ],
  plots: [
    { id: "gram", title: "The Gram matrix of 48 points", alt: "heat map of the Gram matrix", x: [-3, 3], y: [-3, 3], square: true },
    { id: "spectrum", title: "Its eigenvalues", alt: "eigenvalues, largest first, on a logarithmic scale", x: [0, 49], y: [1e-12, 100], logy: true, ratio: 0.9 },
    { id: "draws", title: "Three functions from it", alt: "three random functions with this covariance", x: [-3, 3], y: [-3, 3], ratio: 0.9 },
  ],
  compute({ first, second, way, s1, s2 }, { x, normals }) {
    const k = WAYS[way][1](LEAVES[first](s1), LEAVES[second](s2)), G = K.matrix(k, x.map(v => [v])), { values, vectors } = L.eigen(G);
    const C = L.cholesky(L.ridged(G, 1e-6));
    return { G, values, worst: vectors.at(-1), draws: C && [0, 1, 2].map(j => L.apply(C, normals.map(r => r[j]))), name: k.name, k };
  },
  draw({ gram, spectrum, draws: plot, say }, { G, values, worst, draws, k }, s, { x }) {
    const size = Math.max(...G.flat().map(Math.abs));
    gram.heat(G.map(r => r.map(v => v / size)), diverging(), true);
    const top = Math.max(...values.map(Math.abs)) * 2;
    spectrum.begin({ y: [top * 1e-13, top] });
    values.forEach((v, i) => spectrum.dot(i + 1, Math.max(Math.abs(v), top * 1e-13), v < -1e-10 * top ? "f-minus" : "f-accent", 3.2, v < 0));
    const bad = values.at(-1) < -1e-9 * top;
    if (draws) {
      const high = 1.1 * Math.max(...draws.flat().map(Math.abs));
      plot.begin({ y: [-high, high] });
      draws.forEach((f, i) => plot.line(x, f, ["c-plus", "c-minus", "c-third"][i]));
    } else {
      plot.begin({ y: [-1, 1] });
      plot.line(x, worst, "c-wary");
      plot.text(0, 0.9, "weights q with q'Kq < 0", "strong");
    }
    const words = `Smallest eigenvalue <b>${fixed(values.at(-1), 6)}</b>, largest ${fixed(values[0], 2)}; ${values.filter(v => v > 1e-9 * values[0]).length} of 48 above 10⁻⁹ of it.`;
    const refusal = s.way === "difference" ? "Mercer: <i>kernels cannot be subtracted: the difference need not be positive semidefinite; use sums and products.</i>" : s.way === "root" ? "Mercer: <i>the power of a kernel (others need not be positive semidefinite) must be an integer >= 0, got 0.5.</i>" : "";
    say(bad ? `${refusal} ${words} The 48 points and the weights on the right give q'Kq = ${fixed(values.at(-1), 4)}: a counter-example.` : `${refusal || `k = <b>${P.shown(k)}</b>.`} ${words}`);
  },
});
