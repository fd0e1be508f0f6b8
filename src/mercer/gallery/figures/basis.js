const BASES = {
  line: { words: "x", of: () => [x => x] },
  cosine: { words: "x, cos x", of: () => [x => x, Math.cos] },
  powers: { words: "x, x², x³", of: () => [x => x, x => x * x, x => x ** 3] },
  jump: { words: "x, 1{x < a}", of: s => [x => x, x => x < s.a ? 1 : 0] },
};
figure({
  state: d => ({ basis: "cosine", a: 0, y: d.y.slice(), turn: 0 }),
  hint: "Drag points up and down; drag the view on the right to turn it.",
  controls: [
    choice("basis", "basis", Object.entries(BASES).map(([key, b]) => [key, b.words])),
    slider("a", "place of the jump, a", -5, 5, 0.1, { when: s => s.basis === "jump" }),
    button("look along the plane", s => { s.turn++; }, { when: s => s.basis === "cosine" }),
    button("points as they were", (s, d) => { s.y = d.y.slice(); }),
  ],
  plots: [
    { id: "curve", title: "y as a function of x", alt: "points and the fitted curve", x: [-5.4, 5.4], y: [-5, 5], xlabel: "x", ylabel: "y", big: true },
    { id: "space", title: "y as a plane over two features", alt: "the points and the fitted plane in three dimensions", space: true, square: true },
  ],
  compute(s, { x }) {
    const fs = BASES[s.basis].of(s), { w, w0 } = F.ridge(x.map(v => fs.map(f => f(v))), s.y, 1e-6, true);
    const value = v => w0 + fs.reduce((t, f, i) => t + w[i] * f(v), 0);
    const residual = L.mean(x.map((v, i) => (value(v) - s.y[i]) ** 2)), spread = L.mean(s.y.map(v => (v - L.mean(s.y)) ** 2));
    return { w, w0, value, r2: 1 - residual / spread, fs, fitted: x.map(value) };
  },
  draw({ curve, space, say }, { w, w0, value, r2, fs }, s, { x }) {
    const grid = L.linspace(-5.4, 5.4, 300);
    curve.line(grid, grid.map(value));
    x.forEach((v, i) => curve.handle(`p${i}`, v, s.y[i], { label: `point ${i + 1}`, look: "f-minus", r: 4.5, move: (_, y) => { s.y[i] = y; } }));
    const f = fs[1] ?? (() => 0), all = x.map(f), low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
    const unit = ([a, b, c]) => [a / 5, 2 * (b - low) / span - 1, c / 5];
    if (s.turn && s.turned !== s.turn) { // along a line of the plane
      s.turned = s.turn;
      const slope = [w[0] * 5 / 5, (w[1] ?? 0) * span / 2 / 5];
      space.yaw = Math.atan2(slope[0], slope[1]) + Math.PI / 2;
      space.pitch = 0;
      if (s.turn % 2 === 0) { space.yaw = 0.6; space.pitch = 0.45; }
    }
    if (fs.length < 3) {
      const at = (a, b) => unit([a, b, w0 + w[0] * a + (w[1] ?? 0) * b]);
      space.sheet3([at(-5, low), at(5, low), at(5, low + span), at(-5, low + span)]);
      for (const v of L.linspace(0, 1, 6)) { space.path3([at(-5, low + v * span), at(5, low + v * span)], "c-accent thin faint"); space.path3([at(-5 + 10 * v, low), at(-5 + 10 * v, low + span)], "c-accent thin faint"); }
    }
    space.dots3(x.map((v, i) => ({ p: unit([v, all[i], s.y[i]]), look: "f-minus" })));
    space.box3(["x", { cosine: "cos x", powers: "x²", jump: "1{x < a}", line: "" }[s.basis], "y"]);
    say(`y ≈ ${fixed(w0, 2)} ${BASES[s.basis].words.split(", ").map((name, i) => `${w[i] < 0 ? "−" : "+"} ${fixed(Math.abs(w[i]), 2)} ${name}`).join(" ")}; R² on these points <b>${fixed(r2, 3)}</b>.`);
  },
});
