import { chat, runAgent } from "./load.mjs";

const triesOfClient = 8;

/**
 * Agents work without end while one replica after the other is killed and started again. Each request that fails is sent
 * again, as SDKs do it. Resolves with counts: requests that were answered, failures by kind, requests that were given up.
 */
export async function killAtRandom(url, replicas, { kills, load }) {
  const counts = { kills: 0, answered: 0, lostConnections: 0, byStatus: {}, givenUp: 0 };
  const busy = new Map(replicas.map(({ name }) => [name, 0]));
  let isDone = false;

  async function ask(address, messages) {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await chat(address, messages);
        counts.answered += 1;
        busy.set(answer.replica, (busy.get(answer.replica) ?? 0) + 1);
        return answer;
      } catch (error) {
        if (error.status === undefined) counts.lostConnections += 1;
        else counts.byStatus[error.status] = (counts.byStatus[error.status] ?? 0) + 1;
        if (attempt < triesOfClient) {
          await new Promise((resolve) => setTimeout(resolve, 200 * attempt));
          continue;
        }
        counts.givenUp += 1;
        throw error;
      }
    }
  }

  let agent = 0;
  const worker = async () => {
    while (!isDone) await runAgent(url, agent++, load, ask).catch(() => {});
  };
  const work = Promise.all(Array.from({ length: load.atOnce }, worker));
  while (counts.kills < kills) {
    const replica = replicas[Math.floor(Math.random() * replicas.length)];
    const before = busy.get(replica.name);
    // It has work, and so do the others.
    while (busy.get(replica.name) < before + 2)
      await new Promise((resolve) => setTimeout(resolve, 20));
    await replica.kill();
    counts.kills += 1;
    await replica.start();
  }
  isDone = true;
  await work;
  return counts;
}
