// The engines of an environment that have threads, so that all can be ended with it.
#pragma once

#include <unordered_set>

#include "binding/node_api.h"

namespace fermata {

class EngineHost;

// One set an environment. Used on its JavaScript thread only.
std::unordered_set<EngineHost*>& live_engines(Napi::Env env);

// Makes the process' `exit` event end the engines of this environment: after it, static objects
// that their threads use are destroyed. (A worker that is terminated has no such event; the
// engines' own cleanup hooks end them then.)
void watch_exit(Napi::Env env);

}  // namespace fermata
