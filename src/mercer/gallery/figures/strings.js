const LETTERS = "ACGT";
function windows(text, k) {
  const found = [];
  for (let i = 0; i + k <= text.length; i++) { const w = text.slice(i, i + k); if ([...w].every(c => LETTERS.includes(c))) found.push([w, i]); }
  return found;
}
function counts(text, k, near) {
  const found = new Map(), add = w => found.set(w, (found.get(w) ?? 0) + 1);
  for (const [w] of windows(text, k)) {
    add(w);
    if (near) for (let i = 0; i < k; i++) for (const c of LETTERS) if (c !== w[i]) add(w.slice(0, i) + c + w.slice(i + 1));
  }
  return found;
}
const inner = (a, b) => { let s = 0; for (const [w, n] of a) s += n * (b.get(w) ?? 0); return s; };
// Lodhi et al. (2002): subsequences of p letters, each letter spanned costs the decay, in both strings
function subsequences(s, t, p, decay) {
  const match = (a, b) => a === b && LETTERS.includes(a);
  let before = Array.from({ length: s.length + 1 }, () => new Array(t.length + 1).fill(1));
  for (let i = 1; i < p; i++) {
    const now = L.zeros(s.length + 1, t.length + 1);
    for (let a = i; a <= s.length; a++) for (let b = i, run = 0; b <= t.length; b++) {
      run = decay * (run + (match(s[a - 1], t[b - 1]) ? decay * before[a - 1][b - 1] : 0));
      now[a][b] = decay * now[a - 1][b] + run;
    }
    before = now;
  }
  let total = 0;
  for (let a = 1; a <= s.length; a++) for (let b = 1; b <= t.length; b++) if (match(s[a - 1], t[b - 1])) total += decay * decay * before[a - 1][b - 1];
  return total;
}
figure({
  state: d => ({ x: d.x, z: d.z, kind: "spectrum", k: 4, decay: 0.5 }),
  controls: [
    typed("x", "first string"), typed("z", "second string"), choice("kind", "words", [["spectrum", "exact: Spectrum"], ["mismatch", "one mismatch: Mismatch"], ["gapped", "with gaps: Subsequence"]]),
    slider("k", "letters of a word", 2, 6, 1), slider("decay", "decay of gaps", 0.1, 1, 0.05, { when: s => s.kind === "gapped" }),
    button("turn the second around", s => { s.z = [...s.z].reverse().join(""); }), button("strings as they were", (s, d) => { s.x = d.x; s.z = d.z; }),
  ],
  plots: [
    { id: "pairs", title: "Pairs of windows that agree", alt: "grid of windows of both strings with a mark where they agree", x: [0, 16], y: [0, 16], square: true, xlabel: "place in the first", ylabel: "place in the second" },
    { id: "words", title: "Shared words and their products of counts", alt: "bars of the words that both strings have", bare: true, ratio: 1, big: true },
  ],
  compute({ x, z, kind, k, decay }) {
    const a = x.toUpperCase(), b = z.toUpperCase(), near = kind === "mismatch";
    const value = kind === "gapped" ? (s, t) => subsequences(s, t, k, decay) : (s, t) => inner(counts(s, k, near), counts(t, k, near));
    const xz = value(a, b), xx = value(a, a), zz = value(b, b), differ = (u, v) => [...u].filter((c, i) => c !== v[i]).length;
    const pairs = windows(a, k).flatMap(([u, i]) => windows(b, k).filter(([v]) => differ(u, v) <= (near ? 1 : 0)).map(([v, j]) => ({ i, j, exact: u === v })));
    const A = counts(a, k, near), B = counts(b, k, near), shared = [...A].filter(([w]) => B.has(w)).map(([w, n]) => ({ w, share: n * B.get(w) })).sort((p, q) => q.share - p.share || (p.w < q.w ? -1 : 1));
    return { value: xz, alike: xx * zz > 0 ? xz / Math.sqrt(xx * zz) : 0, pairs, shared, a, b };
  },
  draw({ pairs: grid, words, say }, { value, alike, pairs, shared, a, b }, s) {
    grid.begin({ x: [0, Math.max(4, a.length - s.k + 1)], y: [0, Math.max(4, b.length - s.k + 1)] });
    pairs.forEach(p => grid.area(p.i + 0.08, p.j + 0.08, p.i + 0.92, p.j + 0.92, p.exact ? "f-plus" : "f-minus faint"));
    words.begin({ x: [0, 1], y: [0, 1] });
    const top = Math.max(1, ...shared.map(w => w.share));
    shared.slice(0, 14).forEach((w, i) => {
      const y = 1 - (i + 0.5) / 14.5;
      words.area(0.3, y + 0.024, 0.3 + 0.6 * w.share / top, y - 0.024, "f-plus faint");
      words.text(0.02, y, w.w, "name", "start", 4);
      words.text(0.31, y, String(w.share), "", "start", 4);
    });
    if (!shared.length) words.text(0.5, 0.5, "no word in common", "strong");
    if (shared.length > 14) words.text(0.98, 0.02, `and ${shared.length - 14} more`, "", "end");
    const marked = (text, hits) => [...text].map((c, i) => hits.has(i) ? `<mark>${escape(c)}</mark>` : escape(c)).join("");
    const hits = key => new Set(pairs.flatMap(p => Array.from({ length: s.k }, (_, t) => p[key] + t)));
    const name = { spectrum: `Spectrum(${s.k})`, mismatch: `Mismatch(${s.k}, 1)`, gapped: `Subsequence(${s.k}, decay=${s.decay})` }[s.kind];
    say(`<span class="seq">${marked(a, hits("i"))}</span><br><span class="seq">${marked(b, hits("j"))}</span><br>${name}: k(x, z) = <b>${fixed(value, 4)}</b>, normalised <b>${fixed(alike, 4)}</b>${s.kind === "gapped" ? "; words with gaps are many, the grid shows those without" : ""}.`);
  },
});
function escape(c) { return { "<": "&lt;", "&": "&amp;", ">": "&gt;" }[c] ?? c; }
