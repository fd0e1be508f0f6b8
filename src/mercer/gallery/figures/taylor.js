figure({
  state: { degree: 5, bandwidth: 1, z: 1.2, slip: false },
  hint: "Drag the point z along the curve.",
  controls: [slider("degree", "highest degree p", 0, 24, 1), logarithmic("bandwidth", "bandwidth s", 0.4, 4), slider("z", "z", -3, 3, 0.1), toggle("slip", "coefficients 1/j! (the slip)")],
  plots: [
    { id: "kernel", title: "k(x, z) and the cut series", alt: "the Gaussian and its Taylor approximation", x: [-4, 4], y: [-0.6, 1.2], xlabel: "x", big: true, ratio: 0.62 },
    { id: "features", title: "The features", alt: "the first features as functions of x", x: [-4, 4], y: [-0.8, 1.6], xlabel: "x", ratio: 0.8 },
  ],
  compute({ degree, bandwidth, z, slip }, { x }) {
    const power = slip ? 1 : 0.5;
    const features = v => { const u = v / bandwidth, found = [Math.exp(-u * u / 2)]; for (let j = 1; j <= degree; j++) found.push(found[j - 1] * u / j ** power); return found; };
    const at = features(z), grid = x.map(features), kernel = x.map(v => Math.exp(-(((v - z) / bandwidth) ** 2) / 2)), cut = grid.map(f => L.dot(f, at));
    const near = x.map((v, i) => Math.abs(v) <= 2.0001 ? Math.abs(cut[i] - kernel[i]) : 0), t = (Math.max(2, Math.abs(z)) / bandwidth) ** 2;
    let term = Math.exp(-t), below = term;
    for (let j = 1; j <= degree; j++) { term *= t / j; below += term; }
    return { cut, kernel, grid, worst: Math.max(...near), bound: Math.max(0, 1 - below) };
  },
  draw({ kernel: plot, features, say }, { cut, kernel, grid, worst, bound }, s, { x }) {
    plot.band([-2, 2], [-0.6, -0.6], [1.2, 1.2], "f-accent more");
    plot.line(x, kernel, "c-ink thin");
    plot.line(x, cut, "c-accent");
    plot.legend([["the kernel", "c-ink thin"], ["the cut series", "c-accent"]]);
    plot.handle("z", s.z, 1, { label: "z", look: "f-third", r: 7, move: v => { s.z = Math.round(Math.max(-3, Math.min(3, v)) * 10) / 10; } });
    plot.text(s.z, 1, "z", "strong", "start", -8);
    for (let j = 0; j <= s.degree; j++) features.line(x, grid.map(f => f[j]), j === s.degree ? "c-accent" : `c-quiet thin${j < s.degree - 6 ? " fainter" : ""}`);
    features.line(x, grid.map(f => f.reduce((t, v) => t + v * v, 0)), "c-third dashed");
    features.legend([["the sum of their squares", "c-third dashed"], [`degree ${s.degree}`, "c-accent"]]);
    say(`Degree ${s.degree}: worst error within |x| ≤ 2 <b>${fixed(worst, 6)}</b>${s.slip ? ", with coefficients that are not the kernel's, so it never vanishes." : `, tail bound for |x|, |z| ≤ ${fixed(Math.max(2, Math.abs(s.z)), 1)} <b>${fixed(bound, 6)}</b>.`}`);
  },
});
