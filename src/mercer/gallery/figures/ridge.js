figure({
  state: d => ({ degree: 6, alpha: 0.01, y: d.y.slice() }),
  hint: "Drag points up and down.",
  controls: [slider("degree", "degree", 1, 24, 1), logarithmic("alpha", "penalty α", 1e-5, 10), button("points as they were", (s, d) => { s.y = d.y.slice(); })],
  plots: [
    { id: "curve", title: "Both solutions", alt: "points and the two fitted curves", x: [-1.1, 1.1], y: [-2, 2], xlabel: "x", ylabel: "y", big: true, ratio: 0.62 },
    { id: "weights", title: "Weights of the features: primal (bars), dual (dots)", alt: "weights of the features from both forms", x: [-0.6, 6.6], y: [-2, 2], ratio: 0.85, xlabel: "power of x" },
  ],
  compute({ degree, alpha, y }, { x }) {
    const k = K.make("Polynomial", { degree }), scale = Array.from({ length: degree + 1 }, (_, j) => Math.sqrt(L.binomial(degree, j)));
    const features = v => scale.map((c, j) => c * v ** j), A = x.map(features);
    const primal = F.ridge(A, y, alpha).w, v = F.dual(K.matrix(k, x.map(t => [t])), y, alpha), dual = L.apply(L.transpose(A), v), grid = L.linspace(-1.1, 1.1, 111);
    const one = grid.map(t => L.dot(primal, features(t))), other = grid.map(t => x.reduce((s, z, i) => s + v[i] * k.of([t], [z]), 0));
    return { primal, dual, v, grid, one, other, difference: Math.max(...one.map((a, i) => Math.abs(a - other[i]))) };
  },
  draw({ curve, weights, say }, { primal, dual, grid, one, other, difference }, s, { x }) {
    curve.line(grid, one, "c-plus thick");
    curve.line(grid, other, "c-minus dashed");
    curve.legend([["primal", "c-plus thick"], ["dual", "c-minus dashed"]]);
    x.forEach((v, i) => curve.handle(`p${i}`, v, s.y[i], { label: `point ${i + 1}`, look: "f-ink", r: 4.5, move: (_, b) => { s.y[i] = b; } }));
    const top = 1.15 * Math.max(...primal.map(Math.abs), 1e-9);
    weights.begin({ x: [-0.6, s.degree + 0.6], y: [-top, top] });
    weights.segment(-0.6, 0, s.degree + 0.6, 0, "c-quiet thin");
    primal.forEach((w, j) => { weights.bar(j - 0.35, j + 0.35, w, "f-plus faint"); weights.dot(j, dual[j], "f-minus", 4); });
    say(`Primal: <b>${primal.length}</b> equations for the features; dual: <b>${x.length}</b> for the points. The curves differ by at most <b>${difference.toExponential(1)}</b>; the longest weight is ${fixed(top / 1.15, 2)}.`);
  },
});
