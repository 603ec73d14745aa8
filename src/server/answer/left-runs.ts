/** Runs that an earlier process left: each goes on here once its model is in memory, or ends with what hinders it. */

import type { FermataError } from "../../errors.ts";
import type { RouteContext } from "../context.ts";
import { toFermataError } from "../http/error-replies.ts";
import type { RunContext } from "./answer.ts";
import type { ExpectedRuns, LiveRun } from "./live-run.ts";
import { withModel } from "./model-use.ts";

interface LeftRun {
  id: string;
  owner: string;
  conversationId?: string;
}

type LeftContext = Pick<RouteContext, "services" | "config" | "active" | "lease"> &
  Pick<RunContext, "log">;

type Begun = Pick<LiveRun<unknown>, "ended">;

interface GoingOn<Run extends LeftRun, Context extends LeftContext> {
  expected: ExpectedRuns;
  context: Context;
  /** That its request names. */
  modelOf(run: Run): string | null;
  /** Null: it is left to the next process. @param abort of the run @throws FermataError: it cannot go on */
  begin(run: Run, context: Context, abort: AbortController): Promise<Begun | null>;
  /** Ends it with what was told of it. */
  fail(run: Run, failure: FermataError): Promise<void>;
}

/** Where several models are served, nobody waits for one that must be loaded for a run. */
export async function goOnWith<Run extends LeftRun, Context extends LeftContext>(
  runs: readonly Run[],
  how: GoingOn<Run, Context>,
): Promise<void> {
  const { active, services } = how.context;
  for (const run of runs) {
    const { id, owner, conversationId } = run;
    const { controller: abort, end } = active.begin();
    const expected = { id, owner, conversationId, model: how.modelOf(run), abort };
    const goesOn = how.expected.add(expected, async () => {
      const begun = await beginOrFail(run, abort, how);
      if (begun === null) end();
      else void begun.ended.then(end);
    });
    if (services.models === undefined) await goesOn;
  }
}

async function beginOrFail<Run extends LeftRun, Context extends LeftContext>(
  run: Run,
  abort: AbortController,
  { context, modelOf, begin, fail }: GoingOn<Run, Context>,
): Promise<Begun | null> {
  const { log } = context;
  const { signal } = abort;
  try {
    return await withModel(modelOf(run), context, { signal, isPatient: true }, async (own) => {
      const begun = await begin(run, own, abort);
      if (begun !== null) own.lease?.until(begun.ended);
      return begun;
    });
  } catch (error) {
    const failure = toFermataError(error);
    // The next process goes on with it.
    if (signal.aborted && failure.code === "engine_closed") return null;
    if (!signal.aborted) log.warn({ run: run.id, err: error }, "a run cannot go on");
    await fail(run, failure).catch((problem: unknown) => {
      // The store tries again, and the others go on.
      log.error({ run: run.id, err: problem }, "the end of a run was not stored");
    });
    return null;
  }
}
