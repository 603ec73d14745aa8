// `fermata chat` in a pseudo-terminal and in pipes, against `fermata serve` with the shipped model and a
// real MCP server. Nothing is scripted but the keys.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import { demoFolder as folder, makeDemoFolder } from "../support/demo-folder.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { type DrivenTerminal, hasPython, openTerminal } from "../support/terminal.ts";
import { filesystemServer } from "../support/filesystem-server.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const question = `List the files in ${folder}, then read notes.txt and tell me what it says.`;
const home = mkdtempSync(join(tmpdir(), "fermata-chat-"));
const env = { HOME: home, XDG_STATE_HOME: join(home, "state") };
const ctrlC = "\u0003";
const ctrlD = "\u0004";

/** Ctrl-C, to an answer or, if that has ended by then, to the prompt behind it. */
async function interrupt(terminal: DrivenTerminal): Promise<void> {
  terminal.send(ctrlC);
  await terminal.expect(/Stopped\.|Ctrl-C again leaves\./);
  await terminal.expect("> ");
}

let server: ServedCommand;

beforeAll(async () => {
  await makeDemoFolder();
  const config = join(home, "mcp.json");
  const files = {
    command: "node",
    args: [filesystemServer, folder],
    approval: { read_text_file: "always" },
  };
  writeFileSync(config, JSON.stringify({ mcpServers: { files } }));
  server = await serveCommand("--mcp-config", config, "--store", join(home, "store.sqlite"));
});

afterAll(async () => {
  expect(await server.stop()).toBe(0);
  rmSync(home, { recursive: true, force: true });
});

/** While an answer of so many words comes. Only the choice of tokens is scripted. */
async function duringStory(
  words: number,
  act: (terminal: DrivenTerminal, scripted: ScriptedServer) => Promise<void>,
): Promise<void> {
  const scripted = await startScriptedServer({ store: true, engine: { threads: 1 } });
  try {
    await scripted.script("Tell me a story.", ["harbour ".repeat(words)]);
    const terminal = openTerminal(["chat", "--url", scripted.url], { env });
    await terminal.expect("> ");
    terminal.send("Tell me a story.\r");
    await terminal.expect("harbour harbour");
    await act(terminal, scripted);
  } finally {
    await scripted.close();
  }
}

describe.skipIf(!hasPython)("at a terminal", () => {
  const chat = (...args: string[]) => openTerminal(["chat", "--url", server.url, ...args], { env });

  test("streams, shows calls, asks for approval, keeps a history, saves, leaves", async () => {
    const terminal = chat();
    await terminal.expect("> ");
    terminal.send(`${question}\r`);
    // The status line, then the card that replaces it.
    await terminal.expect(/\r[^\n]*Ctrl-C stops/);
    await terminal.expect(/\* \S*list_directory\S* \{"path": "\/tmp\/demo\/docs"\}/);
    await terminal.expect("done: list_directory");
    await terminal.expect("[FILE] notes.txt");
    await terminal.expect("files wants to run read_text_file");
    await terminal.expect("Allow it? [y]es");
    terminal.send("y");
    await terminal.expect("done: read_text_file");
    await terminal.expect(`The file ${folder}/notes.txt says:`);
    await terminal.expect("Bring the blue lantern.");
    await terminal.expect("> ");

    terminal.send("/list\r");
    await terminal.expect(/\*\s+1\s+.*List the files in/);
    terminal.send(`/save ${home}/saved.md\r`);
    await terminal.expect("Saved:");
    expect(readFileSync(`${home}/saved.md`, "utf8")).toMatch(/## Question\n\nList the files/);
    terminal.send("/modle\r");
    await terminal.expect("Did you mean /model?");
    // Between two prompts the terminal is not raw, and would keep the key for itself.
    await terminal.expect("> ");
    terminal.send(ctrlD);
    expect(await terminal.exitCode).toBe(0);

    // The arrow up brings the last line of the session before.
    const later = chat("--open", "last");
    await later.expect("Bring the blue lantern.");
    await later.expect(/Bring the blue lantern\.\s[^]*> /);
    later.send("\u001b[A\u001b[A\u001b[A");
    await later.expect(`/save ${home}`);
    later.send(`\u0015/quit\r`);
    expect(await later.exitCode).toBe(0);
  });

  test("no is no; Ctrl-C at the question stops the answer, once more leaves", async () => {
    const terminal = chat();
    await terminal.expect("> ");
    terminal.send(`${question}\r`);
    await terminal.expect("Allow it?");
    terminal.send("n");
    await terminal.expect("denied: read_text_file");
    await interrupt(terminal);
    terminal.send("/retry\r");
    await terminal.expect("Allow it?");
    terminal.send(ctrlC);
    await terminal.expect("Stopped.");
    await terminal.expect("> ");
    terminal.send(ctrlC);
    expect(await terminal.exitCode).toBe(130);
    // The server has nothing that runs on.
    await expect
      .poll(async () => {
        const engine = (await (await fetch(`${server.url}/api/engine`)).json()) as Engine;
        return engine.sequences;
      })
      .toEqual({ running: 0, waiting: 0, held: 0 });
  });

  test("what is typed while an answer comes waits for the prompt and answers no question", async () => {
    const terminal = chat();
    await terminal.expect("> ");
    const worker = Number(/"pid":(\d+)[^\n]*worker ready/.exec(server.log())![1]);
    // The answer comes once the keys were read: the status is drawn for the new width behind them.
    process.kill(worker, "SIGSTOP");
    try {
      terminal.send(`${question}\r`);
      await terminal.expect(/\r[^\n]*Ctrl-C stops/);
      terminal.send("/modlee\u007f\u001b[A\r/qui");
      terminal.resize(20, 30);
      await terminal.expect("Ctrl-C ...");
      terminal.resize(100, 30);
    } finally {
      process.kill(worker, "SIGCONT");
    }
    await terminal.expect("Allow it? [y]es");
    terminal.send("y");
    await terminal.expect("Bring the blue lantern.");
    await terminal.expect("Did you mean /model?");
    await terminal.expect("/qui");
    terminal.send("t\r");
    expect(await terminal.exitCode).toBe(0);
  });

  test("Ctrl-D while an answer comes leaves once it is there", () =>
    duringStory(500, async (terminal) => {
      terminal.send(ctrlD);
      expect(await terminal.exitCode).toBe(0);
      expect(terminal.raw().match(/harbour/g)!.length).toBeGreaterThanOrEqual(500);
    }));

  test("a narrower window clips the cards that follow", async () => {
    const terminal = chat("--approve", "none");
    await terminal.expect("> ");
    terminal.resize(40, 20);
    terminal.send("Please list the files in the folder /tmp/demo/docs\r");
    const card = await terminal.expect(/\* [^\r\n]*list_directory[^\r\n]*\r\n/);
    expect(withoutStyles(card).length).toBeLessThanOrEqual(40 + 2);
    await terminal.expect("- notes.txt");
    await terminal.expect("> ");
    await interrupt(terminal);
    terminal.send(ctrlC);
    expect(await terminal.exitCode).toBe(130);
  });

  test("Ctrl-C in the middle of the text stops it there", () =>
    duringStory(5000, async (terminal, scripted) => {
      terminal.send(ctrlC);
      await terminal.expect("Stopped.");
      await terminal.expect("> ");
      terminal.send(ctrlC);
      expect(await terminal.exitCode).toBe(130);
      const { running, waiting, held } = await scripted.settledStats();
      expect([running, waiting, held]).toEqual([0, 0, 0]);
    }));

  test("Ctrl-C while the model of an answer is loaded gives the prompt back, and the run is cancelled", async () => {
    await using loading = await loadingServer();
    const terminal = openTerminal(["chat", "--url", loading.url], { env });
    await terminal.expect("> ");
    terminal.send("Hello\r");
    await terminal.expect("Ctrl-C stops");
    await loading.isAsked;
    terminal.send(ctrlC);
    await terminal.expect("Stopped.");
    await terminal.expect("> ");
    loading.load();
    expect(await loading.cancelled).toBe("/api/conversations/conv_1/runs/run_1/cancel");
    terminal.send(ctrlC);
    expect(await terminal.exitCode).toBe(130);
  });

  test("who leaves while a model is loaded does not wait for it", async () => {
    await using loading = await loadingServer();
    const terminal = openTerminal(["chat", "--url", loading.url], { env });
    await terminal.expect("> ");
    terminal.send("Hello\r");
    await loading.isAsked;
    terminal.send(ctrlC);
    await terminal.expect("Stopped.");
    await terminal.expect("> ");
    terminal.send(ctrlC);
    expect(await terminal.exitCode).toBe(130);
  });

  test("NO_COLOR draws no colours", async () => {
    const withColours = chat();
    await withColours.expect("> ");
    withColours.send(ctrlD);
    await withColours.exitCode;
    expect(withColours.raw()).toMatch(styles);
    const without = openTerminal(["chat", "--url", server.url], { env: { ...env, NO_COLOR: "1" } });
    await without.expect("> ");
    without.send("/help\r");
    await without.expect("/branch");
    // As above: the terminal would keep the key for itself.
    await without.expect("> ");
    without.send(ctrlD);
    await without.exitCode;
    expect(without.raw()).not.toMatch(styles);
  });
});

describe("in a pipe", () => {
  const run = async (args: string[], input: string) => {
    const command = ["dist/cli/main.js", "chat", "--url", server.url, ...args];
    const child = spawn(process.execPath, command, { cwd: root, env: { ...process.env, ...env } });
    let out = "";
    let err = "";
    child.stdout.on("data", (text) => (out += String(text)));
    child.stderr.on("data", (text) => (err += String(text)));
    child.stdin.end(input);
    const code = await new Promise((resolve) => child.once("exit", resolve));
    return { code, out, err };
  };

  test("the answer alone goes to standard output, the calls to standard error", async () => {
    const { code, out, err } = await run(["-", "--approve", "all"], question);
    expect(code).toBe(0);
    expect(out).toContain("The harbour opens at nine.\nBring the blue lantern.");
    expect(out).not.toContain("list_directory");
    expect(err).toContain("done: list_directory");
    expect(`${out}${err}`).not.toContain("\u001b");
  });

  test("--json is one object for scripts", async () => {
    const { code, out } = await run([question, "--approve", "all", "--json"], "");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      status: "complete",
      message: expect.stringContaining("Bring the blue lantern."),
      tool_calls: [
        { tool_name: "list_directory", state: "done", server: "files" },
        { tool_name: "read_text_file", state: "done", approval: "approved" },
      ],
      usage: { completion_tokens: expect.any(Number) },
    });
  });

  test("Ctrl-C while the model is loaded ends the command", async () => {
    await using loading = await loadingServer();
    const command = ["dist/cli/main.js", "chat", "--url", loading.url, "Hello"];
    const child = spawn(process.execPath, command, { cwd: root, env: { ...process.env, ...env } });
    const exited = new Promise((resolve) => child.once("exit", resolve));
    await loading.isAsked;
    child.kill("SIGINT");
    expect(await exited).toBe(130);
  });

  test("mistakes", async () => {
    expect(await run(["-"], " ")).toMatchObject({
      code: 2,
      err: "fermata: The prompt is empty.\n",
    });
    const nobody = await run(["Hello", "--url", "http://127.0.0.1:9"], "");
    expect(nobody).toMatchObject({
      code: 1,
      err: "fermata: No server answers at http://127.0.0.1:9.\n",
    });
    const unknown = await run(["Hello", "--use", "defualt"], "");
    expect(unknown).toMatchObject({
      code: 2,
      out: "",
      err: "fermata: There is no model defualt. Did you mean default? /model lists them.\n",
    });
  });
});

/** A server that answers nothing to who asks for a run until its model is there. */
async function loadingServer() {
  let tellAsked = (): void => {};
  let load = (): void => {};
  let tellCancelled = (_path: string): void => {};
  const isAsked = new Promise<void>((resolve) => (tellAsked = resolve));
  const isLoaded = new Promise<void>((resolve) => (load = resolve));
  const cancelled = new Promise<string>((resolve) => (tellCancelled = resolve));
  const fake = createServer(async (request, response) => {
    const { url: path = "" } = request;
    if (path.endsWith("/cancel")) tellCancelled(path);
    if (path.endsWith("/runs")) {
      tellAsked();
      await isLoaded;
    }
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "conv_1", run_id: "run_1" }));
  }).listen(0, "127.0.0.1");
  await once(fake, "listening");
  const { port } = fake.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    isAsked,
    load: () => load(),
    cancelled,
    async [Symbol.asyncDispose]() {
      fake.closeAllConnections();
      fake.close();
    },
  };
}

interface Engine {
  sequences: object;
}

// oxlint-disable-next-line no-control-regex
const styles = /\u001b\[\d+m/;

function withoutStyles(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, "");
}
