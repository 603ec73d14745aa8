// Chooses the next token of one sequence. A sampler belongs to its sequence, lives through holds
// and carries the random state and the penalty history.
#pragma once

#include <span>

#include "core/types.h"

namespace fermata {

class Sampler {
   public:
    virtual ~Sampler() = default;
    // `logits` has one value per vocabulary entry, valid only during the call. Counts the token as
    // chosen: what follows sees it in the penalties.
    virtual Token sample(std::span<const float> logits) = 0;
    // Tells of tokens that entered the context unsampled (prompt, resume).
    virtual void observe(std::span<const Token> tokens) = 0;
};

}  // namespace fermata
