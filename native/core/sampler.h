// Chooses the next token of one sequence. A sampler belongs to its sequence, lives through holds
// and carries the random state and the penalty history.
#pragma once

#include <cstdint>
#include <span>

#include "core/logprobs.h"
#include "core/token_mask.h"
#include "core/types.h"

namespace fermata {

class Sampler {
   public:
    virtual ~Sampler() = default;
    // `logits` has one value per vocabulary entry, valid only during the call. A token that `mask`
    // does not allow is never chosen: when bias or broken logits leave none of the allowed ones,
    // the mask wins over them. observe() follows, unless the token is discarded.
    virtual Token sample(std::span<const float> logits, TokenMask mask = {}) = 0;
    // How likely the last `sample` was to choose `token`, and its `top` likeliest tokens: after
    // bias, penalties and filters. A token that it could not choose was the only one.
    virtual TokenLogprobs draw(Token token, [[maybe_unused]] std::int32_t top) const {
        return {.top = {{token, 0.0f}}};
    }
    // Tells of tokens that entered the context, generated or not: what follows sees them in the
    // penalties.
    virtual void observe(std::span<const Token> tokens) = 0;
    // In the place of all that observe() told: the context is these tokens now.
    virtual void observe_anew(std::span<const Token> tokens) = 0;
    // What is drawn from now on depends on the seed and this position only, so that another process
    // that knows the tokens goes on in the same way.
    virtual void begin_round(std::int32_t /*position*/) {}
    // The grammar leaves no choice about the next token, so it is not sampled. observe() follows.
    virtual void skip(Token /*token*/) {}
};

}  // namespace fermata
