/**
 * Calls that wait for a person's consent, or for the answer to a question of their server. The sequence stays held meanwhile. Only `decide` answers a
 * call, by an id that was drawn at random: nothing that a model or a tool writes can.
 */

import { randomBytes } from "node:crypto";
import { FermataError } from "../errors.ts";
import { compileValidator } from "../guidance/validator.ts";
import { RecentMap } from "../recent-map.ts";
import type { PersonQuestion } from "./types.ts";

export interface ApprovalRequest {
  callId: string;
  /** Whose request it is: only this owner sees and answers it. */
  owner: string;
  server: string;
  toolName: string;
  /** JSON text as the model wrote it. */
  arguments: string;
  /** The call runs already. */
  question?: PersonQuestion | undefined;
  /** The server ended while the call ran, and asks whether it runs again. */
  mayHaveRun?: boolean | undefined;
  /** Of this question: another one about the same call has another. Default: a new one. */
  askingId?: string | undefined;
  /** Milliseconds since 1970. Default: now. */
  askedAt?: number | undefined;
  /** Before anything is said of it: rejects where another process goes on with the call. */
  confirm?: (() => Promise<void>) | undefined;
  /** Called with the decision, which counts once this has resolved. Default: `confirm`. */
  keep?: ((decision: Decision) => Promise<void>) | undefined;
}

export interface PendingApproval extends Omit<ApprovalRequest, "confirm" | "keep"> {
  askingId: string;
  askedAt: number;
}

export type Decision =
  /** `content`: the answer to a question. */
  | { approved: true; content: Readonly<Record<string, unknown>> }
  /** `reason`: a person's, for the model. */
  | { approved: false; by: "person" | "cancelled"; reason?: string | undefined }
  | { approved: false; by: "timeout" };

export interface PersonDecision {
  /** `cancel`: the person leaves a question without an answer; a call is denied. */
  decision: "approve" | "deny" | "cancel";
  reason?: string | undefined;
  content?: Readonly<Record<string, unknown>> | undefined;
  /** The question that is answered. Undefined: it does not consent to a call that may have run. */
  askingId?: string | undefined;
}

/**
 * What became of a question. `decided`: a person has answered it, or the time is over. `dropped`: it is not asked here any more;
 * where its run goes on in another process, that one asks again.
 */
export type QuestionEnd = "decided" | "dropped";

/** Where other processes see what is asked here. */
export interface ApprovalBoard {
  /** Resolves when they see it. */
  show(question: PendingApproval): Promise<void>;
  remove(callId: string, end: QuestionEnd): Promise<void>;
  /** What a process asked that is gone was decided. */
  settle(owner: string, callId: string): Promise<void>;
}

interface Waiting extends ApprovalRequest {
  askingId: string;
  askedAt: number;
  settle(decision: Decision): void;
  isLate: boolean;
  isOver: boolean;
}

const timedOut = { approved: false, by: "timeout" } as const;
const stopped = { approved: false, by: "cancelled" } as const;

/**
 * Calls that were decided here are remembered, so that a second answer can be told from one to nothing. One that was only
 * stopped is not: another process may ask about it.
 */
const maxRemembered = 1000;

export class Approvals {
  /** How long a call waits for its answer; it is denied then. Milliseconds. */
  readonly timeoutMs: number;
  readonly counts = { asked: 0, approved: 0, denied: 0 };
  readonly #waiting = new Map<string, Waiting>();
  readonly #decided = new RecentMap<string, string>(maxRemembered);
  #board: ApprovalBoard | null = null;
  /** What the board is being told, by calls. */
  readonly #told = new Map<string, Promise<void>>();

  constructor({ timeoutMs = 300_000 }: { timeoutMs?: number | undefined } = {}) {
    this.timeoutMs = timeoutMs;
  }

  showOn(board: ApprovalBoard): void {
    this.#board = board;
  }

  /** Never rejects. A call whose signal is aborted counts as denied. @param asked called once the call can be decided */
  async ask(
    request: ApprovalRequest,
    signal: AbortSignal,
    asked: () => void = () => {},
  ): Promise<Decision> {
    if (signal.aborted) return stopped;
    const callId = this.#uniqueId(request.callId);
    this.counts.asked += 1;
    let settle = (_decision: Decision): void => {};
    const decided = new Promise<Decision>((resolve) => (settle = resolve));
    const late = (): void => {
      waiting.isLate = true;
      // A decision that is being kept came in time.
      if (this.#waiting.has(callId)) this.#settle(waiting, timedOut).catch(() => {});
    };
    const stop = (): void => settle(stopped);
    const { askedAt = Date.now(), askingId = newAskingId() } = request;
    // Asked by an earlier process, maybe before the clock was set back: never longer than a new one.
    const waitedMs = Math.max(0, Date.now() - askedAt);
    const timer = setTimeout(late, Math.max(0, this.timeoutMs - waitedMs));
    timer.unref();
    signal.addEventListener("abort", stop, { once: true });
    const asking = { ...request, callId, askingId, askedAt };
    const waiting: Waiting = { ...asking, settle, isLate: false, isOver: false };
    this.#waiting.set(callId, waiting);
    await this.#tellBoard(callId, (board) => board.show(pendingOf(waiting)));
    asked();
    const decision = await decided;
    waiting.isOver = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    this.#waiting.delete(callId);
    this.counts[decision.approved ? "approved" : "denied"] += 1;
    if (decision !== stopped) this.#remember({ ...request, callId });
    const end = decision === stopped ? "dropped" : "decided";
    void this.#tellBoard(callId, (board) => board.remove(callId, end));
    return decision;
  }

  /** In order: one call may ask again at once. Never rejects: where the board cannot be reached, the call is decided here all the same. */
  async #tellBoard(callId: string, tell: (board: ApprovalBoard) => Promise<void>): Promise<void> {
    const board = this.#board;
    if (board === null) return;
    const before = this.#told.get(callId);
    const told = (async () => {
      await before;
      await tell(board).catch(() => {});
    })();
    this.#told.set(callId, told);
    await told;
    if (this.#told.get(callId) === told) this.#told.delete(callId);
  }

  /** Of one owner, or all; the longest waiting first. */
  pending(owner?: string): PendingApproval[] {
    return [...this.#waiting.values()]
      .filter((waiting) => owner === undefined || waiting.owner === owner)
      .map(pendingOf);
  }

  /** An earlier process was told the decision, and this one goes on with it: a decision that is sent again comes too late. */
  recall(owner: string, callId: string): void {
    this.#remember({ owner, callId });
    this.#board?.settle(owner, callId).catch(() => {});
  }

  /** Such a call waits here. */
  waits(owner: string, callId: string): boolean {
    return this.#waiting.get(callId)?.owner === owner;
  }

  /** Such a call was decided here; another process may have asked about it since. */
  hasDecided(owner: string, callId: string): boolean {
    return this.#decided.get(callId) === owner;
  }

  /**
   * Resolves when the decision is kept.
   * @throws FermataError not_found (no such call of this owner) | already_decided | asked_again | invalid_value, and what `confirm` and
   * `keep` throw
   */
  async decide(owner: string, callId: string, said: PersonDecision): Promise<void> {
    const waiting = this.#waiting.get(callId);
    if (waiting === undefined || waiting.owner !== owner) {
      if (this.#decided.get(callId) === owner) {
        throw alreadyDecided(callId);
      }
      const message = `No call "${callId.slice(0, 100)}" waits for a decision. GET /api/approvals lists the waiting calls.`;
      throw new FermataError("not_found", message, { param: "call_id" });
    }
    try {
      checkDecision(waiting, said);
    } catch (refusal) {
      // Another process may ask something else by now.
      await waiting.confirm?.();
      throw refusal;
    }
    const { decision, reason, content = {} } = said;
    await this.#settle(
      waiting,
      decision === "approve"
        ? { approved: true, content }
        : { approved: false, by: decision === "deny" ? "person" : "cancelled", reason },
    );
  }

  /** That the time is over is kept as a person's decision is: it does not count where another process has the call. */
  async #settle(waiting: Waiting, decision: Decision): Promise<void> {
    const { callId, confirm, keep = confirm } = waiting;
    // At once: a second decision must not find it.
    this.#waiting.delete(callId);
    this.#remember(waiting);
    try {
      await keep?.(decision);
    } catch (error) {
      // Nothing was decided, also where the call has ended meanwhile: another process may have it.
      this.#decided.delete(callId);
      if (!waiting.isOver) this.#waiting.set(callId, waiting);
      if (waiting.isLate) waiting.settle(timedOut);
      throw error;
    }
    waiting.settle(decision);
  }

  /** Ids of a remote agent's calls are its server's: two of them may be the same. */
  #uniqueId(callId: string): string {
    for (let count = 1; ; count++) {
      const id = count === 1 ? callId : `${callId}.${count}`;
      if (!this.#waiting.has(id)) return id;
    }
  }

  #remember({ callId, owner }: Pick<ApprovalRequest, "callId" | "owner">): void {
    this.#decided.set(callId, owner);
  }
}

export function alreadyDecided(callId: string): FermataError {
  const message = `The call "${callId}" already has a decision.`;
  return new FermataError("already_decided", message, { param: "call_id" });
}

/**
 * A process checks it for its own questions. One of an earlier Fermata does not, and its questions have no name.
 * @throws FermataError asked_again
 */
export function checkNamed(
  asked: Pick<ApprovalRequest, "callId" | "mayHaveRun" | "askingId">,
  askingId: string | undefined,
): void {
  if (askingId !== undefined && askingId !== asked.askingId) throw askedAgain(asked);
}

/** A decision that is sent again must not answer what was asked since, which its sender has not seen. */
function askedAgain({
  callId,
  mayHaveRun = false,
}: Pick<ApprovalRequest, "callId" | "mayHaveRun">): FermataError {
  const why = mayHaveRun
    ? "may have run: the server ended meanwhile, so it is asked about again"
    : "is asked about again, with another question";
  const remedy =
    'Look at it in GET /api/approvals, and send the decision again with its "asking_id".';
  const message = `The call "${callId}" ${why}. ${remedy}`;
  return new FermataError("asked_again", message, { param: "asking_id" });
}

export function newAskingId(): string {
  return `asking_${randomBytes(12).toString("hex")}`;
}

function pendingOf(waiting: Waiting): PendingApproval {
  const {
    settle: _settle,
    confirm: _confirm,
    keep: _keep,
    isLate: _late,
    isOver: _over,
    ...pending
  } = waiting;
  return pending;
}

/** @throws FermataError asked_again | invalid_value */
function checkDecision(
  waiting: Waiting,
  { decision, content = {}, askingId }: PersonDecision,
): void {
  checkNamed(waiting, askingId);
  const mayGoUnnamed = decision !== "approve" || waiting.mayHaveRun !== true;
  if (askingId === undefined && !mayGoUnnamed) throw askedAgain(waiting);
  if (decision === "approve") checkContent(waiting, content);
}

/** @throws FermataError invalid_value */
function checkContent({ question }: ApprovalRequest, content: object): void {
  if (question?.schema === undefined) {
    if (Object.keys(content).length === 0) return;
    const problem = '"content" has no effect: nothing is asked but a yes or no. Leave it out.';
    throw new FermataError("invalid_value", problem, { param: "content" });
  }
  const fault = compileValidator(question.schema)(content);
  if (fault?.isCertain !== true) return;
  const problem = `"content" does not fit the question: ${fault.problem}. Its schema is in GET /api/approvals.`;
  throw new FermataError("invalid_value", problem, { param: "content" });
}
