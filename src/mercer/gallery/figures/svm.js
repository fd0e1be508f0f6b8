figure({
  state: d => ({ C: 1, bandwidth: 0.7, bias: true, X: d.X.map(r => r.slice()) }),
  hint: "Drag points in any of the three plots. Ringed points are support vectors; dashed lines are the margin.",
  controls: [logarithmic("C", "C, the price of an error", 0.01, 1000), logarithmic("bandwidth", "bandwidth of the Gaussian", 0.15, 4), toggle("bias", "a bias"), button("points as they were", (s, d) => { s.X = d.X.map(r => r.slice()); })],
  plots: [["linear", "Linear"], ["cubic", "Cubic, (1 + x'z)³"], ["gaussian", "Gaussian"]].map(([id, title]) => ({ id, title, alt: `points and boundary of the machine with the ${id} kernel`, x: [-2.6, 2.6], y: [-2.6, 2.6], square: true })),
  compute({ C, bandwidth, bias, X, at }, { y }) {
    const kernels = { linear: K.make("Linear"), cubic: K.make("Polynomial"), gaussian: K.make("Gaussian", { bandwidth }) };
    return Object.fromEntries(Object.entries(kernels).map(([name, k]) => {
      const m = F.svm(K.matrix(k, X), y, C, bias, 1e-7), value = x => X.reduce((s, z, i) => m.coef[i] ? s + m.coef[i] * k.of(x, z) : s, m.b);
      return [name, { ...m, value, at: at && at.map(value), fitted: X.map(value) }];
    }));
  },
  draw(view, result, s, { y }) {
    const words = [];
    for (const [name, m] of Object.entries(result)) {
      const plot = view[name], rows = plot.grid(44).map(line => line.map(m.value));
      plot.heat(rows.map(r => r.map(v => v / 2)), diverging());
      plot.contour(rows, 0, "c-ink");
      for (const level of [-1, 1]) plot.contour(rows, level, "c-ink thin dashed");
      s.X.forEach(([a, b], i) => {
        if (m.a[i] > 1e-7 * s.C) plot.ring(a, b, 7.5);
        plot.handle(`p${i}`, a, b, { label: `point ${i + 1}`, look: y[i] > 0 ? "f-plus" : "f-minus", square: y[i] < 0, r: 4, move: (p, q) => { s.X[i] = [p, q]; } });
      });
      words.push(`${name}: <b>${m.a.filter(v => v > 1e-7 * s.C).length}</b> support vectors, ${m.fitted.filter((f, i) => f * y[i] > 0).length} of 40 right`);
    }
    view.say(`${words.join("; ")}.`);
  },
});
