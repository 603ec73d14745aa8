// As much of Redis as RemoteFiles asks for, in RESP, with faults that a real one cannot be made to have.
import { createServer, type Server, type Socket } from "node:net";

export class FakeRedis {
  /** Pieces and claims by key. */
  readonly values = new Map<string, Buffer>();
  /** Of all streams. */
  readonly log: { key: string; id: string; name: string; head: Buffer }[] = [];
  /** Commands that were answered, by name. */
  readonly calls = new Map<string, number>();
  /** Keys that were claimed, as often as that was tried. */
  readonly claimed: string[] = [];
  /** Somebody else has every claim. */
  holdsClaims = false;
  /** Each claim expires when it was told, and somebody else has it then. */
  takesClaims = false;
  /** Commands that it has no memory for. */
  readonly refused = new Set<string>();
  /** What a command waits for before it is answered. */
  delay: (command: string) => Promise<void> = () => Promise.resolve();
  password = "";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port = 0;

  constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      this.#serve(socket).catch(() => {});
    });
  }

  async #serve(socket: Socket): Promise<void> {
    let received = Buffer.alloc(0);
    for await (const data of socket) {
      received = Buffer.concat([received, data as Buffer]);
      for (let read = readCommand(received); read !== null; read = readCommand(received)) {
        received = received.subarray(read.end);
        await this.delay(String(read.words[0]));
        socket.write(this.#answer(read.words));
      }
    }
  }

  /** Milliseconds of what was told to expire, by key. */
  readonly expiries = new Map<string, number>();

  get url(): string {
    return `redis://${this.password && `:${this.password}@`}127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as { port: number }).port;
  }

  /** What it keeps stays. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(words: Buffer[]): Buffer {
    const [command, ...args] = words.map(String) as [string, ...string[]];
    this.calls.set(command, (this.calls.get(command) ?? 0) + 1);
    if (this.refused.has(command)) return error("OOM command not allowed");
    switch (command) {
      case "AUTH":
        return args.at(-1) === this.password ? ok : error("WRONGPASS");
      case "PING":
        return ok;
      case "SET":
        this.claimed.push(args[0]!);
        if (this.holdsClaims || this.values.has(args[0]!)) return bulk(undefined);
        this.values.set(args[0]!, this.takesClaims ? Buffer.from("another") : words[2]!);
        return ok;
      // The two scripts that change a claim if it has this value.
      case "EVAL": {
        const [script, , key, value, ms] = args as [string, string, string, string, string];
        if (String(this.values.get(key)) !== value) return Buffer.from(":0\r\n");
        if (script.includes("UNLINK")) this.values.delete(key);
        else this.expiries.set(key, Number(ms));
        return Buffer.from(":1\r\n");
      }
      case "PSETEX":
        this.values.set(args[0]!, words[3]!);
        return ok;
      case "GETEX":
        return bulk(this.values.get(args[0]!));
      case "UNLINK":
        return Buffer.from(`:${Number(this.values.delete(args[0]!))}\r\n`);
      case "XADD": {
        const id = `${this.log.length + 1}-0`;
        this.log.push({ key: args[0]!, id, name: String(words.at(-3)), head: words.at(-1)! });
        return bulk(Buffer.from(id));
      }
      case "PEXPIRE":
        this.expiries.set(args[0]!, Number(args[1]));
        return Buffer.from(":1\r\n");
      case "XREAD": {
        const seen = Number.parseInt(args.at(-1)!, 10);
        const entries = this.log
          .slice(seen)
          .filter(({ key }) => key === args.at(-2))
          .map(({ id, name, head }) =>
            array([
              bulk(Buffer.from(id)),
              array([
                bulk(Buffer.from("name")),
                bulk(Buffer.from(name)),
                bulk(Buffer.from("head")),
                bulk(head),
              ]),
            ]),
          );
        if (entries.length === 0) return Buffer.from("*-1\r\n");
        return array([array([bulk(Buffer.from(args.at(-2)!)), array(entries)])]);
      }
      default:
        return error(`unknown command ${command}`);
    }
  }
}

const ok = Buffer.from("+OK\r\n");
const error = (text: string): Buffer => Buffer.from(`-ERR ${text}\r\n`);
const bulk = (value: Buffer | undefined): Buffer =>
  value === undefined
    ? Buffer.from("$-1\r\n")
    : Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from("\r\n")]);
const array = (items: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from(`*${items.length}\r\n`), ...items]);

/** The first command in `bytes`; null: it is not there in whole. */
function readCommand(bytes: Buffer): { words: Buffer[]; end: number } | null {
  let at = 0;
  const number = (): number | null => {
    const end = bytes.indexOf("\r\n", at);
    if (end < 0) return null;
    const value = Number(bytes.toString("latin1", at + 1, end));
    at = end + 2;
    return value;
  };
  const count = number();
  if (count === null) return null;
  const words: Buffer[] = [];
  for (let index = 0; index < count; index++) {
    const length = number();
    if (length === null || bytes.length < at + length + 2) return null;
    words.push(Buffer.from(bytes.subarray(at, at + length)));
    at += length + 2;
  }
  return { words, end: at };
}
