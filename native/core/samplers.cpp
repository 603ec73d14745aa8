#include "core/samplers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace fermata {
namespace {

// Separate maxima by lane, so that the compiler may use vector instructions.
float highest(std::span<const float> values) {
    constexpr std::size_t kLanes = 16;
    std::array<float, kLanes> lanes;
    lanes.fill(-std::numeric_limits<float>::infinity());
    std::size_t at = 0;
    for (; at + kLanes <= values.size(); at += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
            lanes[lane] = values[at + lane] > lanes[lane] ? values[at + lane] : lanes[lane];
    float best = *std::ranges::max_element(lanes);
    for (; at < values.size(); ++at) best = values[at] > best ? values[at] : best;
    return best;
}

}  // namespace

Token GreedySampler::sample(std::span<const float> logits) {
    const auto found = std::ranges::find(logits, highest(logits));
    return found == logits.end() ? 0 : static_cast<Token>(found - logits.begin());
}

ScriptedSampler::ScriptedSampler(std::vector<Token> script, Token end_token)
    : script_(std::move(script)), end_token_(end_token) {}

Token ScriptedSampler::sample(std::span<const float>) {
    return next_ < script_.size() ? script_[next_++] : end_token_;
}

}  // namespace fermata
