// The addon's entry: the surface that src/native/addon-types.ts mirrors.
#include "binding/embedder_object.h"
#include "binding/engine_host.h"
#include "binding/error.h"
#include "binding/live_engines.h"
#include "binding/measure.h"
#include "binding/memory.h"
#include "binding/node_api.h"
#include "binding/requests.h"
#include "binding/rpc.h"
#include "llama/device_backend.h"

namespace fermata {

namespace {

Napi::Value load(const Napi::CallbackInfo& info) {
    LoadOptions options = to_load_options(info[0]);
    if (!info[1].IsFunction() || !(info[2].IsFunction() || info[2].IsUndefined())) {
        throw invalid_argument("load takes options, a function for batches and one for progress.");
    }
    const auto on_progress = info[2].IsFunction() ? info[2].As<Napi::Function>() : Napi::Function();
    const auto host = EngineHost::start(info.Env(), std::move(options),
                                        info[1].As<Napi::Function>(), on_progress);
    Napi::Object load = Napi::Object::New(info.Env());
    load.Set("engine", host->loaded());
    const auto cancel = [host](const Napi::CallbackInfo& call) -> Napi::Value {
        host->cancel_load();
        return call.Env().Undefined();
    };
    load.Set("cancel", Napi::Function::New(info.Env(), cancel, "cancel"));
    return load;
}

Napi::Value probe(const Napi::CallbackInfo& info) {
    if (!info[0].IsString()) throw invalid_argument("probe takes a path.");
    const bool mtp_layers = info[1].IsBoolean() && info[1].As<Napi::Boolean>();
    if (const auto error = probe_model(info[0].As<Napi::String>(), mtp_layers)) {
        throw Refusal(std::string(error_code_name(error->code)), error->message);
    }
    return info.Env().Undefined();
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
    watch_exit(env);
    // First: it looks for devices.
    exports.Set("backend", device_backend());
    exports.Set("deviceProblem", device_problem());
    exports.Set("systemInfo", system_info());
    exports.Set("load", Napi::Function::New(env, guarded(load), "load"));
    exports.Set("loadEmbedder", Napi::Function::New(env, guarded(load_embedder), "loadEmbedder"));
    exports.Set("measure", Napi::Function::New(env, guarded(measure), "measure"));
    exports.Set("devices", Napi::Function::New(env, guarded(list_devices), "devices"));
    exports.Set("addRpcServer",
                Napi::Function::New(env, guarded(add_rpc_server_devices), "addRpcServer"));
    exports.Set("runRpcServer", Napi::Function::New(env, guarded(serve_rpc), "runRpcServer"));
    exports.Set("giveBackMemory",
                Napi::Function::New(env, guarded(give_back_memory), "giveBackMemory"));
    exports.Set("probe", Napi::Function::New(env, guarded(probe), "probe"));
    return exports;
}

}  // namespace

}  // namespace fermata

static Napi::Object initialize_fermata(Napi::Env env, Napi::Object exports) {
    return fermata::initialize(env, exports);
}

NODE_API_MODULE(fermata, initialize_fermata)
