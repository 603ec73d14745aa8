#include "guidance/deep_stack.h"

#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <exception>

namespace fermata {

namespace {

constexpr std::size_t kPage = 64 << 10;  // the largest in use

struct Call {
    const std::function<void()>& body;
    std::exception_ptr failure = nullptr;
};

void* run(void* argument) {
    Call& call = *static_cast<Call*>(argument);
    try {
        call.body();
    } catch (...) {
        call.failure = std::current_exception();
    }
    return nullptr;
}

}  // namespace

bool on_deep_stack(std::size_t bytes, const std::function<void()>& body) {
    const std::size_t least = std::max<std::size_t>(bytes, PTHREAD_STACK_MIN);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    Call call{.body = body};
    pthread_t thread = {};
    const bool started =
        pthread_attr_setstacksize(&attributes, (least + kPage - 1) / kPage * kPage) == 0 &&
        pthread_create(&thread, &attributes, run, &call) == 0;
    pthread_attr_destroy(&attributes);
    if (!started) return false;
    pthread_join(thread, nullptr);
    if (call.failure) std::rethrow_exception(call.failure);
    return true;
}

}  // namespace fermata
