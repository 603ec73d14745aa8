#include "binding/memory.h"

#include <optional>

#include "binding/worker.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace fermata {

Napi::Value give_back_memory(const Napi::CallbackInfo& info) {
    return Worker::start(
        info.Env(),
        []() -> std::optional<Error> {
#ifdef __GLIBC__
            // By itself glibc gives back the end of a heap only: one small piece that lives there
            // keeps all that was freed before it.
            malloc_trim(0);
#endif
            return std::nullopt;
        },
        [](Napi::Env env) -> Napi::Value { return env.Undefined(); });
}

}  // namespace fermata
