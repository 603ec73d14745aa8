#include "llama/compute_threads.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <latch>
#include <system_error>
#include <utility>

#include "ggml-cpu.h"
#include "llama.h"

namespace fermata {

namespace {

// How long idle threads spin before they sleep: 1 is about 5 ms, enough to bridge two steps. The
// default of 50 keeps every core busy for a quarter of a second after the last step.
constexpr std::uint32_t kPoll = 1;

// Of how many cores ggml takes note.
constexpr std::ptrdiff_t kCores = GGML_MAX_N_THREADS;

double now_in_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// ggml ends the process where a thread of its pool does not start, so as many are tried before.
bool can_start(std::int32_t count) {
    std::latch tried(1);
    std::vector<std::thread> threads;
    const auto reached = [&] { return std::ssize(threads) >= count; };
    try {
        while (!reached())
            threads.emplace_back([&tried] { tried.wait(); });
    } catch (const std::system_error&) {
        // Those that did start end.
    }
    const bool started = reached();
    tried.count_down();
    for (std::thread& thread : threads)
        thread.join();
    return started;
}

}  // namespace

Result<std::shared_ptr<ComputeThreads>> ComputeThreads::start(
    const ComputeThreadsOptions& options) {
    std::shared_ptr<ComputeThreads> threads(new ComputeThreads(options.placed));
    if (!threads->use(options.most)) return no_threads();
    if (options.adapts && options.most > 1 && threads->use_.cores() > 0)
        threads->budget_.emplace(options.most, threads->use_.cores());
    // What the cores do from here to the first graph is the first that is known.
    threads->adapt();
    return threads;
}

std::vector<ComputeThreads::Joined>::iterator ComputeThreads::find(llama_context* context) {
    return std::ranges::find(contexts_, context, &Joined::context);
}

void ComputeThreads::join(llama_context* context) {
    contexts_.push_back({context, {}});
    attach(context);
}

void ComputeThreads::leave(llama_context* context) {
    const auto joined = find(context);
    if (joined == contexts_.end()) return;
    llama_detach_threadpool(context);
    contexts_.erase(joined);
}

void ComputeThreads::attach(llama_context* context) const {
    llama_attach_threadpool(context, pool_.get(), nullptr);
    llama_set_n_threads(context, count_, count_);
}

bool ComputeThreads::use(std::int32_t count) {
    // The thread that computes is one of them.
    if (!can_start(count - 1)) return false;
    ggml_threadpool_params params = ggml_threadpool_params_default(count);
    params.poll = kPoll;
    // So it places the thread that computes at its first graph, and not this one now.
    params.paused = true;
    if (placed_) place(params);
    Pool pool(ggml_threadpool_new(&params), [](ggml_threadpool* old) {
        if (old != nullptr) ggml_threadpool_free(old);
    });
    if (pool == nullptr) return false;
    pool_ = std::move(pool);
    count_ = count;
    for (const Joined& joined : contexts_)
        attach(joined.context);
    return true;
}

// Fewer than the cores run wherever they like, also those that a placed thread has started.
void ComputeThreads::place(ggml_threadpool_params& params) const {
    const std::vector<bool>& usable = use_.usable();
    const auto countable = usable.begin() + std::min(std::ssize(usable), kCores);
    const auto cores = std::count(usable.begin(), countable, true);
    if (cores < 2 || cores < use_.cores()) return;
    std::copy(usable.begin(), countable, params.cpumask);
    params.strict_cpu = params.n_threads == cores;
}

void ComputeThreads::adapt(llama_context* context) {
    adapt();
    const auto joined = find(context);
    if (joined == contexts_.end()) return;
    auto& pools = joined->pools;
    if (pools.empty() || pools.back() != pool_) pools.push_back(pool_);
}

void ComputeThreads::computed(llama_context* context) {
    const auto joined = find(context);
    if (joined != contexts_.end() && joined->pools.size() > 1)
        joined->pools.erase(joined->pools.begin(), joined->pools.end() - 1);
}

void ComputeThreads::adapt() {
    const std::thread::id here = std::this_thread::get_id();
    if (std::exchange(computing_, here) != here) ggml_threadpool_pause(pool_.get());
    if (!budget_) return;
    const double now = now_in_seconds();
    if (now - observed_ < ThreadBudget::kSpan) return;
    observed_ = now;
    const auto used = use_.read();
    if (!used) return;
    budget_->observe(*used);
    // A pool of the wrong size would leave threads that wake for every graph. If no
    // other can be started, the old one serves on.
    if (budget_->threads() != count_) use(budget_->threads());
}

}  // namespace fermata
