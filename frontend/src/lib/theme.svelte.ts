/** Light or dark: the system decides until the reader does; the choice is remembered. */

export type Theme = "light" | "dark";

const NAME = "pastwise-theme";

/** The theme in use; `dark` is for canvases, everything else follows CSS variables. */
export const theme: { current: Theme } = $state({ current: "light" });

/** Applies the remembered theme, or the system's, and follows changes of the latter. */
export function startTheme(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = remembered();
  if (stored !== null) {
    choose(stored);
    return;
  }
  theme.current = system.matches ? "dark" : "light";
  system.addEventListener("change", () => {
    if (remembered() === null) {
      theme.current = system.matches ? "dark" : "light";
    }
  });
}

/** Changes to the other theme and remembers it. */
export function switchTheme(): void {
  choose(theme.current === "dark" ? "light" : "dark");
  try {
    localStorage.setItem(NAME, theme.current);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function choose(chosen: Theme): void {
  theme.current = chosen;
  document.documentElement.dataset.theme = chosen;
}

function remembered(): Theme | null {
  try {
    const stored = localStorage.getItem(NAME);
    return stored === "light" || stored === "dark" ? stored : null;
  } catch {
    return null;
  }
}
