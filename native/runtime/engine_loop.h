// The one inference thread: a bounded queue of commands in, coalesced batches of events out. All
// public members may be called from any thread but the inference thread, unless they say otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "core/audit_backend.h"
#include "core/backend.h"
#include "core/draft_model.h"
#include "core/event.h"
#include "core/request.h"
#include "core/scheduler.h"
#include "runtime/mask_pool.h"
#include "runtime/queued_files.h"

namespace fermata {

struct LoopConfig {
    SchedulerConfig scheduler;
    std::int32_t max_queue = 256;  // requests that may wait for admission
    bool audit = false;            // count rows apart, check integrity when idle
    int mask_threads = 1;          // that make masks beside a decode call
};

class EngineLoop {
   public:
    enum class Accept : std::uint8_t { kOk, kQueueFull, kClosed, kNotHeld };

    // Owns the backend. `notify` runs on the inference thread when there is something to take, at
    // most once between two calls of take_events(); it must not call back into the loop.
    // `abort_decode` makes a running decode call return early; used by close() only.
    // `files`: for what memory has no room for; null: none. `draft_model`: see Scheduler.
    // Throws std::system_error where the threads cannot be started.
    EngineLoop(std::unique_ptr<Backend> backend, LoopConfig config, std::function<void()> notify,
               std::function<void()> abort_decode, std::unique_ptr<QueuedFiles> files = nullptr,
               std::unique_ptr<DraftModel> draft_model = nullptr);
    ~EngineLoop();
    EngineLoop(const EngineLoop&) = delete;
    EngineLoop& operator=(const EngineLoop&) = delete;

    // Values in range is the caller's duty (request.h); whether there is room is checked here.
    Accept submit(SubmitRequest request);
    // Only a sequence whose pause event was published can be resumed, once.
    Accept resume(ResumeRequest request);
    // See Scheduler::extend. Of several that the thread has not come to, only the last one counts;
    // one that it has not come to before the resume does not. Ignored unless the sequence is held.
    void extend(ExtendRequest request);
    // Unknown ids are ignored by all of these.
    void release(SequenceId id);
    void cancel(SequenceId id);
    void pause(SequenceId id);
    void acknowledge(SequenceId id, std::int32_t count);

    EventBatch take_events();
    EngineStats stats() const;
    // `done` runs on the inference thread between two steps with "" or what is wrong, or on the
    // calling thread with "" when the loop is closed.
    void check_integrity(std::function<void(std::string)> done);

    // Idempotent. What runs, waits or is held fails as closed; the events can still be taken.
    // What is in the cache goes to files within the time `saving`; the rest of it is lost.
    // Returns when the threads have ended and the backend is destroyed.
    void close(std::chrono::milliseconds saving = {});

   private:
    using Command = std::function<void(Scheduler&, Milliseconds)>;

    void run();
    bool wait_for_commands(std::deque<Command>& commands, bool idle);
    static void apply(std::deque<Command>& commands, Scheduler& scheduler);
    void save_all(Scheduler& scheduler);
    void publish(Scheduler& scheduler, EventBatch batch);
    void check_when_idle(Scheduler& scheduler);
    std::string integrity(const Scheduler& scheduler) const;
    // Whether cancel() was called and the thread has not come to it.
    bool will_be_cancelled(SequenceId id) const;
    bool post(Command command);
    void enqueue(Command command);

    LoopConfig config_;
    std::unique_ptr<Backend> backend_;
    std::unique_ptr<AuditBackend> audit_;
    MaskPool masks_;
    std::function<void()> notify_;
    std::function<void()> abort_decode_;
    std::unique_ptr<QueuedFiles> files_;
    std::unique_ptr<DraftModel> draft_model_;

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Command> commands_;
    bool closing_ = false;
    bool asleep_ = false;
    Milliseconds step_started_ = 0;  // of the step that runs, or ran last
    std::int32_t submitted_ = 0;     // submit commands that stats_ does not count yet
    std::int32_t taken_ = 0;         // of these, drained by the thread since it last published
    std::unordered_set<SequenceId> held_;
    std::unordered_map<SequenceId, ExtendRequest> extensions_;  // of held_, not drained
    std::unordered_set<SequenceId> cancelled_;                  // not drained
    std::atomic<bool> any_cancelled_ = false;                   // of these
    EventBatch published_;
    bool notified_ = false;
    EngineStats stats_;

    std::mutex close_mutex_;
    std::thread thread_;
};

}  // namespace fermata
