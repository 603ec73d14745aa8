// loadEmbedder of addon-types.ts: everything runs on libuv's pool, one text after the other.
#pragma once

#include "binding/node_api.h"

namespace fermata {

Napi::Value load_embedder(const Napi::CallbackInfo& info);

}  // namespace fermata
