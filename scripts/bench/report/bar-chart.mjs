const width = 720;
const labelWidth = 310;
const barHeight = 22;
const gap = 8;
const top = 44;

const style = `
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 14px }
  .fermata { fill: #0a6fc2 } .peer { fill: #9aa4af }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .fermata { fill: #4da3ee } .peer { fill: #6b7681 }
  }`;

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** Horizontal bars as SVG, readable on light and dark pages. Each bar is { label, value, isFermata }. */
export function barChart({ title, unit, bars }) {
  const largest = Math.max(...bars.map(({ value }) => value));
  const room = width - labelWidth - 90;
  const height = top + bars.length * (barHeight + gap) + gap;
  const drawn = bars.map(({ label, value, isFermata }, index) => {
    const y = top + index * (barHeight + gap);
    const length = Math.max(1, Math.round((room * value) / largest));
    const baseline = y + barHeight - 6;
    return [
      `<text x="${labelWidth - 10}" y="${baseline}" text-anchor="end">${escaped(label)}</text>`,
      `<rect class="${isFermata ? "fermata" : "peer"}" x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" rx="3"/>`,
      `<text x="${labelWidth + length + 8}" y="${baseline}">${value.toFixed(value < 10 ? 2 : 1)} ${unit}</text>`,
    ].join("\n");
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${style}</style>`,
    `<text class="title" x="10" y="24">${escaped(title)}</text>`,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}
