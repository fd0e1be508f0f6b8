figure({
  state: d => ({ C: 1, X: d.X.map(r => r.slice()) }),
  hint: "Drag points; drag the view on the right to turn it. Ringed points are support vectors.",
  controls: [logarithmic("C", "C, the price of an error", 0.01, 1000), button("points as they were", (s, d) => { s.X = d.X.map(r => r.slice()); })],
  plots: [
    { id: "plane", title: "In the plane: a conic", alt: "two classes and the conic between them", x: [-2, 2], y: [-2, 2], square: true },
    { id: "space", title: "Under the map: a plane", alt: "the mapped points on a cone and the separating plane", space: true, square: true, yaw: 0.5, pitch: 0.3 },
  ],
  compute({ C, X, at }, { y }) {
    const k = K.make("Polynomial", { degree: 2, bias: 0 }), m = F.svm(K.matrix(k, X), y, C);
    const value = x => X.reduce((s, z, i) => s + (m.coef[i] ? m.coef[i] * k.of(x, z) : 0), m.b);
    const map = ([a, b]) => [a * a, Math.SQRT2 * a * b, b * b], w = [0, 0, 0];
    X.forEach((x, i) => map(x).forEach((v, j) => { w[j] += m.coef[i] * v; }));
    return { value, w, b: m.b, a: m.a, map, fitted: X.map(value), at: at && at.map(value) };
  },
  draw({ plane, space, say }, { value, w, b, a, map }, s, { y }) {
    const rows = plane.grid(60).map(line => line.map(value));
    plane.heat(rows.map(r => r.map(v => v / 2)), diverging());
    plane.contour(rows, 0, "c-ink");
    s.X.forEach(([u, v], i) => {
      if (a[i] > 1e-6 * s.C) plane.ring(u, v);
      plane.handle(`p${i}`, u, v, { label: `point ${i + 1}`, look: y[i] > 0 ? "f-plus" : "f-minus", square: y[i] < 0, r: 4.5, move: (p, q) => { s.X[i] = [p, q]; } });
    });
    const unit = ([p, q, r]) => [p / 1.6 - 1, q / 2.4, r / 1.6 - 1];
    for (const r of [0.6, 1.2, 1.8]) space.path3(L.linspace(0, Math.PI, 40).map(t => unit(map([r * Math.cos(t), r * Math.sin(t)]))), "c-quiet thin faint", true);
    for (const t of L.linspace(0, Math.PI, 13)) space.path3([[0, 0, 0], map([2 * Math.cos(t), 2 * Math.sin(t)])].map(unit), "c-quiet thin faint");
    if (Math.abs(w[0]) + Math.abs(w[2]) > 1e-9) { // the patch of the plane over the second coordinate and along the third
      const flat = Math.abs(w[0]) > Math.abs(w[2]), at = (q, v) => flat ? unit([-(b + w[1] * q + w[2] * v) / w[0], q, v]) : unit([v, q, -(b + w[1] * q + w[0] * v) / w[2]]);
      space.sheet3([at(-2, -0.3), at(2, -0.3), at(2, 1.4), at(-2, 1.4)]);
    }
    space.dots3(s.X.map((x, i) => ({ p: unit(map(x)), look: y[i] > 0 ? "f-plus" : "f-minus", square: y[i] < 0, ring: a[i] > 1e-6 * s.C })));
    space.box3(["x1²", "√2 x1x2", "x2²"]);
    const right = s.X.filter((x, i) => value(x) * y[i] > 0).length;
    say(`f(x) = ${fixed(b, 2)} + ${fixed(w[0], 2)} x1² + ${fixed(w[1], 2)} √2 x1x2 + ${fixed(w[2], 2)} x2²; <b>${right}</b> of ${s.X.length} right, ${a.filter(v => v > 1e-6 * s.C).length} support vectors.`);
  },
});
