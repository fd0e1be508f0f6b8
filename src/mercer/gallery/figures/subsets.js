figure({
  state: d => ({ d: 6, order: 0, x: d.x.slice(), z: d.z.slice() }),
  hint: "Drag the bars of x and z.",
  controls: [
    slider("d", "columns d", 1, 6, 1), slider("order", "order", 0, 6, 1, { show: v => v ? `only ${v}` : "all" }),
    button("x and z as they were", (s, d) => { s.x = d.x.slice(); s.z = d.z.slice(); }),
  ],
  plots: [
    { id: "pair", title: "Two points", alt: "the entries of x and of z, to drag", x: [0.5, 6.5], y: [-1.5, 1.5], xticks: [1, 2, 3, 4, 5, 6], ratio: 0.7 },
    { id: "shares", title: "The share of every subset", alt: "the product of x and z over each subset", x: [0, 64], y: [-1, 1.5], big: true, ratio: 0.5, xlabel: "subset", xticks: [] },
  ],
  compute(s) {
    const x = s.x.slice(0, s.d), z = s.z.slice(0, s.d), shares = [];
    for (let mask = 0; mask < 1 << s.d; mask++) {
      let share = 1, size = 0;
      for (let j = 0; j < s.d; j++) if (mask >> j & 1) { share *= x[j] * z[j]; size++; }
      shares.push({ share, size });
    }
    const kept = shares.filter(v => !s.order || v.size === s.order);
    return { shares, total: L.sum(kept.map(v => v.share)), count: kept.length, kernel: s.order ? K.elementary(x, z, s.order) : K.make("AllSubsets").of(x, z), factors: x.map((v, j) => 1 + v * z[j]) };
  },
  draw({ pair, shares: plot, say }, { shares, total, count, kernel, factors }, s) {
    pair.begin({ x: [0.5, s.d + 0.5] });
    pair.segment(0.5, 0, s.d + 0.5, 0, "c-quiet thin");
    for (const [name, at, look] of [["x", -0.17, "plus"], ["z", 0.17, "minus"]]) for (let j = 0; j < s.d; j++) {
      pair.bar(j + 1 + at - 0.13, j + 1 + at + 0.13, s[name][j], `f-${look} faint`);
      pair.handle(`${name}${j}`, j + 1 + at, s[name][j], { label: `${name}, column ${j + 1}`, look: `f-${look}`, r: 5, square: name === "z", move: (_, y) => { s[name][j] = y; } });
    }
    const values = shares.map(v => v.share), top = Math.max(...values) * 1.1, low = Math.min(0, ...values) * 1.2;
    plot.begin({ x: [0, shares.length], y: [low, top] });
    const looks = ["f-ink", "f-plus", "f-minus", "f-third", "f-accent", "f-wary", "f-quiet"];
    const order = shares.map((v, i) => ({ ...v, i })).sort((a, b) => a.size - b.size || a.i - b.i);
    order.forEach((v, i) => plot.bar(i + 0.1, i + 0.9, v.share, `${looks[v.size]}${s.order && v.size !== s.order ? " fainter" : ""}`));
    let from = 0;
    for (let size = 0; size <= s.d; size++) { const n = L.binomial(s.d, size); if (n / shares.length > 0.05 || s.d < 4) plot.text(from + n / 2, low, `|S| = ${size}`, "", "middle", 15); from += n; }
    plot.segment(0, 0, shares.length, 0, "c-quiet thin");
    const product = s.order ? `elementary symmetric polynomial of order ${s.order}` : factors.map(v => fixed(v, 2)).join(" · ");
    say(`Sum over <b>${count}</b> subsets: <b>${fixed(total, 8)}</b>. In ${s.order ? "O(d · order)" : `${s.d} factors`}: ${product} = <b>${fixed(kernel, 8)}</b>.`);
  },
});
