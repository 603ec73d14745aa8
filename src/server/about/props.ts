/** GET /props and /slots, as llama-server has them: what its clients and load balancers ask for. */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { generationSettings } from "../answer/generation-settings.ts";
import { fingerprintOf } from "../answer/completion-parts.ts";
import type { RouteContext } from "../context.ts";

/** llama-server's number for "draw one". */
const drawnSeed = 2 ** 32 - 1;

export function propsRoute({
  services,
  config,
}: Pick<RouteContext, "services" | "config">): RouteOptions {
  const { model, engine } = services;
  const sampling = { ...config.sampling, seed: drawnSeed, logitBias: [] };
  return {
    method: "GET",
    url: "/props",
    logLevel: "warn",
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
      modalities: { vision: false, video: false, audio: false },
      endpoint_slots: true,
      endpoint_props: false,
      endpoint_metrics: true,
      chat_template: services.chat.templateSource ?? "",
      chat_template_caps: acceptedMessages(services),
      ui: (config.page ?? null) !== null,
      ui_settings: {},
      cors_proxy_enabled: false,
      bos_token: engine.model.bosToken,
      eos_token: engine.model.eosToken,
      build_info: `fermata ${fingerprintOf(model)}`,
      is_sleeping: false,
    }),
  };
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
export function slotsRoute({
  services: { model, engine },
}: Pick<RouteContext, "services">): RouteOptions {
  return {
    method: "GET",
    url: "/slots",
    config: { scope: "admin" },
    logLevel: "warn",
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
