// The object that JavaScript has of an engine: a plain object of functions that own the host, so
// that none depends on `this` and none outlives what it uses.
#pragma once

#include <memory>

#include "binding/engine_host.h"
#include "binding/node_api.h"

namespace fermata {

Napi::Object make_engine_object(Napi::Env env, std::shared_ptr<EngineHost> host,
                                Napi::Object cache);

}  // namespace fermata
