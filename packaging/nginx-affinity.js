// Which Fermata server a request belongs to, for nginx.conf. nginx runs it with its module njs, which knows less of
// the language than Node.

const headerOf = (request, name) => request.headersIn[name] || "";

function bodyOf(request) {
  try {
    const body = JSON.parse(request.requestText);
    return body !== null && typeof body === "object" ? body : {};
  } catch (error) {
    // No body, none in JSON, or more than client_body_buffer_size.
    return {};
  }
}

/** The text of a message, of a list of its parts, or of what has neither. */
function textOf(value) {
  if (typeof value === "string") return value;
  const first = Array.isArray(value) ? value[0] : undefined;
  if (first && typeof first.text === "string") return first.text;
  return first && first.content !== undefined ? textOf(first.content) : "";
}

/** The name in an id that is sent: /v1/responses/resp_r1.…, previous_response_id, conversation. */
function replica(request) {
  const named = headerOf(request, "x-fermata-replica");
  if (named !== "") return named;
  const body = bodyOf(request);
  const conversation = body.conversation && (body.conversation.id || body.conversation);
  const id = String(body.previous_response_id || conversation || request.uri);
  const found = /(?:chatcmpl-|resp_|conv_)([a-z0-9-]+)\.[0-9a-f]{24,48}(?:\/|$)/.exec(id);
  return found === null ? "" : found[1];
}

/** The system message of a body, and the first message behind it. */
function beginningOf(body) {
  const messages = body.messages || body.input || [];
  const hasSystem =
    Array.isArray(messages) && messages[0] && /^(system|developer)$/.test(messages[0].role);
  const system =
    textOf(body.instructions) || textOf(body.system) || (hasSystem ? textOf(messages) : "");
  const first = textOf(hasSystem ? messages.slice(1) : messages) || textOf(body.prompt);
  return { system, first };
}

/** What has no text belongs to no conversation, and goes to any of them. */
function keyOf(request, body, text) {
  if (text === "") return request.variables.request_id;
  const owner = headerOf(request, "authorization") + "|" + headerOf(request, "x-api-key");
  return [owner, body.model || "", text].join("|");
}

/** Equal for all requests of a conversation: its key, or what it began with. */
function conversation(request) {
  const body = bodyOf(request);
  const given = body.prompt_cache_key || (body.metadata && body.metadata.user_id);
  const began = beginningOf(body);
  return keyOf(request, body, given || [began.system, began.first].filter(Boolean).join("|"));
}

/** Equal for all conversations with the same instructions. */
function prefix(request) {
  const body = bodyOf(request);
  const began = beginningOf(body);
  return keyOf(request, body, began.system || began.first);
}

export default { replica, conversation, prefix };
