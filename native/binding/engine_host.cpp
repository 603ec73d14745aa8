#include "binding/engine_host.h"

#include <system_error>

#include "binding/error.h"
#include "binding/live_engines.h"

namespace fermata {

namespace {

// One wake is queued at most; the second place is never used.
constexpr std::size_t kQueueSize = 2;

// The cache is written to files for so long when the engine closes. The server's grace for closing
// is longer.
constexpr std::chrono::seconds kSavesWithin{10};

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
    try {
        host->thread_ = std::thread([raw = host.get()] { raw->run(); });
    } catch (const std::system_error&) {
        host->detach(env);
        throw Refusal("no_threads", no_threads().message);
    }
    return host;
}

void EngineHost::run() {
    load();
    ending_thread_.wait(false);
    if (!loop_) return;
    loop_->close(saving_);
    model_.reset();
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    wake();
}

void EngineHost::end_thread() {
    ending_thread_.store(true);
    ending_thread_.notify_one();
}

void EngineHost::load() {
    const auto on_progress = [this](float fraction) {
        {
            const std::lock_guard lock(mutex_);
            progress_ = fraction;
        }
        if (!on_progress_.IsEmpty()) wake();
        return !cancelled_.load();
    };
    Result<LoadedEngine> outcome = load_engine(options_, on_progress, [this] { wake(); });
    if (outcome.ok() && cancelled_.load()) {
        outcome = Error{ErrorCode::kModelLoadFailed, "Loading was cancelled."};
    }
    {
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
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
    held_.erase(id);
    generating_.insert(id);
    update_reference(on_batch_.Env());
}

void EngineHost::extend(ExtendRequest request) {
    loop().extend(std::move(request));
}

void EngineHost::release(SequenceId id) {
    if (EngineLoop* loop = open_loop()) {
        await_end(id);
        loop->release(id);
    }
}

void EngineHost::cancel(SequenceId id) {
    if (EngineLoop* loop = open_loop()) {
        await_end(id);
        loop->cancel(id);
    }
}

void EngineHost::await_end(SequenceId id) {
    if (!generating_.contains(id) && !held_.contains(id)) return;
    ending_.insert(id);
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

std::shared_ptr<GrammarHandle> EngineHost::keep(std::shared_ptr<const Grammar> grammar) {
    std::erase_if(grammars_, [](const auto& handle) { return handle.expired(); });
    auto handle = std::make_shared<GrammarHandle>(GrammarHandle{std::move(grammar), this});
    grammars_.push_back(handle);
    return handle;
}

void EngineHost::forget_grammars() {
    for (const auto& each : grammars_) {
        if (const auto handle = each.lock()) handle->grammar.reset();
    }
    grammars_.clear();
    compiler_.reset();
}

Napi::Promise EngineHost::close() {
    const Napi::Env env = on_batch_.IsEmpty() ? close_deferred_->Env() : on_batch_.Env();
    if (!close_deferred_) {
        close_deferred_.emplace(env);
        open_ = false;
        forget_grammars();
        saving_ = kSavesWithin;
        end_thread();
        update_reference(env);
    }
    return close_deferred_->Promise();
}

void EngineHost::update_reference(Napi::Env env) {
    if (wake_function_ == nullptr) return;
    const bool closing = close_deferred_.has_value();
    const bool wanted = loading_ || closing || !generating_.empty() || !ending_.empty() ||
                        !integrity_deferred_.empty();
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
    end_thread();
    if (thread_.joinable()) thread_.join();
    outcome_.reset();
}

void EngineHost::shut_down_hook(void* host) {
    static_cast<EngineHost*>(host)->shut_down();
}

}  // namespace fermata
