// One engine of one JavaScript environment: the thread that loads and closes it, its inference
// thread, and the one way from them back to JavaScript.
//
// Other threads leave what they have to say in members and wake the JavaScript thread; a wake while
// another is under way is dropped, so that at most one is queued. What is not commented otherwise
// runs on the JavaScript thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "binding/grammar_compiler.h"
#include "binding/grammar_object.h"
#include "binding/load_engine.h"
#include "binding/node_api.h"

namespace fermata {

class EngineHost : public std::enable_shared_from_this<EngineHost> {
   public:
    // Starts loading. `on_batch` and, if not empty, `on_progress` are called with what
    // addon-types.ts says. Throws a Refusal `no_threads`.
    static std::shared_ptr<EngineHost> start(Napi::Env env, LoadOptions options,
                                             Napi::Function on_batch, Napi::Function on_progress);
    EngineHost(const EngineHost&) = delete;
    EngineHost& operator=(const EngineHost&) = delete;
    ~EngineHost();

    // Settles when loading ends.
    Napi::Promise loaded() const { return load_deferred_.Promise(); }
    // Ignored when loading is over.
    void cancel_load() { cancelled_.store(true); }

    // Valid once loaded; null when the engine is closing or closed.
    std::shared_ptr<const Model> model() const { return model_; }
    std::shared_ptr<GrammarCompiler> compiler() const { return compiler_; }
    // A handle that is emptied when this engine closes.
    std::shared_ptr<GrammarHandle> keep(std::shared_ptr<const Grammar> grammar);
    std::int32_t cells_per_sequence() const { return shape_.cells_per_sequence; }
    // All throw a Refusal `closed` when the engine is closing or closed.
    void submit(SubmitRequest request);
    void resume(ResumeRequest request);
    void extend(ExtendRequest request);
    // Ignore ids that they do not know, and do nothing when closing or closed.
    void release(SequenceId id);
    void cancel(SequenceId id);
    EngineStats stats() const;
    Napi::Promise check_integrity();
    // The loop, for calls that ignore unknown ids; null when closing or closed.
    EngineLoop* open_loop() const { return open_ ? loop_.get() : nullptr; }

    Napi::Promise close();
    // Ends all threads now, giving up what runs: the environment or the process ends. From the
    // JavaScript thread, at any time, any number of times.
    void shut_down();

   private:
    EngineHost(Napi::Env env, LoadOptions options);

    void run();   // the host's thread: loads, waits for end_thread(), closes
    void load();  // the same
    void wake();  // any thread
    void on_wake(Napi::Env env);
    void report_progress();
    void settle_load(Napi::Env env);
    void deliver_events(Napi::Env env);
    void settle_integrity(Napi::Env env);
    void settle_close(Napi::Env env);
    // Keeps count of what generates, what is held and what is to end.
    void follow(const EventBatch& batch);
    // The end of this sequence is awaited, held or not.
    void await_end(SequenceId id);
    // Keeps the process alive while something is awaited or generates.
    void update_reference(Napi::Env env);
    // What is loaded is closed, and files are written within saving_. Returns at once.
    void end_thread();
    // The end of the way back to JavaScript.
    void detach(Napi::Env env);
    void forget_callbacks();
    void forget_grammars();
    EngineLoop& loop() const;

    static void wake_javascript(napi_env env, napi_value, void* context, void*);
    static void shut_down_hook(void* host);

    const LoadOptions options_;
    Napi::FunctionReference on_batch_;
    Napi::FunctionReference on_progress_;
    Napi::Promise::Deferred load_deferred_;
    std::optional<Napi::Promise::Deferred> close_deferred_;
    std::vector<std::pair<std::uint64_t, Napi::Promise::Deferred>> integrity_deferred_;
    std::uint64_t integrity_count_ = 0;

    napi_threadsafe_function wake_function_ = nullptr;
    std::atomic<bool> wake_queued_{false};
    bool referenced_ = true;

    // One from the beginning: to close, none must be started.
    std::thread thread_;
    std::atomic<bool> cancelled_{false};
    std::atomic<bool> ending_thread_{false};
    std::chrono::milliseconds saving_{0};
    std::shared_ptr<const Model> model_;
    std::shared_ptr<GrammarCompiler> compiler_;
    std::vector<std::weak_ptr<GrammarHandle>> grammars_;  // may name some that are gone
    CacheShape shape_;
    std::unique_ptr<EngineLoop> loop_;
    bool loading_ = true;
    bool open_ = false;
    SequenceId last_id_ = 0;
    std::unordered_set<SequenceId> generating_;  // neither held nor ended
    std::unordered_set<SequenceId> held_;
    std::unordered_set<SequenceId> ending_;  // released or cancelled, and not ended

    std::mutex mutex_;  // of what other threads leave:
    float progress_ = -1;
    std::optional<Result<LoadedEngine>> outcome_;
    std::vector<std::pair<std::uint64_t, std::string>> integrity_answers_;
    bool closed_ = false;
};

}  // namespace fermata
