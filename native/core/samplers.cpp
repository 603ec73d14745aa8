#include "core/samplers.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fermata {

// Most blocks hold nothing higher than what was found before, and that question alone is one the
// compiler answers with vector instructions.
Token GreedySampler::sample(std::span<const float> logits) {
    constexpr std::size_t kBlock = 64;
    float highest = -std::numeric_limits<float>::infinity();
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
        const auto block = logits.subspan(begin, std::min(kBlock, logits.size() - begin));
        int any_higher = 0;
        for (const float logit : block)
            any_higher |= static_cast<int>(logit > highest);
        if (any_higher == 0) continue;
        for (std::size_t i = 0; i < block.size(); ++i) {
            if (!(block[i] > highest)) continue;
            highest = block[i];
            found = begin + i;
        }
    }
    return static_cast<Token>(found);
}

ScriptedSampler::ScriptedSampler(std::vector<Token> script, Token end_token)
    : script_(std::move(script)), end_token_(end_token) {}

Token ScriptedSampler::sample(std::span<const float>) {
    return next_ < script_.size() ? script_[next_++] : end_token_;
}

}  // namespace fermata
