figure({
  state: { place: 1 },
  controls: [slider("place", "slip", 0, d => d.slips.length - 1, 1, { show: (v, d) => `${v + 1} of ${d.slips.length}`, wide: true }), button("next slip", (s, d) => { s.place = (s.place + 1) % d.slips.length; })],
  plots: [{ id: "curve", title: "The note (orange, dashed) and what is right (blue)", alt: "two curves: what the note says and what is right", x: [0, 1], y: [0, 1], big: true, ratio: 0.5, most: 480 }],
  compute({ place }, { slips }) {
    const s = slips[place], gap = s.x.map((_, i) => Math.abs(s.note[i] - s.truth[i]));
    return { gap: Math.max(...gap), at: s.x[gap.indexOf(Math.max(...gap))] };
  },
  draw({ curve, say }, { gap, at }, { place }, { slips }) {
    const s = slips[place], all = [...s.note, ...s.truth], low = Math.min(...all), high = Math.max(...all), pad = 0.08 * (high - low || 1);
    Object.assign(curve.spec, { xlabel: s.xlabel, ylabel: s.ylabel, logx: s.key === "distance" });
    curve.begin({ x: [s.x[0], s.x.at(-1)], y: [low - pad, high + pad] });
    curve.line(s.x, s.truth, "c-plus");
    curve.line(s.x, s.note, "c-minus dashed");
    if (s.x.length < 25) s.x.forEach((x, i) => { curve.dot(x, s.truth[i], "f-plus", 3.5); curve.dot(x, s.note[i], "f-minus", 3.5, true); });
    const clean = t => t.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    say(`<b>${clean(s.where)}</b><br>The note says: ${clean(s.says)}.<br>Right is: ${clean(s.right)}.<br>Numbers: ${clean(s.sentence)}. The curves are ${fixed(gap, 3)} apart at ${short(at)}.`);
  },
});
