#include "binding/tokenize_worker.h"

#include <utility>

#include "binding/error.h"
#include "binding/replies.h"

namespace fermata {

TokenizeWorker::TokenizeWorker(Napi::Env env, std::shared_ptr<const Model> model, std::string text,
                               std::string guard, bool add_bos)
    : Napi::AsyncWorker(env, "fermata:tokenize"),
      deferred_(env),
      model_(std::move(model)),
      text_(std::move(text)),
      guard_(std::move(guard)),
      add_bos_(add_bos) {}

Napi::Promise TokenizeWorker::start(Napi::Env env, std::shared_ptr<const Model> model,
                                    std::string text, std::string guard, bool add_bos) {
    // Deletes itself when it is done.
    auto* worker =
        new TokenizeWorker(env, std::move(model), std::move(text), std::move(guard), add_bos);
    worker->Queue();
    return worker->deferred_.Promise();
}

void TokenizeWorker::Execute() {
    auto result = model_->tokenizer().tokenize(text_, guard_, add_bos_);
    if (result.ok()) {
        tokens_ = std::move(result.value());
    } else {
        SetError(result.error().message);
    }
    model_.reset();
}

void TokenizeWorker::OnOK() {
    deferred_.Resolve(from_tokens(Env(), tokens_));
}

void TokenizeWorker::OnError(const Napi::Error& error) {
    deferred_.Reject(make_error(Env(), "invalid_argument", error.Message()).Value());
}

}  // namespace fermata
