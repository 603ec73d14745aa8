/** What a started server says: the model, how it is spoken to, its tools, the machine, and a line to try. */

import type { DeviceUse } from "../engine/fit.ts";
import type { MissingDevice } from "../engine/missing-device.ts";
import type { CacheInfo, ModelInfo } from "../engine/types.ts";

export interface BannerFacts {
  url: string;
  modelId: string;
  /** Of a folder. Null: one model is served. */
  models: { count: number; most: number } | null;
  model: ModelInfo;
  cache: CacheInfo;
  deviceUse: DeviceUse;
  /** Null: there is one, or the build knows none. */
  missingDevice: MissingDevice | null;
  chat: ChatText;
  systemInfo: string;
  /** What the tools take of the prompt. Null: there are none, or nothing is known of it. */
  toolShare: string | null;
  needsKey: boolean;
  /** Told here and nowhere else. */
  generatedKey: string | undefined;
  hasPage: boolean;
  /** There are tools, and in conversations a person is asked about those that are not read-only. */
  asksPerson: boolean;
}

export function bannerText({
  url,
  modelId,
  models,
  model,
  cache,
  deviceUse,
  missingDevice,
  chat,
  systemInfo,
  toolShare,
  needsKey,
  generatedKey,
  hasPage,
  asksPerson,
}: BannerFacts): string {
  const [path, body] =
    chat.subject === "Tools"
      ? [
          "chat/completions",
          '{"messages": [{"role": "user", "content": "Hello!"}], "stream": true}',
        ]
      : ["completions", '{"prompt": "Once upon a time", "stream": true}'];
  const key = needsKey ? ' -H "authorization: Bearer $FERMATA_KEY"' : "";
  return [
    "",
    `Model     ${modelId} (${model.description}, ${megabytes(model.sizeBytes)})`,
    ...(models === null
      ? []
      : [
          `Models    ${models.count} to choose from, ${models.most} in memory at most (--models-max); GET /v1/models lists them`,
        ]),
    `Context   ${contextText(cache, model)}, ${cache.slots} slots, ${cache.layout}, ${megabytes(cache.bytes)}`,
    ...(deviceUse.devices.length === 0 ? [] : [`GPU       ${deviceText(deviceUse)}`]),
    ...(missingDevice === null ? [] : [`GPU       none: ${missingText(missingDevice)}`]),
    chatLine(chat),
    ...(toolShare === null ? [] : [`Prompt    ${toolShare}`]),
    ...(asksPerson
      ? [
          "Approval  the page and fermata chat ask before tools that are not read-only; other APIs run them (--approval)",
        ]
      : []),
    `Hardware  ${hardware(systemInfo)}`,
    `Serving   ${url}/v1`,
    ...(hasPage
      ? [`Page      ${url}${generatedKey === undefined ? "" : `/#key=${generatedKey}`}`]
      : []),
    ...(generatedKey === undefined
      ? []
      : [`Key       ${generatedKey} (of this run: tools are never open to everybody)`]),
    "",
    "Try it:",
    `  curl -N ${url}/v1/${path} -H "content-type: application/json"${key} -d '${body}'`,
    "",
    "",
  ].join("\n");
}

function contextText({ cellsPerSequence: size }: CacheInfo, { trainedContext }: ModelInfo): string {
  const trained = size < trainedContext ? ` (trained for ${trainedContext}: --ctx-size)` : "";
  return `${size} tokens per sequence${trained}`;
}

function deviceText({ layers, devices }: DeviceUse): string {
  const places = devices.map(({ name, bytes }) => `${megabytes(bytes)} on ${name}`);
  const count = layers < 0 ? "all layers" : `${layers} layers (--n-gpu-layers)`;
  return `${count}, ${places.join(", ")}`;
}

function missingText({ what, remedy }: MissingDevice): string {
  return `${what}\n          -> ${remedy}`;
}

/** llama.cpp's list of what it uses, without the `= 1` behind each. */
function hardware(systemInfo: string): string {
  const [build, ...uses] = systemInfo.split(" | ");
  return [build, uses.join(" ").replaceAll(" = 1", "").replaceAll(" : ", ": ")].join(", ");
}

function megabytes(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

interface ChatFacts {
  hasTemplate: boolean;
  hasToolSection: boolean;
  toolFormat: string;
}

export interface ChatText {
  subject: "Tools" | "Chat";
  text: string;
}

export function chatText({ hasTemplate, hasToolSection, toolFormat }: ChatFacts): ChatText {
  if (!hasTemplate)
    return {
      subject: "Chat",
      text: "none: the model has no chat template; give one with --chat-template FILE",
    };
  const way = hasToolSection
    ? "the template's own section"
    : "generic prompt, since the template has no tool section";
  return { subject: "Tools", text: `${way}; format ${toolFormat}` };
}

/** A line of the banner and of doctor's report. */
export function chatLine({ subject, text }: ChatText): string {
  return `${subject.padEnd(9)} ${text}`;
}
