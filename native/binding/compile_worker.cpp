#include "binding/compile_worker.h"

#include <chrono>
#include <utility>

#include "binding/error.h"
#include "binding/grammar_object.h"

namespace fermata {

CompileWorker::CompileWorker(Napi::Env env, std::shared_ptr<EngineHost> host, GrammarKind kind,
                             std::string text)
    : Napi::AsyncWorker(env, "fermata:compileGrammar"),
      deferred_(env),
      host_(std::move(host)),
      compiler_(host_->compiler()),
      kind_(kind),
      text_(std::move(text)) {}

Napi::Promise CompileWorker::start(Napi::Env env, std::shared_ptr<EngineHost> host,
                                   GrammarKind kind, std::string text) {
    // Deletes itself when it is done.
    auto* worker = new CompileWorker(env, std::move(host), kind, std::move(text));
    worker->Queue();
    return worker->deferred_.Promise();
}

void CompileWorker::Execute() {
    const auto started = std::chrono::steady_clock::now();
    outcome_ = compiler_->compile(kind_, text_);
    compiler_.reset();
    microseconds_ =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - started)
            .count();
}

void CompileWorker::OnOK() {
    if (host_->open_loop() == nullptr) {
        deferred_.Reject(make_error(Env(), "closed", "The engine is closed.").Value());
    } else if (!outcome_->ok()) {
        const Error& error = outcome_->error();
        deferred_.Reject(
            make_error(Env(), std::string(error_code_name(error.code)), error.message).Value());
    } else {
        deferred_.Resolve(
            make_grammar_object(Env(), host_->keep(std::move(outcome_->value())), microseconds_));
    }
}

void CompileWorker::OnError(const Napi::Error& error) {
    deferred_.Reject(make_error(Env(), "grammar_too_large", error.Message()).Value());
}

}  // namespace fermata
