figure({
  state: d => ({ bandwidth: 0.4, q: [0.1, 0.2], X: d.X.map(r => r.slice()) }),
  hint: "Drag the query (green) and the points.",
  controls: [logarithmic("bandwidth", "bandwidth", 0.03, 5), button("points as they were", (s, d) => { s.X = d.X.map(r => r.slice()); s.q = [0.1, 0.2]; })],
  plots: [
    { id: "plane", title: "The confidence in the second class", alt: "points of two classes, a query and its votes", x: [-3, 3], y: [-2.5, 2.5], ratio: 0.86, most: 520, big: true },
    { id: "bars", title: "The votes at the query, strongest first", alt: "shares of the vote of each point", x: [0, 44], y: [0, 1], ratio: 0.8, xlabel: "points", xticks: [] },
  ],
  compute({ bandwidth, q, X, at }, { y }) {
    const share = z => L.dot(F.votes(X, z, bandwidth), y);
    return { votes: F.votes(X, q, bandwidth), confidence: share(q), share, at: at && at.map(share) };
  },
  draw({ plane, bars, say }, { votes, confidence, share }, s, { y }) {
    const rows = plane.grid(44, 52).map(line => line.map(p => 2 * share(p) - 1));
    plane.heat(rows, diverging());
    plane.contour(rows, 0, "c-ink thin");
    const top = Math.max(...votes);
    s.X.forEach(([a, b], i) => { if (votes[i] > 0.002) plane.segment(...s.q, a, b, y[i] ? "c-plus" : "c-minus").setAttribute("style", `opacity:${Math.min(1, 0.1 + votes[i] / top)};stroke-width:${1 + 5 * votes[i] / top}`); });
    s.X.forEach(([a, b], i) => plane.handle(`p${i}`, a, b, { label: `point ${i + 1}`, look: y[i] ? "f-plus" : "f-minus", square: !y[i], r: 4.5, move: (p, q) => { s.X[i] = [p, q]; } }));
    plane.handle("query", ...s.q, { label: "query", look: "f-third", r: 8, move: (p, q) => { s.q = [p, q]; } });
    const order = votes.map((v, i) => [v, i]).sort((a, b) => b[0] - a[0]);
    bars.begin({ y: [0, Math.max(0.05, top * 1.1)] });
    order.forEach(([v, i], place) => bars.bar(place + 0.1, place + 0.9, v, y[i] ? "f-plus" : "f-minus"));
    const many = 1 / votes.reduce((t, v) => t + v * v, 0);
    say(`At the query (${fixed(s.q[0], 2)}, ${fixed(s.q[1], 2)}): confidence <b>${fixed(confidence, 3)}</b> in the second class, from as many votes as <b>${fixed(many, 1)}</b> equal ones.`);
  },
});
