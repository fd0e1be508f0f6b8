figure({
  state: { round: 0, direction: 0 },
  controls: [slider("round", "round", 0, 4, 1), slider("direction", "direction to look along", 0, 7, 1, { show: v => String(v + 1) })],
  plots: [
    { id: "metric", title: "The metric M", alt: "heat map of the learnt metric", x: [-0.5, 7.5], y: [-0.5, 7.5], square: true, xticks: [0, 1, 2, 3, 4, 5, 6, 7], yticks: [] },
    { id: "columns", title: "Shares of the columns", alt: "share of every column in the trace of the metric", x: [-0.6, 7.6], y: [0, 1], ratio: 0.95, xlabel: "column", xticks: [0, 1, 2, 3, 4, 5, 6, 7] },
    { id: "along", title: "Held-out answers along a direction", alt: "targets and predictions of held-out rows along a direction of the metric", x: [-4, 4], y: [-2.5, 2.5], ratio: 0.95, xlabel: "place along the direction" },
  ],
  compute({ round, direction }, { X, y, metrics, predictions }) {
    const M = metrics[round], { values, vectors } = L.eigen(M), way = vectors[direction];
    const off = L.mean(predictions[round].map((p, i) => (p - y[i]) ** 2)), spread = L.mean(y.map(v => (v - L.mean(y)) ** 2));
    return { M, shares: M.map((row, j) => row[j]), values, way, along: X.map(x => L.dot(x, way)), r2: 1 - off / spread };
  },
  draw({ metric, columns, along: plot, say }, { M, shares, values, way, along, r2 }, s, { y, predictions, scores }) {
    const top = Math.max(...M.flat().map(Math.abs));
    metric.heat(M.slice().reverse().map(r => r.map(v => v / top)), diverging(), true);
    columns.begin({ y: [0, Math.max(...shares) * 1.15] });
    shares.forEach((v, j) => columns.bar(j - 0.35, j + 0.35, v, j < 3 ? "f-plus" : "f-quiet"));
    along.forEach((v, i) => plot.segment(v, y[i], v, predictions[s.round][i], "c-quiet thin faint"));
    along.forEach((v, i) => plot.dot(v, y[i], "f-minus", 3.5, true));
    along.forEach((v, i) => plot.dot(v, predictions[s.round][i], "f-plus", 3));
    plot.legend([["target", "c-minus"], ["prediction", "c-plus"]]);
    const terms = way.map((w, j) => [w, j]).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 3).map(([w, j]) => `${w < 0 ? "−" : "+"} ${fixed(Math.abs(w), 2)} x${j}`).join(" ");
    say(`Round ${s.round}: R² on 300 held-out rows <b>${fixed(scores[s.round], 3)}</b> (${scores.map(v => fixed(v, 3)).join(", ")} in rounds 0 to 4); on the 100 shown ${fixed(r2, 3)}. Direction ${s.direction + 1}: ${terms}, with a share of <b>${(100 * values[s.direction] / L.sum(values)).toFixed(0)} %</b>.`);
  },
});
