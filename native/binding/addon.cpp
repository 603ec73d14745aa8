#include <llama.h>
#include <napi.h>

static Napi::Value llama_version_string(const Napi::CallbackInfo& info) {
    return Napi::String::New(info.Env(), llama_version());
}

static Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports.Set("llamaVersion", Napi::Function::New(env, llama_version_string));
    return exports;
}

NODE_API_MODULE(fermata, init)
