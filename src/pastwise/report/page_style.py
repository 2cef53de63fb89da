"""How the page of a policy card looks: on light and dark screens, on phones, and on paper."""

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1b1a18; --soft: #5d5951;
  --line: #dedbd4; --sunk: #f6f5f2; --good: #0a6e52; --good-bg: #e1f2ec; --bad: #a83a0b;
  --bad-bg: #fcece3; --unsure: #6b5a10; --unsure-bg: #f7f0d8; }
@media (prefers-color-scheme: dark) {
  :root { --page: #131416; --text: #eceae6; --soft: #a5a29b; --line: #34363b; --sunk: #1b1c1f;
    --good: #57cfa6; --good-bg: #12291f; --bad: #ff9b69; --bad-bg: #2e1b11; --unsure: #e0c862;
    --unsure-bg: #29240f; } }
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 54rem; margin: 2.2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 0.6rem; padding-top: 0.8rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 0.9rem; margin: 1.1rem 0 0.4rem; color: var(--soft); font-weight: 600; }
p { margin: 0.4rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); } .small { color: var(--soft); font-size: 0.85rem; }
.large { font-size: 1.1rem; }
.verdict { display: flex; align-items: center; gap: 0.7rem; padding: 0.7rem 1rem;
  border: 1px solid; border-radius: 8px; font-size: 1.1rem; }
.seal { font-size: 1.35rem; line-height: 1; }
.good { color: var(--good); background: var(--good-bg); }
.bad { color: var(--bad); background: var(--bad-bg); }
.unsure { color: var(--unsure); background: var(--unsure-bg); }
dl { display: grid; grid-template-columns: minmax(9rem, 13rem) 1fr; gap: 0.3rem 1.25rem;
  margin: 0.4rem 0 0.8rem; }
dt { font-weight: 600; overflow-wrap: anywhere; } dd { margin: 0; overflow-wrap: anywhere; }
ul { margin: 0.4rem 0; padding-left: 1.2rem; } li { margin: 0.25rem 0; overflow-wrap: anywhere; }
code { font: 0.85em/1.5 ui-monospace, monospace; background: var(--sunk); border-radius: 4px;
  padding: 0.1rem 0.3rem; }
.wide { overflow-x: auto; } .wide svg { display: block; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; }
caption { text-align: left; padding-bottom: 0.5rem; color: var(--soft); }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 0.8rem 0.3rem 0; text-align: left;
  vertical-align: top; min-width: 5.2em; max-width: 20rem; overflow-wrap: anywhere; }
thead th { color: var(--soft); white-space: nowrap; } .number, thead .number { text-align: right;
  font-variant-numeric: tabular-nums; }
tbody th { font-weight: 600; } .weak { color: var(--bad); font-weight: 600; }
.lines { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 1.5rem; margin-top: 2.6rem; }
.lines p { border-top: 1px solid var(--text); padding-top: 0.2rem; color: var(--soft);
  font-size: 0.85rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 0.5rem; }
  .lines { grid-template-columns: 1fr; gap: 2.6rem; } }
@media (forced-colors: active) { .verdict { border: 2px solid; } }
@media print {
  :root { color-scheme: light; --page: #ffffff; --text: #000000; --soft: #444444; --line: #bbbbbb;
    --sunk: #f4f4f4; --good: #0a6e52; --good-bg: #e1f2ec; --bad: #a83a0b; --bad-bg: #fcece3;
    --unsure: #6b5a10; --unsure-bg: #f7f0d8; }
  @page { size: A4; margin: 15mm; }
  body { font-size: 10.5pt; max-width: none; margin: 0; padding: 0; print-color-adjust: exact; }
  h2 { break-after: avoid; margin-top: 1.2rem; } h3 { break-after: avoid; }
  .verdict, .wide svg, .signature, tr, dl { break-inside: avoid; }
  .wide { overflow: visible; } .wide svg { max-width: 100%; height: auto; }
}
"""
