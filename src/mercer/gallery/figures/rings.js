figure({
  state: { place: 7, first: 0, second: 1 },
  hint: "Drag the view on the right to turn it.",
  controls: [
    slider("place", "bandwidth", 0, 15, 1, { show: (v, d) => fixed(d.bandwidths[v], 2) }), slider("first", "component across", 0, 5, 1, { show: v => String(v + 1) }), slider("second", "component up", 0, 5, 1, { show: v => String(v + 1) }),
  ],
  plots: [
    { id: "plane", title: "The plane", alt: "two rings, coloured by cluster", x: [-2.5, 2.5], y: [-2.5, 2.5], square: true },
    { id: "scores", title: "Two kernel principal components", alt: "scores of the points on two components", x: [-1, 1], y: [-1, 1], square: true },
    { id: "space", title: "The first three", alt: "scores on the first three components, in three dimensions", space: true, square: true },
  ],
  compute({ place }, { X, bandwidths, labels }) {
    const { scores, values } = F.components(K.matrix(K.make("Gaussian", { bandwidth: bandwidths[place] }), X), 6);
    return { scores, values, labels: labels[place] };
  },
  draw({ plane, scores: plot, space, say }, { scores, values, labels }, s, { X, ring, bandwidths }) {
    const look = i => labels[i] ? "f-plus" : "f-minus";
    X.forEach(([a, b], i) => plane.dot(a, b, look(i), 4.5, ring[i] === 1));
    const of = c => scores.map(v => v[c]), range = c => { const top = 1.15 * Math.max(...of(c).map(Math.abs), 1e-9); return [-top, top]; };
    plot.begin({ x: range(s.first), y: range(s.second) });
    scores.forEach((v, i) => plot.dot(v[s.first], v[s.second], look(i), 4.5, ring[i] === 1));
    const top = Math.max(...[0, 1, 2].flatMap(c => of(c).map(Math.abs)));
    space.dots3(scores.map((v, i) => ({ p: v.slice(0, 3).map(x => x / top), look: look(i), square: ring[i] === 1 })));
    space.box3(["1st", "2nd", "3rd"]);
    const same = labels.filter((v, i) => v === ring[i]).length, share = Math.max(same, X.length - same) / X.length;
    say(`Bandwidth ${fixed(bandwidths[s.place], 2)}: clusters agree with the rings on <b>${(100 * share).toFixed(0)} %</b> of the points; the first three components hold <b>${(100 * L.sum(values.slice(0, 3)) / L.sum(values)).toFixed(0)} %</b> of the variance.`);
  },
});
