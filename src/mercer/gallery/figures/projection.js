const SIZES = [16, 32, 64, 128, 256, 512];
figure({
  state: { points: "dense", map: "gaussian", size: 2, delta: 0.05 },
  controls: [
    choice("points", "points", [["dense", "dense, 600 columns"], ["spikes", "two entries each"]]), choice("map", "matrix", [["gaussian", "Gaussian"], ["one", "sparse, s = 1"], ["eight", "sparse, s = 8"]]),
    slider("size", "dimensions m", 0, 5, 1, { show: v => String(SIZES[v]) }), logarithmic("delta", "probability δ", 0.0005, 0.5),
  ],
  plots: [
    { id: "histogram", title: "Distortions of 300 pairs, and Theorem 1", alt: "histogram of distortions of squared distances with the bounds of the theorem", x: [-1, 1.5], y: [0, 100], xlabel: "|Av|² / |v|² − 1", big: true, ratio: 0.6 },
    { id: "spread", title: "Spread by m", alt: "root mean square distortion against dimension", x: [16, 512], y: [0.02, 1.5], logx: true, logy: true, xlabel: "m", ratio: 0.85 },
  ],
  compute({ points, map, size, delta }, { off }) {
    const m = SIZES[size], t = Math.log(2 / delta), values = off[`${points}/${map}/${m}`];
    const low = -2 * Math.sqrt(t / m), high = 2 * Math.sqrt(t / m) + 2 * t / m, rms = v => Math.sqrt(L.mean(v.map(x => x * x)));
    return { low, high, values, outside: values.filter(v => v < low || v > high).length, rms: rms(values), worst: Math.max(...values.map(Math.abs)), spreads: Object.fromEntries(["gaussian", "one", "eight"].map(k => [k, SIZES.map(n => rms(off[`${points}/${k}/${n}`]))])) };
  },
  draw({ histogram: plot, spread, say }, { low, high, values, outside, rms, worst, spreads }, s) {
    const bins = 50, counts = new Array(bins).fill(0), width = 2.5 / bins;
    values.forEach(v => { counts[Math.max(0, Math.min(bins - 1, Math.floor((v + 1) / width)))]++; });
    plot.begin({ y: [0, Math.max(...counts) * 1.15] });
    plot.band([Math.max(-1, low), Math.min(1.5, high)], [0, 0], [1e4, 1e4], "f-third");
    counts.forEach((c, i) => { const mid = -1 + (i + 0.5) * width; if (c) plot.bar(-1 + i * width, -1 + (i + 0.92) * width, c, mid < low || mid > high ? "f-minus" : "f-plus"); });
    for (const v of [low, high]) if (v > -1 && v < 1.5) plot.segment(v, 0, v, 1e4, "c-third dashed");
    for (const [k, look] of [["gaussian", "c-ink"], ["one", "c-minus"], ["eight", "c-plus"]]) spread.line(SIZES, spreads[k].map(v => Math.max(v, 0.02)), look + (k === s.map ? "" : " thin"));
    spread.dot(SIZES[s.size], Math.max(rms, 0.02), "f-accent", 5);
    spread.legend([["Gaussian", "c-ink"], ["s = 1", "c-minus"], ["s = 8", "c-plus"]], "right");
    say(`m = ${SIZES[s.size]}: <b>${outside}</b> of 300 pairs outside the band (Theorem 1 lets a share of ${short(s.delta)} expect ${fixed(300 * s.delta, 1)} at most${s.map === "gaussian" ? "" : "; it is a promise for Gaussian matrices"}); root mean square <b>${fixed(rms, 3)}</b>, largest ${fixed(worst, 3)}.`);
  },
});
