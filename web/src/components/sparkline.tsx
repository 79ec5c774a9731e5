/** A trend the size of a word. Its numbers stand beside it, so it is hidden from screen readers. */

const WIDTH = 120;
const HEIGHT = 26;

export function Sparkline({ values, over, color = "--accent-fill" }: {
  values: readonly number[];
  /** A part of the values, drawn over them: the hidden ones. */
  over?: readonly number[];
  color?: string;
}) {
  const most = Math.max(1, ...values);
  const width = WIDTH / Math.max(1, values.length);
  const bars = (of: readonly number[]) =>
    of.map((value, place) => {
      const height = value <= 0 ? 0 : Math.max(1.5, (value / most) * (HEIGHT - 2));
      return `M${(place * width).toFixed(2)} ${HEIGHT}v${(-height).toFixed(2)}h${Math.max(0.6, width - 0.6).toFixed(2)}v${height.toFixed(2)}z`;
    }).join("");
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <path d={bars(values)} style={{ fill: `var(${color})` }} />
      {over !== undefined && <path d={bars(over)} style={{ fill: "var(--hidden-fill)" }} />}
    </svg>
  );
}
