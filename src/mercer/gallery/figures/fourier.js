const known = new Map(); // errors over all pairs change with the slip alone
figure({
  state: { size: 3, angle: 0, slip: "none" },
  controls: [
    slider("size", "features D", 0, 7, 1, { show: v => String(8 * 2 ** v) }), slider("angle", "direction of x − z", 0, 180, 5, { show: v => `${v}°` }),
    choice("slip", "as in the notes", [["none", "no: as it should be"], ["half", "cos/√D without √2: K/2"], ["wide", "w ~ N(0, 1/s²) for exp(−r²/s²)"]]),
  ],
  plots: [
    { id: "curve", title: "The kernel and its estimates", alt: "kernel value against distance, exact and estimated", x: [0, 6], y: [-0.4, 1.2], xlabel: "distance r", big: true, ratio: 0.62 },
    { id: "error", title: "Error over 780 pairs by D", alt: "root mean squared and largest error against the number of features", x: [8, 1024], y: [0.001, 5], logx: true, logy: true, xlabel: "features D", ratio: 0.85 },
  ],
  compute({ size, angle, slip }, { X, maps }) {
    const way = [Math.cos(angle * Math.PI / 180), Math.sin(angle * Math.PI / 180), 0], r = L.linspace(0, 6, 121);
    const cosines = (W, delta) => W.reduce((s, w) => s + Math.cos(L.dot(w, delta)), 0) / W.length * (slip === "half" ? 0.5 : 1);
    const off = W => {
      let worst = 0, total = 0, n = 0;
      for (let i = 0; i < X.length; i++) for (let j = 0; j < i; j++) {
        const delta = X[i].map((v, c) => v - X[j][c]), e = cosines(W, delta) - kernel(L.dot(delta, delta), "none");
        worst = Math.max(worst, Math.abs(e));
        total += e * e;
        n++;
      }
      return { worst, rms: Math.sqrt(total / n) };
    };
    // the slip: frequencies of exp(-r²/2s²) taken for exp(-r²/s²)
    const kernel = (square, s) => Math.exp(-square / (2 * 1.5 ** 2) * (s === "wide" ? 2 : 1));
    if (!known.has(slip)) known.set(slip, Object.fromEntries(Object.keys(maps).map(kind => [kind, maps[kind].map(m => off(m.W))])));
    const estimate = kind => r.map(v => cosines(maps[kind][size].W, way.map(c => v * c)));
    return { r, exact: r.map(v => kernel(v * v, slip)), iid: estimate("iid"), design: estimate("design"), errors: known.get(slip) };
  },
  draw({ curve, error: plot, say }, { r, exact, iid, design, errors }, s, { maps }) {
    const D = 8 * 2 ** s.size, bound = maps.iid[s.size].bound;
    curve.band(r, exact.map(v => v - bound), exact.map(v => v + bound), "f-plus");
    curve.line(r, exact, "c-ink");
    curve.line(r, iid, "c-plus");
    curve.line(r, design, "c-minus");
    curve.legend([["the kernel, and the certificate's band", "c-ink"], ["independent frequencies", "c-plus"], ["designed frequencies", "c-minus"]], "right");
    const sizes = maps.iid.map(m => m.D), hoeffding = sizes.map(v => Math.sqrt(4 / v * Math.log(40 * 39 / 0.01)));
    plot.line(sizes, hoeffding, "c-quiet dashed");
    for (const [kind, look] of [["iid", "plus"], ["design", "minus"]]) {
      plot.line(sizes, maps[kind].map(m => m.bound), `c-${look} thin dashed`);
      plot.line(sizes, errors[kind].map(e => e.rms), `c-${look}`);
      plot.dot(D, errors[kind][s.size].rms, `f-${look}`, 5, kind === "design");
    }
    plot.legend([["Hoeffding's bound", "c-quiet dashed"], ["certificate", "c-plus thin dashed"], ["root mean square", "c-plus"]], "left", true);
    const words = { none: "", half: " Every estimate is half of what it should be.", wide: " The estimates are of exp(−r²/2s²), a wider kernel." }[s.slip];
    say(`D = ${D}: independent frequencies are off by <b>${fixed(errors.iid[s.size].rms, 4)}</b> (root mean square), at most ${fixed(errors.iid[s.size].worst, 3)}; designed ones by <b>${fixed(errors.design[s.size].rms, 4)}</b>. Certificate: ${fixed(bound, 3)} for 99.5 % of the pairs, with 99 % confidence.${words}`);
  },
});
