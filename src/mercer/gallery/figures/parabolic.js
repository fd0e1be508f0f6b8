figure({
  state: { cx: 0.5, cy: 0.3, r: 1.1 },
  hint: "Drag the centre or the edge of the disc, or focus one and use the arrow keys; drag the view on the right to turn it.",
  controls: [slider("r", "radius", 0, 2.5, 0.05), slider("cx", "centre, x1", -2, 2, 0.05), slider("cy", "centre, x2", -2, 2, 0.05)],
  plots: [
    { id: "plane", title: "Below: the disc", alt: "points of the plane and a disc", x: [-2, 2], y: [-2, 2], square: true },
    { id: "space", title: "Above: the paraboloid and the plane", alt: "the same points on a paraboloid, cut by a plane", space: true, square: true, pitch: 0.3 },
  ],
  compute({ cx, cy, r }, { X }) {
    const normal = [2 * cx, 2 * cy, -1], offset = cx * cx + cy * cy - r * r;
    const lifted = X.map(([a, b]) => [a, b, a * a + b * b]);
    return { normal, offset, lifted, inside: lifted.map(z => L.dot(normal, z) >= offset) };
  },
  draw({ plane, space, say }, { normal, offset, lifted, inside }, s, { X }) {
    const circle = L.linspace(0, 2 * Math.PI, 90).map(t => [s.cx + s.r * Math.cos(t), s.cy + s.r * Math.sin(t)]);
    plane.path(circle, "c-accent f-none", true);
    X.forEach(([x, y], i) => plane.dot(x, y, inside[i] ? "f-plus" : "f-minus", 4, !inside[i]));
    plane.handle("centre", s.cx, s.cy, { label: "centre of the disc", move: (x, y) => { s.cx = x; s.cy = y; } });
    plane.handle("edge", s.cx + s.r * Math.SQRT1_2, s.cy + s.r * Math.SQRT1_2, { label: "edge of the disc", look: "f-third", r: 5, move: (x, y) => { s.r = Math.min(2.5, Math.hypot(x - s.cx, y - s.cy)); } });
    const unit = ([x, y, z]) => [x / 2, y / 2, z / 4 - 1], up = (x, y) => unit([x, y, x * x + y * y]);
    for (const v of L.linspace(-2, 2, 9)) {
      const line = L.linspace(-2, 2, 25);
      space.path3(line.map(t => up(v, t)), "c-quiet thin faint");
      space.path3(line.map(t => up(t, v)), "c-quiet thin faint");
    }
    const height = (x, y) => 2 * s.cx * x + 2 * s.cy * y - offset;
    space.sheet3([[-2, -2], [2, -2], [2, 2], [-2, 2]].map(([x, y]) => unit([x, y, height(x, y)])));
    space.path3(circle.map(([x, y]) => up(x, y)), "c-accent", true);
    space.dots3(lifted.map((p, i) => ({ p: unit(p), look: inside[i] ? "f-plus" : "f-minus", square: !inside[i] })));
    space.box3(["x1", "x2", "x1² + x2²"]);
    const n = inside.filter(Boolean).length, round = X.filter(([x, y]) => Math.hypot(x - s.cx, y - s.cy) <= s.r).length;
    say(`<b>${round}</b> points in the disc, <b>${n}</b> in the halfspace (u, φ(x)) ≥ t with u = (${normal.map(v => fixed(v, 2)).join(", ")}), t = ${fixed(offset, 2)}.`);
  },
});
