// The machine that has layers of the model is lost, stops answering or is not there: streams are told, the service
// comes back by itself, and says why it does not. Needs `npm run build`.
import { createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/run.ts";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { freePort, startRpcServer, type StartedRpcServer } from "../support/rpc-server.ts";
import { told } from "./support/injections.ts";
import { endlessStream, post, workerOf } from "./support/served.ts";

let server: ServedCommand | undefined;
let peer: StartedRpcServer | undefined;
afterEach(async () => {
  await server?.stop("SIGKILL");
  await peer?.stop("SIGKILL");
  server = peer = undefined;
});

const serveOn = (endpoint: string, ...args: string[]): Promise<ServedCommand> =>
  serveCommand("--store=none", "--no-ui-server", `--rpc=${endpoint}`, ...args);

const crashed = /^event: error\ndata: .*"code":"engine_crashed"/;

async function answers(to: ServedCommand): Promise<void> {
  const response = await post(to, "/v1/completions", { prompt: "Once", max_tokens: 4 });
  expect(response.status).toBe(200);
}

test("a peer that dies: its streams end, starts fail with the reason, and the service is back with it", async () => {
  peer = await startRpcServer(await freePort());
  server = await serveOn(peer.endpoint);
  expect(server.out()).toContain(`on RPC0 at ${peer.endpoint}`);
  await workerOf(server, 1);
  const stream = await endlessStream(server);
  await peer.stop("SIGKILL");
  await stream.ended;
  expect(stream.text().trimEnd().split("\n\n").at(-1)).toMatch(crashed);
  expect(server.log()).toContain(`the RPC server ${peer.endpoint} closed the connection`);
  await eventually(() => expect(server!.log()).toContain("the worker does not start"));
  expect(server.log()).toContain(`The RPC server ${peer.endpoint} cannot be reached`);
  peer = await startRpcServer(peer.port);
  await workerOf(server, 2);
  await answers(server);
  told("machine of `--rpc` is killed", 1);
});

test("a peer that stops answering is lost after --process-timeout step", async () => {
  peer = await startRpcServer(await freePort());
  server = await serveOn(peer.endpoint, "--process-timeout=step=2");
  await workerOf(server, 1);
  const stream = await endlessStream(server);
  peer.process.kill("SIGSTOP");
  await stream.ended;
  expect(stream.text().trimEnd().split("\n\n").at(-1)).toMatch(crashed);
  expect(server.log()).toMatch(/has not answered for 2 seconds|"thread":"inference"/);
  peer.process.kill("SIGCONT");
  await workerOf(server, 2);
  await answers(server);
  told("machine of `--rpc` stops answering", 1);
});

async function startFailure(...args: string[]): Promise<{ code: number | null; err: string }> {
  let err = "";
  const context = { cwd: "/", env: {}, out: () => {}, err: (text: string) => void (err += text) };
  const code = await runCommandLine(args, context);
  return { code, err };
}

test("nobody there, and somebody who never answers: a start fails within seconds", async () => {
  const nobody = `127.0.0.1:${await freePort()}`;
  await expect(serveOn(nobody)).rejects.toThrow(
    /ended with 2[^]*The RPC server 127.0.0.1:\d+ cannot be reached: Connection refused/,
  );
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as { port: number };
  await expect(serveOn(`127.0.0.1:${port}`)).rejects.toThrow(/accepts the connection and does not/);
  silent.close();
});

test.each([
  [["--host=0.0.0.0"], /--host 0.0.0.0 is reached by other machines.*--trusted-network/],
  [["--host=::1"], /IPv4 address, not "::1"/],
  [["--host=nowhere"], /IPv4 address, not "nowhere"/],
  [["--mem=0"], /mem/],
])("rpc-server %j is refused", async (args, message) => {
  expect(await startFailure("rpc-server", ...args)).toEqual({
    code: 2,
    err: expect.stringMatching(message),
  });
});
