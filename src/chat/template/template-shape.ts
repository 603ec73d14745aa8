/** What a template takes: found out by rendering it, and where that tells nothing by its text. */

/** How messages are put before a template. */
export interface TemplateShape {
  /**
   * The template's input for tools; null: it writes them nowhere. `functions` is the tools as JSON text, the others
   * are lists.
   */
  toolInput: "tools" | "functions" | "xml_tools" | null;
  /** It writes the calls of an assistant's message. Known where `toolInput` is null. */
  writesCalls: boolean;
  /** It knows the role `tool`. */
  hasToolRole: boolean;
  /** Without it a system message becomes the beginning of the next one. */
  hasSystemRole: boolean;
  /**
   * Of system messages in a row it writes the first before the tools and each other one behind them, as a system turn of
   * its own. Others refuse a second one, leave it out, or write the tools elsewhere.
   */
  takesSystemsBehindTools: boolean;
  /** It takes a user's message behind another one, as clients send them. Mistral's and Gemma 2's do not. */
  takesUsersInRow: boolean;
  /** It takes a user's message behind tool results. */
  takesUserBehindResults: boolean;
  /** Arguments as JSON text; else as an object. */
  wantsArgumentsAsText: boolean;
  /** Where an assistant's reasoning goes. `blocks`: into a content that is a list. */
  reasoningField: "reasoning_content" | "thinking" | "blocks";
  /** An assistant message with calls and reasoning has no content. */
  hasContentOrReasoning: boolean;
  /** A turn may have several calls; Llama 3's templates refuse more than one. */
  takesSeveralCalls: boolean;
  /** Mistral's templates insist on ids of nine letters and digits. */
  wantsShortIds: boolean;
  /** It writes a call's id and not its name: Kimi K2's, whose model has both in the id. */
  showsIdsAsNames: boolean;
  /** Tool results belong to the message with the calls, and tool messages are unknown: Gemma 4 at first. */
  joinsToolResults: boolean;
  /** Gemma 4 does not open the model's turn behind a turn with text and calls. */
  forgottenOpening: { after: string; opening: string } | null;
}

/** @returns the text, or null when the template fails */
type TryRender = (inputs: { messages: unknown[] } & ToolInputs) => string | null;

type ToolInputs = { tools?: unknown[]; functions?: string; xml_tools?: unknown[] };

const MARK = "QZX";
const CALLED = "qzx_called";
const RESULT = "qzx_result";
const FIRST = "qzx_first";
const SECOND = "qzx_second";

export function probeShape(source: string, render: TryRender): TemplateShape {
  const asObject = { [MARK]: MARK };
  const takesCall = (args: unknown, count = 1): boolean => render(round(args, count)) !== null;
  const takesObject = takesCall(asObject);
  const fittingArguments = takesObject ? asObject : JSON.stringify(asObject);
  const toolInput = findToolInput(render);
  return {
    toolInput,
    writesCalls: render(round(fittingArguments, 1))?.includes(MARK) === true,
    hasToolRole: takesResults(fittingArguments, render),
    hasSystemRole: takesSystem(render),
    takesSystemsBehindTools: takesSystemsBehind(toolInput, render),
    takesUsersInRow:
      render({ messages: [user, user] }) !== null || render({ messages: [user] }) === null,
    takesUserBehindResults: takesUserBehind(round(fittingArguments, 1), render),
    wantsArgumentsAsText: !takesObject && takesCall(JSON.stringify(asObject)),
    takesSeveralCalls: !takesObject || takesCall(asObject, 2),
    reasoningField: /\[['"]type['"]\] == ['"]thinking['"]/u.test(source)
      ? "blocks"
      : /\bmessage\.thinking\b/u.test(source) && !source.includes("reasoning_content")
        ? "thinking"
        : "reasoning_content",
    hasContentOrReasoning: source.includes("Cannot pass both content and thinking"),
    showsIdsAsNames: showsIds(fittingArguments, render),
    wantsShortIds: /length\s*!=\s*9\b/u.test(source),
    joinsToolResults: source.includes("['tool_responses']") && !source.includes("tool_call_id"),
    forgottenOpening: source.includes("<|tool_call>call:")
      ? { after: "<turn|>\n", opening: "<|turn>model\n" }
      : null,
  };
}

const user = { role: "user", content: "Hi" };

/** Of a call alone: tools and results are shown with their names. */
function showsIds(args: unknown, render: TryRender): boolean {
  const text = render({ messages: round(args, 1).messages.slice(0, 2) });
  return text !== null && text.includes(idOf(0)) && !text.includes(CALLED);
}

function takesSystem(render: TryRender): boolean {
  const text = render({ messages: [{ role: "system", content: MARK }, user] });
  // One that fails without a system message too says nothing about it.
  if (text === null) return render({ messages: [user] }) === null;
  return text.includes(MARK);
}

/** Where the template writes no tools, a generic prompt tells them at the end of the first message. */
function takesSystemsBehind(toolInput: TemplateShape["toolInput"], render: TryRender): boolean {
  const inputs = toolInput === null ? {} : toolInputs(toolInput);
  const first = { role: "system", content: FIRST };
  const textOf = (...between: { role: string; content: string }[]): string | null =>
    render({ messages: [first, ...between, user], ...inputs });
  const [one, two] = [textOf(), textOf({ role: "system", content: SECOND })];
  // Llama 3's writes whatever follows the first as the user's.
  if (one === null || two === null || two === textOf({ role: "user", content: SECOND }))
    return false;
  let length = 0;
  while (length < one.length && one[length] === two[length]) length += 1;
  const [before, after] = [one.slice(0, length), one.slice(length)];
  const told = before.indexOf(FIRST);
  const areToolsBetween = toolInput === null || before.indexOf(CALLED) > told;
  if (told < 0 || !areToolsBetween || !two.endsWith(after)) return false;
  const added = two.slice(length, two.length - after.length);
  return added.split(SECOND).length === 2 && !added.includes(CALLED);
}

function takesUserBehind(
  { messages, tools }: ReturnType<typeof round>,
  render: TryRender,
): boolean {
  if (render({ messages, tools }) === null) return true;
  return render({ messages: [...messages, user], tools }) !== null;
}

function toolInputs(name: keyof ToolInputs): ToolInputs {
  const list = [tool()];
  return { [name]: name === "functions" ? JSON.stringify(list) : list };
}

/** Some templates write tools only where there is a system message. */
function findToolInput(render: TryRender): TemplateShape["toolInput"] {
  const texts = (name: keyof ToolInputs): (string | null)[] =>
    [[user], [{ role: "system", content: "Be brief." }, user]].map((messages) =>
      render({ messages, ...toolInputs(name) }),
    );
  // One that refuses them says nothing of them.
  if (texts("tools").every((text) => text === null)) return "tools";
  const names = ["tools", "functions", "xml_tools"] as const;
  return names.find((name) => texts(name).some((text) => text?.includes(CALLED))) ?? null;
}

/** A template that writes whatever role there is writes a made-up one in the same way. */
function takesResults(args: unknown, render: TryRender): boolean {
  const text = render(round(args, 1));
  const madeUp = render(round(args, 1, "qzx_role"))?.replaceAll("qzx_role", "tool");
  return text !== null && text.includes(RESULT) && text !== madeUp;
}

function tool(): unknown {
  const parameters = {
    type: "object",
    properties: { [MARK]: { type: "string", description: "" } },
    required: [],
  };
  return { type: "function", function: { name: CALLED, description: "", parameters } };
}

function idOf(index: number): string {
  return `call0000${index}`;
}

/** A turn with so many equal calls and their results. */
function round(
  args: unknown,
  count: number,
  resultRole = "tool",
): { messages: unknown[]; tools: unknown[] } {
  const ids = Array.from({ length: count }, (_, index) => idOf(index));
  const calls = ids.map((id) => ({
    id,
    type: "function",
    function: { name: CALLED, arguments: args },
  }));
  return {
    messages: [
      user,
      { role: "assistant", content: "", tool_calls: calls },
      ...ids.map((id) => ({ role: resultRole, tool_call_id: id, name: CALLED, content: RESULT })),
    ],
    tools: [tool()],
  };
}
