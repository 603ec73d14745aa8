/** GET /props and /slots, as llama-server has them: what its clients and load balancers ask for. */

import type { Route } from "../route.ts";
import { answer, boolean, list, object, string, whole } from "../body/shapes.ts";
import { FermataError } from "../../errors.ts";
import { generationSettings } from "../answer/generation-settings.ts";
import { fingerprintOf } from "../answer/completion-parts.ts";
import { wantedModel } from "../answer/target.ts";
import type { RouteContext } from "../context.ts";

/** llama-server's number for "draw one". */
const drawnSeed = 2 ** 32 - 1;

export function propsRoute({ services, config }: Pick<RouteContext, "services" | "config">): Route {
  const { model, engine } = services;
  const sampling = { ...config.sampling, seed: drawnSeed, logitBias: [] };
  const ofServer = {
    modalities: { vision: false, video: false, audio: false },
    endpoint_slots: true,
    endpoint_props: false,
    endpoint_metrics: true,
    ui: (config.page ?? null) !== null,
    ui_settings: {},
    cors_proxy_enabled: false,
    is_sleeping: false,
  };
  return {
    at: "GET /props",
    summary:
      "The defaults of a request, and the chat template. With `--models-dir` and no model in memory, `role` is `router` and the rest is empty, unless `?model=` names one.",
    answer: answer({
      default_generation_settings: answer({ params: object, n_ctx: whole }),
      total_slots: whole,
      model_alias: string,
      model_path: string,
      model_ftype: string,
      modalities: answer({ vision: boolean, video: boolean, audio: boolean }),
      endpoint_slots: boolean,
      endpoint_props: boolean,
      endpoint_metrics: boolean,
      chat_template: string,
      chat_template_caps: { type: "object", additionalProperties: boolean },
      ui: boolean,
      ui_settings: object,
      cors_proxy_enabled: boolean,
      bos_token: string,
      eos_token: string,
      build_info: string,
      is_sleeping: boolean,
    }),
    logLevel: "warn",
    withoutModel: async ({ query }) =>
      looksAtNone(query, services) ? { ...propsOfNone, ...ofServer } : undefined,
    handler: async () => ({
      default_generation_settings: {
        params: generationSettings(sampling, model.maxTokens),
        n_ctx: model.contextSize,
      },
      total_slots: model.parallel,
      model_alias: model.id,
      // A path of this machine is no client's business.
      model_path: model.id,
      model_ftype: engine.model.fileType,
      chat_template: services.chat.templateSource ?? "",
      chat_template_caps: acceptedMessages(services),
      bos_token: engine.model.bosToken,
      eos_token: engine.model.eosToken,
      build_info: `fermata ${fingerprintOf(model)}`,
      ...ofServer,
    }),
  };
}

/** As llama-server's router answers without a model's name. */
const propsOfNone = {
  role: "router",
  default_generation_settings: { params: {}, n_ctx: 0 },
  total_slots: 0,
  model_alias: "fermata",
  model_path: "none",
  model_ftype: "",
  chat_template: "",
  chat_template_caps: {},
  bos_token: "",
  eos_token: "",
  build_info: "fermata",
};

/** Who names no model only looks, and none is in memory: none is loaded for it. */
function looksAtNone(query: unknown, { models }: RouteContext["services"]): boolean {
  return models !== undefined && wantedModel(query) === null && models.loaded().length === 0;
}

/** What messages may have: more than the template takes, because they are brought into its form. */
function acceptedMessages({ model, chat }: RouteContext["services"]): Record<string, boolean> {
  const mayChat = chat.templateSource !== null && model.toolSection !== null;
  return {
    supports_string_content: mayChat,
    supports_typed_content: mayChat,
    supports_system_role: mayChat,
    supports_tools: mayChat,
    supports_tool_calls: mayChat,
    supports_parallel_tool_calls: mayChat && chat.takesSeveralCalls,
    supports_object_arguments: mayChat,
    supports_preserve_reasoning: mayChat && chat.mayThink,
    supports_reasoning_effort: mayChat && chat.mayThink,
  };
}

/** Running sequences count from slot 0 on: none of them has a slot that lasts. */
export function slotsRoute({ services }: Pick<RouteContext, "services">): Route {
  const { model, engine } = services;
  return {
    at: "GET /slots",
    summary: "A slot for each sequence that may run at once; `?fail_on_no_slot=1`: 503 if all run.",
    answer: list(answer({ id: whole, n_ctx: whole, speculative: boolean, is_processing: boolean })),
    config: { scope: "admin" },
    logLevel: "warn",
    withoutModel: async ({ query }) => (looksAtNone(query, services) ? [] : undefined),
    handler: async (request) => {
      const { running } = engine.stats();
      const { fail_on_no_slot: mustBeFree = "" } = request.query as { fail_on_no_slot?: string };
      if (mustBeFree !== "" && running >= model.parallel)
        throw new FermataError(
          "no_free_slot",
          `All ${model.parallel} sequences that may run at once are running.`,
        );
      return Array.from({ length: model.parallel }, (_, id) => ({
        id,
        n_ctx: model.contextSize,
        speculative: false,
        is_processing: id < running,
      }));
    },
  };
}
