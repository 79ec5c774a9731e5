/** Styles that depend on data are set through the CSSOM, which a strict Content-Security-Policy allows. */

/** Makes a CSS variable the colour of an element: its rules use `var(--color)`. */
export function cssVar(name: string): Record<string, string> {
  return { "--color": `var(${name})` };
}
