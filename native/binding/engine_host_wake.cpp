// EngineHost on the JavaScript thread, woken: what its other threads left is taken and told.
#include <algorithm>

#include "binding/engine_host.h"
#include "binding/engine_object.h"
#include "binding/error.h"
#include "binding/replies.h"

namespace fermata {

namespace {

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

}  // namespace

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
    loading_ = false;
    if (!outcome->ok()) {
        end_thread();
        thread_.join();
        const Error& error = outcome->error();
        const std::string code =
            cancelled_.load() ? "closed" : std::string(error_code_name(error.code));
        load_deferred_.Reject(make_error(env, code, error.message).Value());
        detach(env);
        return;
    }
    LoadedEngine& loaded = outcome->value();
    model_ = std::move(loaded.model);
    compiler_ = std::make_shared<GrammarCompiler>(model_);
    shape_ = loaded.shape;
    loop_ = std::move(loaded.loop);
    open_ = true;
    load_deferred_.Resolve(
        make_engine_object(env, shared_from_this(), from_cache(env, shape_, loaded.cache_bytes)));
}

void EngineHost::deliver_events(Napi::Env env) {
    if (!loop_) return;
    EventBatch batch = loop_->take_events();
    if (batch.events.empty() && batch.steps.empty()) return;
    follow(batch);
    call_out(env, on_batch_, from_batch(env, batch));
}

void EngineHost::follow(const EventBatch& batch) {
    for (const Event& event : batch.events) {
        const bool pauses = event.kind == EventKind::kToolCallPause;
        const bool ends = event.kind == EventKind::kFinished || event.kind == EventKind::kFailed;
        if (!pauses && !ends) continue;
        generating_.erase(event.id);
        if (pauses) {
            held_.insert(event.id);
        } else {
            held_.erase(event.id);
            ending_.erase(event.id);
        }
    }
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

void EngineHost::settle_close(Napi::Env env) {
    {
        const std::lock_guard lock(mutex_);
        if (!closed_) return;
    }
    if (!thread_.joinable()) return;
    thread_.join();
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

}  // namespace fermata
