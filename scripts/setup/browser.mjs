// A browser for the tests of the web page, out of npm packages: nothing is downloaded by other ways.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installLocked } from "./locked-packages.mjs";
import { root } from "./paths.mjs";
import { timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";
import { hashOf, readStamp, writeStamp } from "./stamp.mjs";

const folder = join(root, "test", "browser");
const browserDir = join(folder, ".chromium");
const stampPath = join(browserDir, ".fermata-stamp");
const fonts = ["inter", "jetbrains-mono", "source-serif-4"];

export async function setUpBrowser() {
  const wanted = hashOf([
    join(folder, "package-lock.json"),
    join(root, "scripts/setup/browser.mjs"),
  ]);
  if (readStamp(stampPath) === wanted) return;
  await installLocked(folder, "Installing the browser of the page's tests");
  await timed("Unpacking the browser of the page's tests", async () => {
    rmSync(browserDir, { recursive: true, force: true });
    mkdirSync(browserDir);
    if (process.env.FERMATA_CHROMIUM === undefined) await unpackChromium();
    writeFontConfiguration();
  });
  writeStamp(stampPath, wanted);
}

/** The package unpacks into the folder for temporary files, with the libraries that a bare system lacks. */
async function unpackChromium() {
  const script =
    'const { default: chromium } = await import("@sparticuz/chromium"); await chromium.executablePath();';
  await runOrFail("Unpacking Chromium", process.execPath, ["--input-type=module", "-e", script], {
    cwd: folder,
    env: { TMPDIR: browserDir, AWS_LAMBDA_JS_RUNTIME: "nodejs22.x" },
  });
}

/** The same letters on every machine, so that screenshots are alike. */
function writeFontConfiguration() {
  const directories = fonts.map(
    (name) => `<dir>${join(folder, "node_modules", "@expo-google-fonts", name)}</dir>`,
  );
  const alias = (family, preferred) =>
    `<match target="pattern"><test name="family"><string>${family}</string></test>` +
    `<edit name="family" mode="prepend" binding="strong"><string>${preferred}</string></edit></match>`;
  const text = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
${directories.join("\n")}
<dir>/usr/share/fonts</dir>
<cachedir>${join(browserDir, "font-cache")}</cachedir>
${["system-ui", "sans-serif", "Arial"].map((family) => alias(family, "Inter")).join("\n")}
${["serif", "Times New Roman"].map((family) => alias(family, "Source Serif 4")).join("\n")}
${["monospace", "Monospace"].map((family) => alias(family, "JetBrains Mono")).join("\n")}
<match target="pattern"><edit name="family" mode="append"><string>Inter</string></edit></match>
</fontconfig>
`;
  writeFileSync(join(browserDir, "fonts.conf"), text);
}
