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
    // the mask wins over them. Counts the token as chosen: what follows sees it in the penalties.
    virtual Token sample(std::span<const float> logits, TokenMask mask = {}) = 0;
    // Tells of tokens that entered the context unsampled (prompt, resume).
    virtual void observe(std::span<const Token> tokens) = 0;
    // Tells of a generated token that the grammar left no choice about.
    virtual void observe_forced(Token token) { observe(std::span(&token, 1)); }
};

}  // namespace fermata
