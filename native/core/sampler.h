// Chooses the next token of one sequence. A sampler belongs to its sequence, lives through holds
// and carries the random state and the penalty history.
#pragma once

#include <span>

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
    // Tells of tokens that entered the context, generated or not: what follows sees them in the
    // penalties.
    virtual void observe(std::span<const Token> tokens) = 0;
    // The grammar leaves no choice about the next token, so it is not sampled. observe() follows.
    virtual void skip(Token /*token*/) {}
};

}  // namespace fermata
