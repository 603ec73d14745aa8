// Natural logarithms of probabilities, from logits as the model gave them: before bias, penalties,
// temperature and filters.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/types.h"

namespace fermata {

struct TokenLogprobs {
    float logprob = 0.0f;  // of the chosen token; minus infinity if its logit is no number
    std::vector<std::pair<Token, float>> top;  // the likeliest tokens, the likeliest first
};

// `top` of them, fewer if the vocabulary has fewer with a logit that is a number. Among equals the
// lower id comes first.
TokenLogprobs logprobs_of(std::span<const float> logits, Token chosen, std::int32_t top);

}  // namespace fermata
