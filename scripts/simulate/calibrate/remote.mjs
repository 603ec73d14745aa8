import { once } from "node:events";
import { createConnection } from "node:net";
import { startRedis } from "../../bench/replicas/redis.mjs";

/** As Fermata writes sequences: in pieces of 8 MiB. */
const pieceBytes = 8 * 2 ** 20;
const pieces = 24;

/** Sends one command and waits until `answerBytes` of its answer are there. */
async function ask(socket, parts, answerBytes) {
  socket.cork();
  socket.write(`*${parts.length}\r\n`);
  for (const part of parts) {
    socket.write(`$${Buffer.byteLength(part)}\r\n`);
    socket.write(part);
    socket.write("\r\n");
  }
  socket.uncork();
  let missing = answerBytes;
  while (missing > 0) {
    const chunk = socket.read();
    if (chunk) missing -= chunk.length;
    else await once(socket, "readable");
  }
}

async function timed(count, action) {
  const start = performance.now();
  for (let index = 0; index < count; index++) await action(index);
  return (performance.now() - start) / count;
}

/** Redis on this machine over loopback, its clients beside it: a network between them is slower. */
export async function measureRemote() {
  const redis = await startRedis();
  if (redis === null) return null;
  const socket = createConnection(redis.port, "127.0.0.1");
  await once(socket, "connect");
  const piece = Buffer.alloc(pieceBytes, 7);
  const ok = "+OK\r\n".length;
  const value = `$${pieceBytes}\r\n`.length + pieceBytes + 2;
  const write = await timed(pieces, (index) => ask(socket, ["SET", `k${index}`, piece], ok));
  const read = await timed(pieces, (index) => ask(socket, ["GET", `k${index}`], value));
  const latencyMs = await timed(200, () => ask(socket, ["PING"], "+PONG\r\n".length));
  socket.destroy();
  await redis.stop();
  return {
    readBytesPerMs: pieceBytes / read,
    writeBytesPerMs: pieceBytes / write,
    latencyMs,
  };
}
