/** What /openapi.json says of models, of the server's state and of itself. */

import { loadFields } from "../about/loading.ts";
import { model, modelState } from "../about/models.ts";
import { listedModelShape } from "../answer/model-list.ts";
import {
  answer,
  boolean,
  choice,
  list,
  nullable,
  object,
  real,
  string,
  whole,
} from "../body/shapes.ts";
import type { Operation } from "./operation.ts";

const done = answer({ success: boolean });

export const aboutOperations: Readonly<Record<string, Operation>> = {
  "GET /v1/models": {
    summary: "The models that requests may name; with `--models-dir`, all of the folder.",
    answer: answer({
      object: choice("list"),
      data: list(model),
      first_id: nullable(string),
      last_id: nullable(string),
      has_more: boolean,
      models: list(
        answer({
          ...listedModelShape,
          type: choice("model"),
          description: string,
          parameters: string,
          tags: list(string),
          capabilities: list(string),
        }),
      ),
    }),
  },
  "GET /v1/models/{model}": {
    summary: "A model, by its name or `default`.",
    answer: model,
  },
  "GET /api/models": {
    summary: "The models and which of them are in memory.",
    answer: answer({
      models: list(
        answer({
          id: string,
          is_default: boolean,
          state: modelState,
          progress: real,
          size: whole,
          architecture: string,
          quantization: string,
          context_length: nullable(whole),
          uses: whole,
          leaves_at: nullable(string),
          is_pinned: boolean,
        }),
      ),
    }),
  },
  "POST /v1/models/load": {
    summary: "Brings a model into memory before it is used.",
    request: loadFields,
    answer: done,
  },
  "POST /v1/models/unload": {
    summary: "Takes a model out of memory, once nobody uses it. With `--models-dir`.",
    request: loadFields,
    answer: done,
  },
  "GET /props": {
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
  },
  "GET /slots": {
    summary: "A slot for each sequence that may run at once; `?fail_on_no_slot=1`: 503 if all run.",
    answer: list(answer({ id: whole, n_ctx: whole, speculative: boolean, is_processing: boolean })),
  },
  "GET /health": {
    summary: "Whether the server lives: 503 once the inference thread hangs. Needs no key.",
    answer: answer({ status: choice("ok", "hung"), model: string, step_age_ms: whole }),
  },
  "GET /ready": {
    summary: "Whether requests should be sent here now, else 503. Needs no key.",
    answer: answer({
      status: choice("ready", "busy"),
      step_age_ms: whole,
      running: whole,
      waiting: whole,
    }),
  },
  "GET /metrics": { summary: "Prometheus metrics.", answer: null },
  "GET /openapi.json": { summary: "This document.", answer: object },
};
