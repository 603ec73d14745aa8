// A call that is answered by a promise and does its work on libuv's pool.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "binding/error.h"
#include "binding/node_api.h"
#include "core/result.h"

namespace fermata {

// Runs `work` on the pool, then `reply` on the JavaScript thread.
class Worker : public Napi::AsyncWorker {
   public:
    using Work = std::function<std::optional<Error>()>;
    using Reply = std::function<Napi::Value(Napi::Env)>;

    static Napi::Promise start(Napi::Env env, Work work, Reply reply) {
        // Deletes itself when it is done.
        auto* worker = new Worker(env, std::move(work), std::move(reply));
        worker->Queue();
        return worker->deferred_.Promise();
    }

   private:
    Worker(Napi::Env env, Work work, Reply reply)
        : Napi::AsyncWorker(env, "fermata:work"),
          deferred_(env),
          work_(std::move(work)),
          reply_(std::move(reply)) {}

    void Execute() override {
        error_ = work_();
        work_ = nullptr;
    }
    void OnOK() override {
        if (error_) {
            const std::string code(error_code_name(error_->code));
            deferred_.Reject(make_error(Env(), code, error_->message).Value());
        } else {
            deferred_.Resolve(reply_(Env()));
        }
    }
    void OnError(const Napi::Error& error) override {
        deferred_.Reject(make_error(Env(), "internal", error.Message()).Value());
    }

    Napi::Promise::Deferred deferred_;
    Work work_;
    Reply reply_;
    std::optional<Error> error_;
};

}  // namespace fermata
