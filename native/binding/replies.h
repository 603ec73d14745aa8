// Plain structs to JavaScript objects (src/native/addon-types.ts). Tokens and texts become typed
// arrays with memory of their own.
#pragma once

#include <span>
#include <string_view>

#include "binding/node_api.h"
#include "core/backend.h"
#include "core/event.h"
#include "llama/model.h"

namespace fermata {

Napi::Object from_batch(Napi::Env env, const EventBatch& batch);
Napi::Object from_stats(Napi::Env env, const EngineStats& stats);
Napi::Object from_model_info(Napi::Env env, const ModelInfo& info);
Napi::Object from_cache(Napi::Env env, const CacheShape& shape, std::uint64_t bytes);
Napi::Int32Array from_tokens(Napi::Env env, std::span<const Token> tokens);
Napi::Uint8Array from_bytes(Napi::Env env, std::string_view bytes);

}  // namespace fermata
