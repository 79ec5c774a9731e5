/** Light, dark, or as the system says. A preference of the person and not of the view, so it is kept in the browser. */

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "faultline-theme";

export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === stored) ?? "auto";
  } catch {
    return "auto";
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  try {
    if (theme === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Browsers that keep nothing show the theme until the page is closed.
  }
}

/** What a CSS variable stands for now, as a canvas needs it. */
export function cssColor(variable: string): string {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
