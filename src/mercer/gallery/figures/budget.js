figure({
  state: { steps: 300, budget: 12, policy: "projectron", bandwidth: 0.6 },
  controls: [
    slider("steps", "rows seen", 1, 600, 1), choice("policy", "beyond the budget", [["projectron", "project"], ["oldest", "drop the oldest"], ["none", "no budget"]]),
    slider("budget", "budget", 2, 80, 1, { when: s => s.policy !== "none" }), logarithmic("bandwidth", "bandwidth", 0.15, 3),
  ],
  plots: [
    { id: "plane", title: "Where it says which class", alt: "a double spiral and the regions of the kernel perceptron", x: [-3.2, 3.2], y: [-3.2, 3.2], square: true, big: true },
    { id: "curve", title: "Mistakes and points kept", alt: "mistakes and number of points against rows seen", x: [0, 600], y: [0, 150], xlabel: "rows seen", ratio: 0.8 },
  ],
  compute({ steps, budget, policy, bandwidth }, { X, y }) {
    const k = K.make("Gaussian", { bandwidth }), m = F.budgeted(k, X, y, steps, budget, policy);
    const value = x => m.points.reduce((s, p, i) => s + m.weights[i] * k.of(x, p), 0);
    return { ...m, value, fitted: X.map(value) };
  },
  draw({ plane, curve: plot, say }, { points, weights, mistakes, curve, value, fitted }, s, { X, y }) {
    const rows = plane.grid(52).map(line => line.map(value));
    plane.heat(rows.map(r => r.map(v => v * 1.5)), diverging());
    plane.contour(rows, 0, "c-ink thin");
    X.slice(0, s.steps).forEach(([a, b], i) => plane.dot(a, b, y[i] > 0 ? "f-plus" : "f-minus", 2.6, y[i] < 0));
    points.forEach(([a, b], i) => plane.ring(a, b, 3.5 + 2.5 * Math.min(1.5, Math.abs(weights[i]))));
    plot.begin({ y: [0, Math.max(20, curve.at(-1).mistakes * 1.3)] });
    plot.line(curve.map((_, i) => i + 1), curve.map(c => c.mistakes), "c-minus");
    plot.line(curve.map((_, i) => i + 1), curve.map(c => c.size), "c-plus dashed");
    plot.legend([["mistakes", "c-minus"], ["points kept", "c-plus"]]);
    const right = fitted.filter((f, i) => f * y[i] > 0).length;
    say(`<b>${mistakes}</b> mistakes in ${s.steps} rows, <b>${points.length}</b> points kept; <b>${(100 * right / X.length).toFixed(0)} %</b> of all 300 rows on their side now.`);
  },
});
