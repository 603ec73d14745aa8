/**
 * The one error table. Every error that leaves Fermata has a stable code, an HTTP status and the type
 * OpenAI's clients expect. Codes are never reused.
 */

type ErrorType = "invalid_request_error" | "not_found_error" | "rate_limit_error" | "server_error";

interface ErrorEntry {
  status: number;
  type: ErrorType;
}

const table = {
  // A client's mistake
  invalid_request: { status: 400, type: "invalid_request_error" },
  invalid_json: { status: 400, type: "invalid_request_error" },
  missing_field: { status: 400, type: "invalid_request_error" },
  invalid_type: { status: 400, type: "invalid_request_error" },
  invalid_schema: { status: 400, type: "invalid_request_error" },
  schema_too_large: { status: 400, type: "invalid_request_error" },
  unsupported_schema: { status: 400, type: "invalid_request_error" },
  invalid_value: { status: 400, type: "invalid_request_error" },
  unsupported_value: { status: 400, type: "invalid_request_error" },
  image_not_supported: { status: 400, type: "invalid_request_error" },
  context_length_exceeded: { status: 400, type: "invalid_request_error" },
  invalid_grammar: { status: 400, type: "invalid_request_error" },
  grammar_failed: { status: 400, type: "invalid_request_error" },
  template_error: { status: 400, type: "invalid_request_error" },
  model_without_template: { status: 400, type: "invalid_request_error" },
  previous_response_not_found: { status: 400, type: "invalid_request_error" },
  unauthorized: { status: 401, type: "invalid_request_error" },
  scope_missing: { status: 403, type: "invalid_request_error" },
  host_not_allowed: { status: 403, type: "invalid_request_error" },
  not_found: { status: 404, type: "not_found_error" },
  method_not_allowed: { status: 405, type: "invalid_request_error" },
  already_decided: { status: 409, type: "invalid_request_error" },
  asked_again: { status: 409, type: "invalid_request_error" },
  mcp_server_unreachable: { status: 424, type: "invalid_request_error" },
  request_timeout: { status: 408, type: "invalid_request_error" },
  run_in_progress: { status: 409, type: "invalid_request_error" },
  body_too_large: { status: 413, type: "invalid_request_error" },
  unsupported_media_type: { status: 415, type: "invalid_request_error" },
  request_quarantined: { status: 422, type: "invalid_request_error" },
  headers_too_large: { status: 431, type: "invalid_request_error" },
  // Load
  queue_full: { status: 429, type: "rate_limit_error" },
  no_free_slot: { status: 503, type: "server_error" },
  model_busy: { status: 503, type: "server_error" },
  schema_timeout: { status: 503, type: "server_error" },
  // A client that was waited for
  tool_output_timeout: { status: 408, type: "invalid_request_error" },
  // Ours
  engine_crashed: { status: 503, type: "server_error" },
  engine_closed: { status: 503, type: "server_error" },
  lease_expired: { status: 500, type: "server_error" },
  out_of_cells: { status: 503, type: "server_error" },
  store_unavailable: { status: 503, type: "server_error" },
  decode_failed: { status: 500, type: "server_error" },
  internal_error: { status: 500, type: "server_error" },
  // Another server's
  endpoint_failed: { status: 502, type: "server_error" },
  // At start: exit code 2, one line
  invalid_option: { status: 500, type: "server_error" },
  addon_missing: { status: 500, type: "server_error" },
  model_not_found: { status: 500, type: "server_error" },
  model_invalid: { status: 500, type: "server_error" },
  out_of_memory: { status: 500, type: "server_error" },
  no_threads: { status: 500, type: "server_error" },
  rpc_server_unreachable: { status: 502, type: "server_error" },
  store_invalid: { status: 500, type: "server_error" },
  store_in_use: { status: 500, type: "server_error" },
  agents_invalid: { status: 500, type: "server_error" },
  mcp_config_invalid: { status: 500, type: "server_error" },
  mcp_login_failed: { status: 500, type: "server_error" },
  mcp_start_failed: { status: 500, type: "server_error" },
  port_in_use: { status: 500, type: "server_error" },
  // Pulling a model: exit code 2, one line
  hub_unreachable: { status: 502, type: "server_error" },
  hub_not_found: { status: 502, type: "server_error" },
  hub_denied: { status: 502, type: "server_error" },
  hub_failed: { status: 502, type: "server_error" },
  checksum_mismatch: { status: 502, type: "server_error" },
  disk_full: { status: 500, type: "server_error" },
  // Used wrongly as a library
  not_held: { status: 500, type: "server_error" },
  cancelled: { status: 499, type: "server_error" },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof table;

/** A prompt that does not fit, in tokens. */
export interface PromptSize {
  promptTokens: number;
  contextSize: number;
}

export class FermataError extends Error {
  override readonly name = "FermataError";
  readonly code: ErrorCode;
  /** The request field or option at fault, in dotted form (`messages[2].content`), or null. */
  readonly param: string | null;
  /** Of context_length_exceeded, where it was counted. */
  readonly size: PromptSize | null;

  constructor(
    code: ErrorCode,
    message: string,
    options: { param?: string | undefined; size?: PromptSize | null; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.param = options.param ?? null;
    this.size = options.size ?? null;
  }

  get status(): number {
    return table[this.code].status;
  }

  get type(): ErrorType {
    return table[this.code].type;
  }
}

/** @param param the option, argument or file at fault */
export function invalidOption(message: string, param: string, cause?: unknown): FermataError {
  return new FermataError("invalid_option", message, { param, cause });
}
