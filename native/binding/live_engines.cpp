#include "binding/live_engines.h"

#include "binding/engine_host.h"

namespace fermata {

namespace {

using LiveEngines = std::unordered_set<EngineHost*>;

}  // namespace

LiveEngines& live_engines(Napi::Env env) {
    return *env.GetInstanceData<LiveEngines>();
}

void watch_exit(Napi::Env env) {
    env.SetInstanceData(new LiveEngines());
    const auto process = env.Global().Get("process").As<Napi::Object>();
    const auto shut_down_all = [](const Napi::CallbackInfo& info) {
        for (EngineHost* host : live_engines(info.Env()))
            host->shut_down();
    };
    process.Get("once").As<Napi::Function>().Call(
        process, {Napi::String::New(env, "exit"), Napi::Function::New(env, shut_down_all)});
}

}  // namespace fermata
