/**
 * The hub's protocol, as much of it as pulling needs: the list of a repository's files, and a file from
 * some byte on. The token goes to the hub's own origin and nowhere else.
 *
 * Why not @huggingface/hub (read at 2.17.5; 11 packages, 12 MB): its download to a folder begins at the first
 * byte after each cut, checks no checksum, prints to standard output (where the path belongs) and lets two
 * processes write one file. Resuming, checking and locking would stay here, and its part, two requests,
 * is what this file does. Of @huggingface/gguf the engine needs nothing: src/engine/gguf-header.ts also
 * refuses what would abort llama.cpp.
 */

import { FermataError, invalidOption } from "../../errors.ts";

interface HubOptions {
  /** `https://huggingface.co`, or what HF_ENDPOINT says. */
  endpoint: string;
  token: string | undefined;
  repository: string;
  revision: string;
  signal: AbortSignal;
}

export interface HubFile {
  /** Within the repository; relative, without `..`. */
  path: string;
  size: number;
  checksum: Checksum;
}

/** sha256 of the content; or git's object name of it, for files that the hub does not keep apart. */
export interface Checksum {
  kind: "sha256" | "git";
  /** Lower-case hexadecimal. */
  value: string;
}

const mostRedirects = 10;
const mostPages = 100;
/** Until the headers of an answer are there. */
const answerMs = 60_000;

export class Hub {
  readonly #options: HubOptions;
  readonly #origin: string;
  /** Of the revision, once it was asked for. */
  #commit: string | null = null;

  /** @throws FermataError invalid_option */
  constructor(options: HubOptions) {
    this.#options = { ...options, endpoint: options.endpoint.replace(/\/+$/, "") };
    checkRepository(options.repository);
    let url: URL | undefined;
    try {
      url = new URL(this.#options.endpoint);
    } catch {
      // Said below.
    }
    if (url?.protocol !== "https:" && url?.protocol !== "http:") {
      throw invalidOption(
        `${options.endpoint} is not the address of a hub. Give one like https://huggingface.co.`,
        "endpoint",
      );
    }
    this.#origin = url.origin;
  }

  /**
   * The commit that the revision names now. Everything that is read here is of this commit, whatever is pushed
   * meanwhile. @throws FermataError hub_…
   */
  async commit(): Promise<string> {
    if (this.#commit !== null) return this.#commit;
    const { endpoint, repository, revision } = this.#options;
    const path = `api/models/${repository}/revision/${encodeURIComponent(revision)}`;
    const answer = await this.#json(await this.#get(`${endpoint}/${path}`, {}));
    const { sha } = (answer ?? {}) as { sha?: unknown };
    if (typeof sha !== "string" || !gitName.test(sha))
      throw this.#strange(`it names no commit for ${revision}`);
    if (gitName.test(revision) && sha !== revision)
      throw this.#strange(`it answers with commit ${sha} when asked for ${revision}`);
    this.#commit = sha;
    return sha;
  }

  /** Every file of the repository. @throws FermataError hub_… */
  async files(): Promise<HubFile[]> {
    const { endpoint, repository } = this.#options;
    const path = `api/models/${repository}/tree/${await this.commit()}`;
    let next: string | null = `${endpoint}/${path}?recursive=true`;
    const files: HubFile[] = [];
    for (let page = 0; next !== null && page < mostPages; page++) {
      const response: Response = await this.#get(next, {});
      const entries = await this.#json(response);
      if (!Array.isArray(entries)) throw this.#strange("its list of files is no list");
      for (const entry of entries) {
        const file = readEntry(entry);
        if (file !== null) files.push(file);
      }
      next = nextPage(response);
    }
    return files;
  }

  /** The answer for a file's bytes from `start` on: 200 (all of it), 206, or 416. @throws FermataError */
  async open(path: string, start: number, signal: AbortSignal): Promise<Response> {
    const { endpoint, repository } = this.#options;
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    const url = `${endpoint}/${repository}/resolve/${await this.commit()}/${encoded}`;
    // Compressed bytes could not be counted.
    const headers: Record<string, string> = { "accept-encoding": "identity" };
    if (start > 0) headers["range"] = `bytes=${start}-`;
    return this.#get(url, headers, signal);
  }

  /** Follows redirects by hand: fetch itself would not tell whom it gives the token to. */
  async #get(
    address: string,
    headers: Record<string, string>,
    signal: AbortSignal = this.#options.signal,
  ): Promise<Response> {
    let url = new URL(address);
    for (let redirects = 0; redirects <= mostRedirects; redirects++) {
      const response = await this.#request(url, headers, signal);
      const location = response.headers.get("location");
      if (response.status < 300 || response.status >= 400 || location === null) {
        if (response.ok || response.status === 416) return response;
        throw await this.#refusal(response, url);
      }
      await response.body?.cancel();
      const target = new URL(location, url);
      if (url.protocol === "https:" && target.protocol !== "https:") {
        throw this.#strange(`it sends from https to ${target.protocol}//${target.host}`);
      }
      url = target;
    }
    throw this.#strange(`it redirects more than ${mostRedirects} times`);
  }

  async #request(
    url: URL,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Response> {
    const { token } = this.#options;
    const own = url.origin === this.#origin && token !== undefined;
    const slow = new AbortController();
    const timer = setTimeout(() => slow.abort(), answerMs);
    try {
      return await fetch(url, {
        redirect: "manual",
        signal: AbortSignal.any([signal, slow.signal]),
        headers: {
          "user-agent": "fermata",
          ...headers,
          ...(own ? { authorization: `Bearer ${token}` } : {}),
        },
      });
    } catch (cause) {
      signal.throwIfAborted();
      const reason = slow.signal.aborted ? "it does not answer" : reasonOf(cause);
      const message = `${url.host} cannot be reached: ${reason}. Is the machine online? HF_ENDPOINT or --endpoint names another hub.`;
      throw new FermataError("hub_unreachable", message, { param: "endpoint", cause });
    } finally {
      clearTimeout(timer);
    }
  }

  async #refusal(response: Response, url: URL): Promise<FermataError> {
    const { repository, revision, token } = this.#options;
    const { status } = response;
    const said = (await response.text().catch(() => "")).slice(0, 300).trim();
    const code = response.headers.get("x-error-code");
    if (url.origin === this.#origin && (status === 401 || status === 403)) {
      const why =
        code === "GatedRepo"
          ? "is gated: accept its terms on its page, then give a token of that account"
          : "does not exist, or is private: check its name, or give a token that may read it";
      const given = token === undefined ? "" : " The token that was given may not.";
      const message = `${repository} ${why} (HF_TOKEN or --token).${given}`;
      return new FermataError("hub_denied", message, { param: "token" });
    }
    if (status === 404) {
      const what =
        code === "RevisionNotFound"
          ? `${repository} has no revision ${revision}`
          : code === "EntryNotFound"
            ? `${repository} has no file ${decodeURIComponent(url.pathname.split("/").at(-1)!)}`
            : `${url.host} has no repository ${repository} with revision ${revision}`;
      return new FermataError("hub_not_found", `${what}.`, { param: "hf" });
    }
    const message = `${url.host} answered with status ${status}${said === "" || said.startsWith("<") ? "" : `: ${said}`}.`;
    const isPassing = status === 429 || status >= 500;
    return new FermataError(isPassing ? "hub_unreachable" : "hub_failed", message, { param: "hf" });
  }

  async #json(response: Response): Promise<unknown> {
    try {
      return await response.json();
    } catch {
      throw this.#strange("its answer is no JSON");
    }
  }

  #strange(what: string): FermataError {
    return new FermataError("hub_failed", `${this.#options.endpoint} is no hub: ${what}.`, {
      param: "endpoint",
    });
  }
}

/** It may be there again later. */
export function isUnreachable(error: unknown): error is FermataError {
  return error instanceof FermataError && error.code === "hub_unreachable";
}

/** `owner/name`: it becomes part of paths here and of addresses there. */
function checkRepository(repository: string): void {
  const names = repository.split("/");
  const sound = names.every((name) => /^[\w.-]+$/.test(name) && !/^\.+$/.test(name));
  if (names.length === 2 && sound) return;
  throw invalidOption(
    `"${repository}" is not a repository. Write OWNER/NAME, as in Qwen/Qwen3-8B-GGUF.`,
    "hf",
  );
}

const gitName = /^[0-9a-f]{40}$/;
const sha256Name = /^[0-9a-f]{64}$/;

/** Null: a folder, or something that is not understood. Paths and checksums become parts of paths here. */
function readEntry(entry: unknown): HubFile | null {
  const { type, path, size, oid, lfs } = (entry ?? {}) as Record<string, unknown>;
  if (type !== "file" || typeof path !== "string" || !isSafePath(path)) return null;
  const large = lfs as { oid?: unknown; size?: unknown } | undefined;
  const file = large ?? { oid, size };
  const value = String(file.oid)
    .replace(/^sha256:/, "")
    .toLowerCase();
  if (!isSize(file.size) || !(large === undefined ? gitName : sha256Name).test(value)) return null;
  const kind = large === undefined ? "git" : "sha256";
  return { path, size: file.size, checksum: { kind, value } };
}

function isSize(size: unknown): size is number {
  return Number.isSafeInteger(size) && (size as number) >= 0;
}

function isSafePath(path: string): boolean {
  const names = path.split("/");
  return names.every(
    (name) => name !== "" && name !== "." && name !== ".." && !/[\\:\0]/.test(name),
  );
}

function nextPage(response: Response): string | null {
  const link = /<([^>]+)>\s*;\s*rel="?next"?/.exec(response.headers.get("link") ?? "");
  return link === null ? null : new URL(link[1]!, response.url).href;
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const { code, message } = cause as { code?: string; message?: string };
  return message || code || String(cause);
}
