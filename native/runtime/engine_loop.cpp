#include "runtime/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace fermata {

namespace {

// Leases are looked at this often when nothing else happens.
constexpr auto kIdleWait = std::chrono::milliseconds(250);

Milliseconds now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void stamp(EventBatch& batch, std::chrono::steady_clock::time_point step_began) {
    using Ms = std::chrono::duration<double, std::milli>;
    const auto now = std::chrono::steady_clock::now();
    const double at = Ms(now.time_since_epoch()).count();
    const double ago = Ms(now - step_began).count();
    for (Event& event : batch.events) {
        if (event.kind == EventKind::kTokens) event.at_ms = at;
        if (event.kind == EventKind::kWaiting || event.kind == EventKind::kAdmitted)
            event.ago_ms = ago;
    }
}

template <typename List>
void append(List& to, List&& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

EngineLoop::EngineLoop(std::unique_ptr<Backend> backend, LoopConfig config,
                       std::function<void()> notify, std::function<void()> abort_decode,
                       std::unique_ptr<QueuedFiles> files, std::unique_ptr<DraftModel> draft_model)
    : config_(config),
      backend_(std::move(backend)),
      masks_(config.mask_threads),
      notify_(std::move(notify)),
      abort_decode_(std::move(abort_decode)),
      files_(std::move(files)),
      draft_model_(std::move(draft_model)) {
    if (config_.audit) {
        audit_ = std::make_unique<AuditBackend>(*backend_);
        stats_.audited_rows = 0;
    }
    stats_.slots = backend_->shape().slot_count;
    stats_.cells_free = backend_->shape().cells_total;
    // A command that does nothing wakes the inference thread.
    const auto wake = [this] { post([](Scheduler&, Milliseconds) {}); };
    step_started_ = now_ms();
    try {
        if (files_) files_->start(wake);
        thread_ = std::thread([this] { run(); });
    } catch (...) {
        // Its thread uses the other members.
        files_.reset();
        throw;
    }
}

EngineLoop::~EngineLoop() {
    close();
}

void EngineLoop::run() {
    Backend& backend = audit_ ? static_cast<Backend&>(*audit_) : *backend_;
    Scheduler scheduler(config_.scheduler, backend, &masks_, files_.get(), draft_model_.get());
    scheduler.interrupt_for([this](SequenceId id) { return will_be_cancelled(id); });
    std::deque<Command> commands;
    bool idle = true;
    while (wait_for_commands(commands, idle)) {
        try {
            apply(commands, scheduler);
            const auto started = std::chrono::steady_clock::now();
            const bool was_idle = std::exchange(idle, !scheduler.step(now_ms()));
            if (audit_ && idle && !was_idle) {
                check_when_idle(scheduler);
            }
            EventBatch batch = scheduler.take_events();
            if (!batch.steps.empty()) {
                batch.steps.back().milliseconds = std::chrono::duration<double, std::milli>(
                                                      std::chrono::steady_clock::now() - started)
                                                      .count();
                scheduler.took(batch.steps.back().milliseconds);
            }
            stamp(batch, started);
            publish(scheduler, std::move(batch));
        } catch (const std::exception& error) {
            // Out of memory in our own bookkeeping: nothing of it can be trusted any more.
            scheduler.fail_all(FailCode::kInternal, error.what());
            publish(scheduler, scheduler.take_events());
            idle = true;
        }
    }
    while (!commands.empty()) {
        try {
            apply(commands, scheduler);
        } catch (const std::exception& error) {
            scheduler.fail_all(FailCode::kInternal, error.what());
        }
    }
    save_all(scheduler);
    scheduler.fail_all(FailCode::kClosed, "the engine was closed");
    publish(scheduler, scheduler.take_events());
}

void EngineLoop::save_all(Scheduler& scheduler) {
    try {
        scheduler.save_all();
        if (files_) files_->flush();
    } catch (const std::exception&) {
        // Out of memory: what is written is whole, the rest is not there.
    }
}

// Each is taken out before it runs: one that throws is not run again, those behind it are.
void EngineLoop::apply(std::deque<Command>& commands, Scheduler& scheduler) {
    while (!commands.empty()) {
        const Command command = std::move(commands.front());
        commands.pop_front();
        command(scheduler, now_ms());
    }
}

// A broken cache gives wrong text: better to fail what is left, loudly.
void EngineLoop::check_when_idle(Scheduler& scheduler) {
    if (const std::string wrong = integrity(scheduler); !wrong.empty()) {
        scheduler.fail_all(FailCode::kInternal, "integrity check failed: " + wrong);
    }
}

std::string EngineLoop::integrity(const Scheduler& scheduler) const {
    std::string wrong = scheduler.check_integrity();
    return wrong.empty() && audit_ ? audit_->violation() : wrong;
}

// Adds what was posted. Blocks while the loop is idle and nothing is left over. false: closing.
bool EngineLoop::wait_for_commands(std::deque<Command>& commands, bool idle) {
    std::unique_lock lock(mutex_);
    if (idle && commands.empty()) {
        asleep_ = true;
        wake_.wait_for(lock, kIdleWait, [this] { return closing_ || !commands_.empty(); });
        asleep_ = false;
    }
    append(commands, std::exchange(commands_, {}));
    taken_ = submitted_;
    step_started_ = now_ms();
    return !closing_;
}

void EngineLoop::publish(Scheduler& scheduler, EventBatch batch) {
    bool notify = false;
    {
        const std::lock_guard lock(mutex_);
        stats_ = scheduler.stats();
        submitted_ -= std::exchange(taken_, 0);
        stats_.audited_rows = audit_ ? audit_->rows() : -1;
        for (Event& event : batch.events) {
            if (event.kind == EventKind::kFailed && closing_) {
                event.fail = FailCode::kClosed;  // close() aborted its decode
            }
            if (event.kind == EventKind::kToolCallPause) {
                held_.insert(event.id);
            } else if (event.kind == EventKind::kFinished || event.kind == EventKind::kFailed) {
                held_.erase(event.id);
                extensions_.erase(event.id);
            }
        }
        const bool something = !batch.events.empty() || !batch.steps.empty();
        append(published_.events, std::move(batch.events));
        append(published_.steps, std::move(batch.steps));
        notify = something && !std::exchange(notified_, notified_ || something);
    }
    if (notify) {
        notify_();
    }
}

bool EngineLoop::post(Command command) {
    const std::lock_guard lock(mutex_);
    if (!closing_) {
        enqueue(std::move(command));
    }
    return !closing_;
}

// Under the mutex. A thread in the middle of a step looks at the queue by itself.
void EngineLoop::enqueue(Command command) {
    commands_.push_back(std::move(command));
    if (asleep_) {
        wake_.notify_one();
    }
}

EngineLoop::Accept EngineLoop::submit(SubmitRequest request) {
    const std::lock_guard lock(mutex_);
    if (closing_) {
        return Accept::kClosed;
    }
    const std::int32_t places = std::max(config_.scheduler.parallel - stats_.running, 0);
    if (stats_.waiting + submitted_ >= places + config_.max_queue) {
        return Accept::kQueueFull;
    }
    submitted_ += 1;
    enqueue([request = std::move(request)](Scheduler& scheduler, Milliseconds) mutable {
        scheduler.submit(std::move(request));
    });
    return Accept::kOk;
}

EngineLoop::Accept EngineLoop::resume(ResumeRequest request) {
    const std::lock_guard lock(mutex_);
    if (closing_) {
        return Accept::kClosed;
    }
    if (held_.erase(request.id) == 0) {
        return Accept::kNotHeld;
    }
    extensions_.erase(request.id);
    enqueue([request = std::move(request)](Scheduler& scheduler, Milliseconds) mutable {
        scheduler.resume(std::move(request));
    });
    return Accept::kOk;
}

void EngineLoop::extend(ExtendRequest request) {
    const std::lock_guard lock(mutex_);
    const SequenceId id = request.id;
    if (closing_ || !held_.contains(id)) {
        return;
    }
    if (!extensions_.insert_or_assign(id, std::move(request)).second) {
        return;
    }
    enqueue([this, id](Scheduler& scheduler, Milliseconds) {
        std::unique_lock taking(mutex_);
        auto latest = extensions_.extract(id);
        taking.unlock();
        if (!latest.empty()) {
            scheduler.extend(std::move(latest.mapped()));
        }
    });
}

void EngineLoop::release(SequenceId id) {
    post([id](Scheduler& scheduler, Milliseconds now) { scheduler.release(id, now); });
}

void EngineLoop::cancel(SequenceId id) {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    cancelled_.insert(id);
    any_cancelled_ = true;
    enqueue([this, id](Scheduler& scheduler, Milliseconds now) {
        {
            const std::lock_guard taking(mutex_);
            cancelled_.erase(id);
            any_cancelled_ = !cancelled_.empty();
        }
        scheduler.cancel(id, now);
    });
}

bool EngineLoop::will_be_cancelled(SequenceId id) const {
    if (!any_cancelled_.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(mutex_);
    return cancelled_.contains(id);
}

void EngineLoop::pause(SequenceId id) {
    post([id](Scheduler& scheduler, Milliseconds) { scheduler.pause(id); });
}

void EngineLoop::acknowledge(SequenceId id, std::int32_t count) {
    post([id, count](Scheduler& scheduler, Milliseconds) { scheduler.acknowledge(id, count); });
}

EventBatch EngineLoop::take_events() {
    const std::lock_guard lock(mutex_);
    notified_ = false;
    return std::exchange(published_, {});
}

EngineStats EngineLoop::stats() const {
    const std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    stats.step_age_ms = asleep_ ? 0 : now_ms() - step_started_;
    return stats;
}

void EngineLoop::check_integrity(std::function<void(std::string)> done) {
    const bool posted =
        post([this, done](Scheduler& scheduler, Milliseconds) { done(integrity(scheduler)); });
    if (!posted) {
        done({});
    }
}

void EngineLoop::close(std::chrono::milliseconds saving) {
    const std::lock_guard closing(close_mutex_);
    if (files_) files_->close_within(saving);
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    if (thread_.joinable()) {
        abort_decode_();
        wake_.notify_one();
        thread_.join();
        files_.reset();
        audit_.reset();
        draft_model_.reset();
        backend_.reset();
    }
}

}  // namespace fermata
