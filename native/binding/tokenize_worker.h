// One tokenize call on libuv's pool. It owns a share of the model: an engine may close meanwhile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "binding/node_api.h"
#include "llama/model.h"

namespace fermata {

class TokenizeWorker : public Napi::AsyncWorker {
   public:
    static Napi::Promise start(Napi::Env env, std::shared_ptr<const Model> model, std::string text,
                               std::string guard, bool add_bos);

   private:
    TokenizeWorker(Napi::Env env, std::shared_ptr<const Model> model, std::string text,
                   std::string guard, bool add_bos);
    void Execute() override;
    void OnOK() override;
    void OnError(const Napi::Error& error) override;

    Napi::Promise::Deferred deferred_;
    std::shared_ptr<const Model> model_;
    const std::string text_;
    const std::string guard_;
    const bool add_bos_;
    std::vector<Token> tokens_;
};

}  // namespace fermata
