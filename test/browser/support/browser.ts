// The browser, and pages in it that are watched for what must never happen.
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const folder = fileURLToPath(new URL("..", import.meta.url));
const installed = join(folder, ".chromium", "chromium");
const screenshotFolder = fileURLToPath(new URL("../../../docs/screenshots/", import.meta.url));

// As headless Chromium runs in a container: nothing of it calls anywhere by itself.
const launchArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--font-render-hinting=none",
  "--hide-scrollbars",
];

/** For a machine that does other things as well. */
const patienceMs = 100_000;

function executable(): string {
  const path = process.env.FERMATA_CHROMIUM ?? installed;
  if (existsSync(path)) return path;
  throw new Error(
    `There is no browser at ${path}. "npm test -- browser" installs one on Linux x86-64; elsewhere, ` +
      "set FERMATA_CHROMIUM to the path of a Chromium or Chrome.",
  );
}

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: executable(),
    args: launchArguments,
    timeout: patienceMs,
    env: {
      ...(process.env as Record<string, string>),
      FONTCONFIG_FILE: join(folder, ".chromium", "fonts.conf"),
      LD_LIBRARY_PATH: join(folder, ".chromium", "al2023", "lib"),
    },
  });
}

export interface WatchedPage {
  page: Page;
  /** Violations of the Content-Security-Policy, script errors, requests to elsewhere. */
  problems: string[];
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 800 },
    reducedMotion: "reduce",
    ...options,
  });
  return watchPage(await context.newPage(), url);
}

export async function watchPage(page: Page, url: string): Promise<WatchedPage> {
  const problems: string[] = [];
  const origin = new URL(url).origin;
  page.setDefaultTimeout(patienceMs);
  await page.exposeFunction("reportViolation", (text: string) => problems.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      const report = (globalThis as unknown as Record<string, (text: string) => void>)[
        "reportViolation"
      ];
      report?.(`CSP ${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
    });
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.origin !== origin) problems.push(`request to ${target.href}`);
  });
  await page.goto(url);
  return { page, problems };
}

/** Written only when FERMATA_SCREENSHOTS=1, once light and once dark. */
export async function takeScreenshots(page: Page, name: string): Promise<void> {
  if (process.env.FERMATA_SCREENSHOTS !== "1") return;
  await mkdir(screenshotFolder, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const image = await page.screenshot({ animations: "disabled" });
    await writeFile(join(screenshotFolder, `${name}-${colorScheme}.png`), image);
  }
  await page.emulateMedia({ colorScheme: "light" });
}
