#include "binding/engine_host.h"

#include <algorithm>

#include "binding/engine_object.h"
#include "binding/error.h"
#include "binding/live_engines.h"
#include "binding/replies.h"

namespace fermata {

namespace {

// One wake is queued at most; the second place is never used.
constexpr std::size_t kQueueSize = 2;

// Calls JavaScript from outside any JavaScript frame: what it throws is an uncaught exception.
void call_out(Napi::Env env, const Napi::FunctionReference& function, napi_value argument) {
    napi_value ignored = nullptr;
    if (napi_call_function(env, env.Undefined(), function.Value(), 1, &argument, &ignored) !=
        napi_pending_exception) {
        return;
    }
    napi_value thrown = nullptr;
    if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok) {
        napi_fatal_exception(env, thrown);
    }
}

Refusal closed_refusal() {
    return Refusal("closed", "The engine is closed.");
}

}  // namespace

EngineHost::EngineHost(Napi::Env env, LoadOptions options)
    : options_(std::move(options)), load_deferred_(env) {}

EngineHost::~EngineHost() {
    shut_down();
}

std::shared_ptr<EngineHost> EngineHost::start(Napi::Env env, LoadOptions options,
                                              Napi::Function on_batch, Napi::Function on_progress) {
    std::shared_ptr<EngineHost> host(new EngineHost(env, std::move(options)));
    host->on_batch_ = Napi::Persistent(on_batch);
    if (!on_progress.IsEmpty()) host->on_progress_ = Napi::Persistent(on_progress);
    // The function owns the host until it is finalized, after the environment's hooks have run.
    auto* owner = new std::shared_ptr<EngineHost>(host);
    const auto release_owner = [](napi_env, void* data, void*) {
        auto* owned = static_cast<std::shared_ptr<EngineHost>*>(data);
        (*owned)->forget_callbacks();
        delete owned;
    };
    const napi_status status = napi_create_threadsafe_function(
        env, nullptr, nullptr, Napi::String::New(env, "fermata"), kQueueSize, 1, owner,
        release_owner, host.get(), wake_javascript, &host->wake_function_);
    if (status != napi_ok) {
        delete owner;
        throw Refusal("internal", "The engine cannot be connected to JavaScript.");
    }
    live_engines(env).insert(host.get());
    napi_add_env_cleanup_hook(env, shut_down_hook, host.get());
    host->worker_ = std::thread([raw = host.get()] { raw->run_load(); });
    return host;
}

void EngineHost::run_load() {
    const auto on_progress = [this](float fraction) {
        {
            const std::lock_guard lock(mutex_);
            progress_ = fraction;
        }
        if (!on_progress_.IsEmpty()) wake();
        return !cancelled_.load();
    };
    Result<LoadedEngine> outcome = load_engine(options_, on_progress);
    if (outcome.ok() && cancelled_.load()) {
        outcome = Error{ErrorCode::kModelLoadFailed, "Loading was cancelled."};
    }
    {
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
    }
    wake();
}

void EngineHost::run_close() {
    loop_->close();
    model_.reset();
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    wake();
}

void EngineHost::wake() {
    if (wake_queued_.exchange(true)) return;
    napi_call_threadsafe_function(wake_function_, nullptr, napi_tsfn_nonblocking);
}

void EngineHost::wake_javascript(napi_env env, napi_value, void* context, void*) {
    // Without an environment the function is only being emptied.
    if (env == nullptr) return;
    const auto host = static_cast<EngineHost*>(context)->shared_from_this();
    try {
        host->on_wake(env);
    } catch (const Napi::Error& error) {
        napi_fatal_exception(env, error.Value());
    } catch (const std::exception& failure) {
        napi_fatal_exception(env, make_error(env, "internal", failure.what()).Value());
    }
}

void EngineHost::on_wake(Napi::Env env) {
    wake_queued_.store(false);
    report_progress();
    settle_load(env);
    deliver_events(env);
    settle_integrity(env);
    settle_close(env);
    update_reference(env);
}

void EngineHost::report_progress() {
    float fraction = -1;
    {
        const std::lock_guard lock(mutex_);
        fraction = std::exchange(progress_, -1.0f);
    }
    if (fraction < 0 || on_progress_.IsEmpty()) return;
    const Napi::Env env = on_progress_.Env();
    call_out(env, on_progress_, Napi::Number::New(env, fraction));
}

void EngineHost::settle_load(Napi::Env env) {
    std::optional<Result<LoadedEngine>> outcome;
    {
        const std::lock_guard lock(mutex_);
        outcome = std::exchange(outcome_, std::nullopt);
    }
    if (!outcome) return;
    worker_.join();
    loading_ = false;
    if (!outcome->ok()) {
        const Error& error = outcome->error();
        const std::string code =
            cancelled_.load() ? "closed" : std::string(error_code_name(error.code));
        load_deferred_.Reject(make_error(env, code, error.message).Value());
        detach(env);
        return;
    }
    LoadedEngine& loaded = outcome->value();
    model_ = std::move(loaded.model);
    shape_ = loaded.backend->shape();
    cache_bytes_ = loaded.backend->cache_bytes();
    LlamaBackend* backend = loaded.backend.get();
    loop_ = std::make_unique<EngineLoop>(
        std::move(loaded.backend), options_.loop, [this] { wake(); },
        [backend] { backend->set_abort(); });
    open_ = true;
    load_deferred_.Resolve(
        make_engine_object(env, shared_from_this(), from_cache(env, shape_, cache_bytes_)));
}

void EngineHost::deliver_events(Napi::Env env) {
    if (!loop_) return;
    EventBatch batch = loop_->take_events();
    if (batch.events.empty() && batch.steps.empty()) return;
    follow(batch);
    call_out(env, on_batch_, from_batch(env, batch));
}

void EngineHost::follow(EventBatch& batch) {
    for (Event& event : batch.events) {
        // Closing gives up the decode call that runs.
        if (close_deferred_ && event.fail == FailCode::kDecodeFailed)
            event.fail = FailCode::kClosed;
        if (event.kind == EventKind::kToolCallPause || event.kind == EventKind::kFinished ||
            event.kind == EventKind::kFailed) {
            generating_.erase(event.id);
        }
    }
}

void EngineHost::submit(SubmitRequest request) {
    const SequenceId id = request.id;
    if (id <= last_id_) {
        throw invalid_argument("The id must be larger than every id before it.");
    }
    switch (loop().submit(std::move(request))) {
        case EngineLoop::Accept::kOk:
            break;
        case EngineLoop::Accept::kQueueFull:
            throw Refusal("queue_full", "Too many requests are waiting.");
        default:
            throw closed_refusal();
    }
    last_id_ = id;
    generating_.insert(id);
    update_reference(on_batch_.Env());
}

void EngineHost::resume(ResumeRequest request) {
    const SequenceId id = request.id;
    switch (loop().resume(std::move(request))) {
        case EngineLoop::Accept::kOk:
            break;
        case EngineLoop::Accept::kNotHeld:
            throw Refusal("not_held", "The sequence is not held.");
        default:
            throw closed_refusal();
    }
    generating_.insert(id);
    update_reference(on_batch_.Env());
}

EngineStats EngineHost::stats() const {
    return loop().stats();
}

Napi::Promise EngineHost::check_integrity() {
    EngineLoop& open = loop();
    const Napi::Env env = on_batch_.Env();
    const std::uint64_t number = ++integrity_count_;
    integrity_deferred_.emplace_back(number, Napi::Promise::Deferred(env));
    const Napi::Promise promise = integrity_deferred_.back().second.Promise();
    update_reference(env);
    open.check_integrity([this, number](std::string answer) {
        {
            const std::lock_guard lock(mutex_);
            integrity_answers_.emplace_back(number, std::move(answer));
        }
        wake();
    });
    return promise;
}

void EngineHost::settle_integrity(Napi::Env env) {
    std::vector<std::pair<std::uint64_t, std::string>> answers;
    {
        const std::lock_guard lock(mutex_);
        answers.swap(integrity_answers_);
    }
    for (const auto& [number, answer] : answers) {
        const auto found = std::find_if(integrity_deferred_.begin(), integrity_deferred_.end(),
                                        [&](const auto& entry) { return entry.first == number; });
        if (found == integrity_deferred_.end()) continue;
        found->second.Resolve(Napi::String::New(env, answer));
        integrity_deferred_.erase(found);
    }
}

Napi::Promise EngineHost::close() {
    const Napi::Env env = on_batch_.IsEmpty() ? close_deferred_->Env() : on_batch_.Env();
    if (!close_deferred_) {
        close_deferred_.emplace(env);
        open_ = false;
        worker_ = std::thread([this] { run_close(); });
        update_reference(env);
    }
    return close_deferred_->Promise();
}

void EngineHost::settle_close(Napi::Env env) {
    {
        const std::lock_guard lock(mutex_);
        if (!closed_) return;
    }
    if (!worker_.joinable()) return;
    worker_.join();
    // The thread has ended: what it left before that is the last there is.
    deliver_events(env);
    settle_integrity(env);
    for (auto& [number, deferred] : integrity_deferred_) {
        deferred.Reject(make_error(env, "closed", "The engine is closed.").Value());
    }
    integrity_deferred_.clear();
    loop_.reset();
    close_deferred_->Resolve(env.Undefined());
    detach(env);
}

void EngineHost::update_reference(Napi::Env env) {
    if (wake_function_ == nullptr) return;
    const bool closing = close_deferred_.has_value();
    const bool wanted = loading_ || closing || !generating_.empty() || !integrity_deferred_.empty();
    if (wanted == referenced_) return;
    referenced_ = wanted;
    if (wanted) {
        napi_ref_threadsafe_function(env, wake_function_);
    } else {
        napi_unref_threadsafe_function(env, wake_function_);
    }
}

void EngineHost::detach(Napi::Env env) {
    live_engines(env).erase(this);
    napi_remove_env_cleanup_hook(env, shut_down_hook, this);
    // No thread is left that could call it.
    napi_release_threadsafe_function(std::exchange(wake_function_, nullptr), napi_tsfn_release);
}

void EngineHost::forget_callbacks() {
    on_batch_.Reset();
    on_progress_.Reset();
}

EngineLoop& EngineHost::loop() const {
    if (!open_) throw closed_refusal();
    return *loop_;
}

void EngineHost::shut_down() {
    cancelled_.store(true);
    open_ = false;
    if (worker_.joinable()) worker_.join();
    outcome_.reset();
    if (loop_) loop_->close();
}

void EngineHost::shut_down_hook(void* host) {
    static_cast<EngineHost*>(host)->shut_down();
}

}  // namespace fermata
