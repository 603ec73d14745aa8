#include "core/logprobs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace fermata {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Of everything that is a number; double, because a vocabulary has 10^5 small terms.
double log_of_sum(std::span<const float> logits) {
    float highest = kMinusInfinity;
    for (const float logit : logits)
        highest = logit > highest ? logit : highest;
    if (!std::isfinite(highest)) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0.0;
    for (const float logit : logits) {
        if (logit > kMinusInfinity) sum += std::exp(static_cast<double>(logit - highest));
    }
    return static_cast<double>(highest) + std::log(sum);
}

}  // namespace

TokenLogprobs logprobs_of(std::span<const float> logits, Token chosen, std::int32_t top) {
    const double total = log_of_sum(logits);
    const auto logprob_of = [&](float logit) {
        const double value = static_cast<double>(logit) - total;
        return std::isnan(value) ? kMinusInfinity : static_cast<float>(value);
    };
    TokenLogprobs result;
    const auto id = static_cast<std::size_t>(chosen);
    result.logprob = chosen >= 0 && id < logits.size() ? logprob_of(logits[id]) : kMinusInfinity;
    if (top <= 0 || std::isnan(total)) return result;

    // A heap of the best so far, the worst of them in front.
    using Candidate = std::pair<Token, float>;
    const auto better = [](const Candidate& a, const Candidate& b) {
        return a.second > b.second || (a.second == b.second && a.first < b.first);
    };
    const auto limit = static_cast<std::size_t>(top);
    std::vector<Candidate>& best = result.top;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const Candidate candidate{static_cast<Token>(i), logits[i]};
        if (!(candidate.second > kMinusInfinity)) continue;
        if (best.size() == limit) {
            if (!better(candidate, best.front())) continue;
            std::pop_heap(best.begin(), best.end(), better);
            best.pop_back();
        }
        best.push_back(candidate);
        std::push_heap(best.begin(), best.end(), better);
    }
    std::sort_heap(best.begin(), best.end(), better);
    for (Candidate& candidate : best)
        candidate.second = logprob_of(candidate.second);
    return result;
}

}  // namespace fermata
