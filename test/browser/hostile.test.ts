// What a model, a tool or a file may say executes nothing, loads nothing and breaks nothing.
import { expect, test } from "vitest";
import { called, spoken } from "./support/answers.ts";
import { openPage, type WatchedPage } from "./support/browser.ts";
import { event, FakeApi } from "./support/fake-api.ts";
import { closedAfterEach } from "./support/page-of-api.ts";

const open = closedAfterEach();

const hostileMarkdown = `
<script>document.title = "owned"</script>
<img src="http://evil.example/pixel.png" onerror="document.title='owned'">
<svg onload="document.title='owned'"><script>document.title='owned'</script></svg>
<iframe srcdoc="<script>parent.document.title='owned'</script>"></iframe>
<style>body { display: none }</style>
<base href="http://evil.example/">
<form action="http://evil.example/"><button>Send</button></form>

[script](javascript:document.title='owned')
[spaced](java\nscript:alert(1))
[entity](&#106;avascript:alert(1))
[data](data:text/html,<script>alert(1)</script>)
[vb](vbscript:msgbox(1))
[file](file:///etc/passwd)
[relative](/v1/models)
[good](https://example.org/)
[mail](mailto:someone@example.org)
![picture](http://evil.example/pixel.png)
![inline](data:image/svg+xml,<svg onload=alert(1)>)
<http://autolink.example/>
www.bare.example

$a^2$ $\\href{javascript:alert(1)}{x}$ $\\url{javascript:alert(1)}$ $\\includegraphics{http://evil.example/x}$

\`\`\`html
<script>document.title = "owned"</script>
\`\`\`

\`\`\`"><script>document.title="owned"</script>
code
\`\`\`
`;

async function show(texts: readonly string[], more = {}): Promise<WatchedPage> {
  open.api = await new FakeApi({}).listen();
  const id = open.api.addConversation("Hostile", texts, more);
  open.watched = await openPage(open.browser, `${open.api.url}/c/${id}`);
  await open.watched.page.locator(".message.assistant").first().waitFor();
  return open.watched;
}

test("HTML, scripts, styles, SVG and dangerous links are text", async () => {
  const { page, problems } = await show(["Hello", hostileMarkdown]);
  await page.locator(".code-block .hljs-tag").first().waitFor();
  await page.locator("math").first().waitFor();
  expect(await page.title()).toBe("Hostile · Fermata");
  const answer = page.locator(".message.assistant");
  const dangerous = "script, img, image, iframe, object, embed, style, base, form, video, audio";
  expect(await answer.locator(dangerous).count()).toBe(0);
  expect(await answer.locator("svg:not(.icon):not(.mark)").count()).toBe(0);
  const links = await answer
    .locator("a")
    .evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).getAttribute("href")));
  expect(links).toEqual([
    "https://example.org/",
    "mailto:someone@example.org",
    "http://evil.example/pixel.png",
    "http://autolink.example/",
    "http://www.bare.example/",
  ]);
  for (const rel of await answer
    .locator("a")
    .evaluateAll((all) => all.map((a) => a.getAttribute("rel"))))
    expect(rel).toBe("noreferrer noopener nofollow");
  // No attribute of any element runs code or loads anything.
  const attributes = await answer.evaluate((element) =>
    [...element.querySelectorAll("*")].flatMap((each) => each.getAttributeNames()),
  );
  expect(attributes.filter((name) => /^on|^src|^style$|^xlink/.test(name))).toEqual([]);
  // What is shown is the source.
  expect(await answer.innerText()).toContain('<script>document.title = "owned"</script>');
  expect(problems).toEqual([]);
});

test("the policy holds: it forbids what a hole would need", async () => {
  const { page, problems } = await show(["Hello", "Fine."]);
  const policy = (await page.request.get(open.api!.url)).headers()["content-security-policy"];
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toMatch(/unsafe|\*|data:|blob:|http/);
  // Were there a hole, it would lead nowhere.
  const outcome = await page.evaluate(() => {
    const tried: string[] = [];
    const attempt = (name: string, run: () => void): void => {
      try {
        run();
        tried.push(`${name}: done`);
      } catch {
        tried.push(`${name}: refused`);
      }
    };
    attempt(
      "innerHTML",
      () => (document.body.dataset["x"] = document.createElement("p").innerHTML = "<b>"),
    );
    attempt("inline script", () => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.head.append(script);
    });
    attempt("inline style", () => document.body.setAttribute("style", "opacity: 0.5"));
    attempt("picture", () =>
      document.body.append(Object.assign(new Image(), { src: "http://evil.example/" })),
    );
    return tried;
  });
  expect(outcome[0]).toBe("innerHTML: refused");
  expect(await page.title()).toBe("Hostile · Fermata");
  expect(await page.evaluate(() => getComputedStyle(document.body).opacity)).toBe("1");
  await expect
    .poll(() => problems.filter((text) => text.startsWith("CSP")).length)
    .toBeGreaterThan(3);
});

test("text that runs the other way stays in its place", async () => {
  const override = "\u202Egpj.exe\u202C";
  const { page, problems } = await show(
    [
      "שלום",
      `Left ${override} right.\n\nשלום **עולם** and English\n\n| a | b |\n|---|---|\n| ${override} | עברית |\n`,
    ],
    {
      tool_calls: [
        {
          call_id: "call_1",
          event_type: "result",
          tool_name: "run\u202Etxt.exe",
          tool_response: "ok",
          is_complete: true,
          tool_call_details: {
            arguments: JSON.stringify({ path: `a${override}` }),
            text_offset: 0,
          },
        },
      ],
    },
  );
  // What a person decides by is spelled out.
  await expect.poll(() => page.locator(".call-name").innerText()).toBe("run‹U+202E›txt.exe");
  await page.locator(".call-head").click();
  expect(await page.locator(".arguments dd").innerText()).toBe("a‹U+202E›gpj.exe‹U+202C›");
  const isolated = await page
    .locator(".markdown :is(p, td)")
    .evaluateAll((all) => all.map((each) => getComputedStyle(each).unicodeBidi));
  expect(new Set(isolated)).toEqual(new Set(["isolate"]));
  expect(
    await page
      .locator(".markdown p")
      .nth(1)
      .evaluate((p) => getComputedStyle(p).direction),
  ).toBe("rtl");
  expect(problems).toEqual([]);
});

test("a huge table shows its beginning, and more when asked", async () => {
  const columns = Array.from({ length: 60 }, (_, index) => `c${index}`);
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rows = Array.from({ length: 5000 }, (_, row) =>
    line(columns.map((name) => `${name}r${row}`)),
  );
  const table = [line(columns), line(columns.map(() => "---")), ...rows].join("\n");
  const { page, problems } = await show(["Hello", table]);
  await expect.poll(() => page.locator("tbody tr").count()).toBe(50);
  expect(await page.locator("thead th").count()).toBe(30);
  await page.getByRole("button", { name: "Show 500 more of 5,000 rows" }).click();
  await expect.poll(() => page.locator("tbody tr").count()).toBe(550);
  await page.getByRole("button", { name: "Show all 60 columns" }).click();
  await expect.poll(() => page.locator("thead th").count()).toBe(60);
  // The page is no wider than the window: the table scrolls within its frame.
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(1200);
  expect(problems).toEqual([]);
});

test("a tool's result of 1 MB is cut, and shown whole when asked", async () => {
  const result = `${"<b>0123456789</b> ".repeat(58_000)}the end`;
  open.api = await new FakeApi({
    answer: async function* () {
      yield* called({ id: "call_1", name: "read_text_file", arguments: '{"path":"big"}', result });
      yield* spoken("That was long.");
    },
  }).listen();
  open.watched = await openPage(open.browser, open.api.url);
  const { page, problems } = open.watched;
  await page.locator("#message").fill("Read it");
  await page.keyboard.press("Enter");
  await page.locator(".message .markdown", { hasText: "That was long." }).waitFor();
  await page.locator(".call-head[aria-expanded=false]").click();
  const shown = page.locator(".result");
  expect((await shown.innerText()).length).toBeLessThan(2100);
  await shown.getByRole("button", { name: "Show all (1.0 M characters)" }).click();
  await expect.poll(async () => (await shown.textContent())?.length).toBeGreaterThan(result.length);
  expect(await shown.textContent()).toContain("the end");
  expect(await shown.locator("b").count()).toBe(0);
  expect(problems).toEqual([]);
});

test("Markdown made to be slow or deep does not stop the page", async () => {
  const attacks = [
    `${"> ".repeat(5000)}deep`,
    `${"- ".repeat(3000)}deep`,
    "*a ".repeat(60_000),
    "[".repeat(50_000),
    `${"![".repeat(20_000)}x`,
    `$${"{".repeat(3000)}x$`,
    `$${"\\frac{1}".repeat(900)}x$`,
    "`".repeat(30_000),
    "<a ".repeat(30_000),
    "| a ".repeat(20_000),
    "&#1114112; &#0; &#xD800;",
  ];
  open.api = await new FakeApi({
    answer: async function* (message) {
      yield event({ message: attacks[Number(message)]! });
    },
  }).listen();
  open.watched = await openPage(open.browser, open.api.url);
  const { page, problems } = open.watched;
  for (const index of attacks.keys()) {
    await page.locator("#message").fill(String(index));
    await page.keyboard.press("Enter");
    const answer = page.locator(".message.assistant").last();
    await expect
      .poll(() => page.locator(".message.assistant[data-status=complete]").count())
      .toBeGreaterThan(0);
    await answer.locator("[data-retry]").waitFor();
    await page.keyboard.press("Alt+KeyN");
    await page.locator(".empty-state").waitFor();
  }
  expect(problems).toEqual([]);
}, 600_000);
