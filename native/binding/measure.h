// measure and devices of addon-types.ts.
#pragma once

#include "binding/node_api.h"

namespace fermata {

Napi::Value measure(const Napi::CallbackInfo& info);
Napi::Value list_devices(const Napi::CallbackInfo& info);

}  // namespace fermata
