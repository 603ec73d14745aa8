import { Script } from "node:vm";

/** Work that waits for nothing is ended at any instruction. @throws that it took too long, or what `work` throws */
export function withinSeconds<Result>(seconds: number, work: () => Result): Result {
  const shared = globalThis as { limitedWork?: () => Result };
  shared.limitedWork = work;
  try {
    return new Script("limitedWork()").runInThisContext({ timeout: seconds * 1000 }) as Result;
  } finally {
    delete shared.limitedWork;
  }
}
