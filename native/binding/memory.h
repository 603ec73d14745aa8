// giveBackMemory of addon-types.ts.
#pragma once

#include "binding/node_api.h"

namespace fermata {

Napi::Value give_back_memory(const Napi::CallbackInfo& info);

}  // namespace fermata
