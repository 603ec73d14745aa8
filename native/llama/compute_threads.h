// The threads that compute the graphs of contexts on the processor, one graph at a time.
//
// As many of them as there are cores have a core each. They wait for each other after each
// operation without sleeping. Where a thread of this process that works alone (a long text that is
// tokenized) has a core to itself, the system would else put two of them on one core for up to half
// a second, and each of their hundred waits would take what the system gives a thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/thread_budget.h"
#include "llama/processor_use.h"

struct ggml_threadpool;
struct ggml_threadpool_params;
struct llama_context;

namespace fermata {

struct ComputeThreadsOptions {
    std::int32_t most = 1;
    bool adapts = false;  // fewer while other processes use the cores; this changes no result
    bool placed = true;  // false where several threads compute graphs: each would get the same core
};

class ComputeThreads {
   public:
    // Errors: no_threads.
    static Result<std::shared_ptr<ComputeThreads>> start(const ComputeThreadsOptions& options);
    ComputeThreads(const ComputeThreads&) = delete;
    ComputeThreads& operator=(const ComputeThreads&) = delete;

    // They compute the context's graphs until it leaves, which it does before it is freed.
    void join(llama_context* context);
    void leave(llama_context* context);

    // Before a graph of the context is computed, by the thread that computes it.
    void adapt(llama_context* context);
    // After it was computed.
    void computed(llama_context* context);
    // From the next graph on. False: they cannot be started, and the old number stays.
    bool use(std::int32_t count);
    std::int32_t count() const { return count_; }

   private:
    using Pool = std::shared_ptr<ggml_threadpool>;
    struct Joined {
        llama_context* context;
        // ggml pauses the pool that it computed with last when it computes with another: that one,
        // and those since.
        std::vector<Pool> pools;
    };

    explicit ComputeThreads(bool placed) : placed_(placed) {}

    void adapt();
    std::vector<Joined>::iterator find(llama_context* context);

    void attach(llama_context* context) const;
    // On which cores the threads of a pool may run.
    void place(ggml_threadpool_params& params) const;

    const bool placed_;
    std::vector<Joined> contexts_;
    Pool pool_;
    std::int32_t count_ = 0;
    std::thread::id computing_;  // which thread computes the graphs
    std::optional<ThreadBudget> budget_;
    ProcessorUseReader use_;
    double observed_ = 0.0;  // when, in seconds of a monotonic clock
};

}  // namespace fermata
