figure({
  state: d => ({ bandwidth: 0.5, y: d.y.slice() }),
  hint: "Drag points up and down.",
  controls: [logarithmic("bandwidth", "bandwidth", 0.08, 5), button("the best by leave-one-out", (s, d) => { const e = d.scales.map(b => L.mean(F.leftOut(d.x.map(v => [v]), s.y, b).map((f, i) => (f - s.y[i]) ** 2))); s.bandwidth = +d.scales[e.indexOf(Math.min(...e))].toPrecision(4); }), button("points as they were", (s, d) => { s.y = d.y.slice(); })],
  plots: [
    { id: "curve", title: "The weighted mean", alt: "points and the smoothed curve", x: [0, 10], y: [-1.5, 5], xlabel: "x", ylabel: "y", big: true, ratio: 0.6 },
    { id: "error", title: "Mean squared error by bandwidth", alt: "leave-one-out and training error against bandwidth", x: [0.08, 5], y: [0, 1], logx: true, xlabel: "bandwidth", ratio: 0.8 },
  ],
  compute({ bandwidth, y }, { x, scales }) {
    const X = x.map(v => [v]), grid = L.linspace(0, 10, 201), off = fit => L.mean(fit.map((f, i) => (f - y[i]) ** 2));
    return {
      grid, values: F.smooth(X, y, grid.map(v => [v]), bandwidth), error: off(F.leftOut(X, y, bandwidth)),
      errors: scales.map(b => off(F.leftOut(X, y, b))), training: scales.map(b => off(F.smooth(X, y, X, b))),
    };
  },
  draw({ curve, error: plot, say }, { grid, values, error, errors, training }, s, { x, scales }) {
    const z = 5, w = grid.map(v => Math.exp(-((v - z) ** 2) / (2 * s.bandwidth ** 2)));
    curve.band(grid, grid.map(() => -1.5), w.map(v => -1.5 + v), "f-third");
    curve.line(grid, values);
    x.forEach((v, i) => curve.handle(`p${i}`, v, s.y[i], { label: `point ${i + 1}`, look: "f-minus", r: 4.5, move: (_, b) => { s.y[i] = b; } }));
    curve.text(5, -1.5, "the kernel at x = 5", "", "middle", -6);
    plot.begin({ y: [0, Math.max(...errors) * 1.05] });
    plot.line(scales, training, "c-quiet dashed");
    plot.line(scales, errors, "c-accent");
    plot.dot(s.bandwidth, error, "f-accent", 6);
    plot.text(scales[2], errors[2], "left out", "strong", "start", -8);
    plot.text(scales[6], training[6], "with itself", "", "start", 18);
    const best = scales[errors.indexOf(Math.min(...errors))];
    say(`Bandwidth ${short(s.bandwidth)}: leave-one-out error <b>${fixed(error, 4)}</b>; least <b>${fixed(Math.min(...errors), 4)}</b> at ${fixed(best, 3)}.`);
  },
});
