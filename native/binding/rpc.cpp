#include "binding/rpc.h"

#include <cmath>
#include <optional>
#include <string>

#include "binding/error.h"
#include "binding/fields.h"
#include "binding/worker.h"
#include "llama/rpc_devices.h"
#include "llama/rpc_server.h"

namespace fermata {

namespace {

constexpr double kMaxSeconds = 1e6;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

}  // namespace

Napi::Value add_rpc_server_devices(const Napi::CallbackInfo& info) {
    const double seconds = info[1].IsNumber() ? info[1].As<Napi::Number>().DoubleValue() : -1;
    if (!info[0].IsString() || !(seconds >= 0 && seconds <= kMaxSeconds))
        throw invalid_argument("addRpcServer takes HOST:PORT and seconds.");
    return Worker::start(
        info.Env(),
        [endpoint = std::string(info[0].As<Napi::String>()), seconds]() -> std::optional<Error> {
            return add_rpc_server(endpoint, static_cast<int>(std::ceil(seconds)));
        },
        [](Napi::Env env) -> Napi::Value { return env.Undefined(); });
}

Napi::Value serve_rpc(const Napi::CallbackInfo& info) {
    const Fields fields(info[0], "");
    RpcServerOptions options;
    options.host = fields.text("host");
    options.port = fields.int32("port", 1, 65535);
    options.threads = fields.int32("threads", 1, 512);
    options.memory_limit = static_cast<std::uint64_t>(fields.integer("memoryBytes", 1, kMaxBytes));
    const Error error = run_rpc_server(options);
    throw Refusal(std::string(error_code_name(error.code)), error.message);
}

}  // namespace fermata
