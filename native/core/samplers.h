// Samplers that need no model library.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/sampler.h"
#include "core/types.h"

namespace fermata {

// The token with the highest logit; the lowest id among equals. NaN is never chosen.
class GreedySampler final : public Sampler {
   public:
    Token sample(std::span<const float> logits, TokenMask mask = {}) override;
    void observe(std::span<const Token>) override {}
    void observe_anew(std::span<const Token>) override {}
};

// Emits the script whatever the logits say, then what `then` samples; without `then` it emits
// `end_token` for ever. In place of a token that the mask forbids it emits the likeliest allowed
// one; the script goes on behind the forbidden one. A forced token that is the script's next one
// counts as emitted.
class ScriptedSampler final : public Sampler {
   public:
    ScriptedSampler(std::vector<Token> script, Token end_token,
                    std::unique_ptr<Sampler> then = nullptr);
    Token sample(std::span<const float> logits, TokenMask mask = {}) override;
    void observe(std::span<const Token> tokens) override;
    void observe_anew(std::span<const Token> tokens) override;
    void skip(Token token) override;
    void begin_round(std::int32_t position) override;

   private:
    std::vector<Token> script_;
    Token end_token_;
    std::unique_ptr<Sampler> then_;
    std::size_t next_ = 0;
};

}  // namespace fermata
