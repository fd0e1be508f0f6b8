figure({
  state: d => ({ place: d.alphas.findIndex(a => a <= d.chosen * 1.0001), feature: "all" }),
  controls: [slider("place", "penalty", 0, d => d.alphas.length - 1, 1, { show: (v, d) => d.alphas[v].toPrecision(3) }), choice("feature", "show", d => [["all", "all features"], ...d.names.slice(0, 12).map(n => [n, n])])],
  plots: [
    { id: "path", title: "What one standard deviation of a feature adds", alt: "effects of features along the path of penalties", x: [0, 1], y: [-1, 1], xlabel: "less penalty →", xticks: [], big: true, ratio: 0.6 },
    { id: "kept", title: "Kept at this penalty, strongest first", alt: "features kept and their effects", bare: true, ratio: 1 },
    { id: "loss", title: "Loss on left-out rows", alt: "cross-validated loss along the path", x: [0, 1], y: [0, 1], xlabel: "less penalty →", xticks: [], ratio: 0.7 },
  ],
  compute({ place }, { effects, names, sizes, loss }) {
    const kept = names.map((name, j) => ({ name, j, effect: effects[place][j] })).filter(f => f.effect !== 0).sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
    return { kept, size: sizes[place], loss: loss[place], best: loss.indexOf(Math.min(...loss)) };
  },
  draw({ path, kept: list, loss: plot, say }, { kept, size, loss, best }, s, d) {
    const n = d.alphas.length, top = 1.1 * Math.max(...d.effects.flat().map(Math.abs)), at = d.alphas.map((_, i) => i), chosen = at.find(i => d.alphas[i] <= d.chosen * 1.0001);
    path.begin({ x: [0, n - 1], y: [-1.3 * top, top] });
    const looks = ["c-plus", "c-minus", "c-third", "c-wary", "c-accent"];
    d.names.forEach((name, j) => path.line(at, d.effects.map(r => r[j]), s.feature === "all" ? (j < 5 ? looks[j] : "c-quiet thin faint") : s.feature === name ? "c-accent thick" : "c-quiet thin fainter"));
    path.segment(chosen, -2 * top, chosen, top, "c-quiet dashed");
    path.segment(s.place, -2 * top, s.place, top, "c-ink thin");
    if (s.feature === "all") path.legend(d.names.slice(0, 5).map((name, j) => [name, looks[j]]), "left", true);
    list.begin({ x: [-1, 1], y: [0, 1] });
    kept.slice(0, 12).forEach((f, i) => {
      const y = 1 - (i + 0.5) / 12.5, w = Math.abs(f.effect) / top * 0.8;
      list.area(-0.98, y + 0.026, -0.98 + 2 * w, y - 0.026, f.effect > 0 ? "f-plus faint" : "f-minus faint");
      list.text(-0.96, y, `${f.name}  ${fixed(f.effect, 3)}`, "name", "start", 4);
    });
    const high = Math.max(...d.loss), low = Math.min(...d.loss);
    plot.begin({ x: [0, n - 1], y: [low - (high - low) * 0.08, high + (high - low) * 0.05] });
    plot.line(at, d.loss);
    plot.dot(s.place, loss, "f-accent", 5);
    plot.dot(best, d.loss[best], "f-third", 5, true);
    plot.segment(chosen, low - 1, chosen, high + 1, "c-quiet dashed");
    say(`<b>${size}</b> of ${d.served} features at penalty ${d.alphas[s.place].toPrecision(3)}; mean squared error on left-out rows <b>${fixed(loss, 4)}</b>, least ${fixed(d.loss[best], 4)}. The model of the lines takes ${d.chosen.toPrecision(3)}.`);
  },
});
