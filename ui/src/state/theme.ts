/** Light, dark, or as the system has it. Kept in this browser. */

import { Store } from "./store.ts";

export type Theme = "system" | "light" | "dark";

const key = "fermata-theme";

function stored(): Theme {
  const value = localStorage.getItem(key);
  return value === "light" || value === "dark" ? value : "system";
}

export const theme = new Store<Theme>(stored());

function apply(): void {
  document.documentElement.dataset["theme"] = theme.get();
}

export function setTheme(value: Theme): void {
  localStorage.setItem(key, value);
  theme.set(value);
}

apply();
theme.subscribe(apply);
