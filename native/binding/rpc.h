// addon.addRpcServer and addon.runRpcServer.
#pragma once

#include "binding/node_api.h"

namespace fermata {

Napi::Value add_rpc_server_devices(const Napi::CallbackInfo& info);
Napi::Value serve_rpc(const Napi::CallbackInfo& info);

}  // namespace fermata
