// One compileGrammar call on libuv's pool. It owns a share of the compiler: an engine may close
// meanwhile, and the call then fails as closed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "binding/engine_host.h"
#include "binding/grammar_compiler.h"
#include "binding/node_api.h"

namespace fermata {

class CompileWorker : public Napi::AsyncWorker {
   public:
    static Napi::Promise start(Napi::Env env, std::shared_ptr<EngineHost> host, GrammarKind kind,
                               std::string text);

   private:
    CompileWorker(Napi::Env env, std::shared_ptr<EngineHost> host, GrammarKind kind,
                  std::string text);
    void Execute() override;
    void OnOK() override;
    void OnError(const Napi::Error& error) override;

    Napi::Promise::Deferred deferred_;
    std::shared_ptr<EngineHost> host_;
    std::shared_ptr<GrammarCompiler> compiler_;
    const GrammarKind kind_;
    const std::string text_;
    std::optional<Result<std::shared_ptr<const Grammar>>> outcome_;
    double microseconds_ = 0;
};

}  // namespace fermata
