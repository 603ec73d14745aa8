#include "core/logprobs.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "core/logit_view.h"

namespace fermata {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Of everything that is a number.
double log_of_sum(const LogitView& view) {
    const float highest = view.highest();
    if (!std::isfinite(highest)) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(highest) + std::log(view.sum_of_exp(highest));
}

}  // namespace

TokenLogprobs logprobs_of(std::span<const float> logits, Token chosen, std::int32_t top) {
    const LogitView view(logits);
    const double total = log_of_sum(view);
    const auto logprob_of = [&](float logit) {
        const double value = static_cast<double>(logit) - total;
        return std::isnan(value) ? kMinusInfinity : static_cast<float>(value);
    };
    TokenLogprobs result;
    const auto id = static_cast<std::size_t>(chosen);
    result.logprob = chosen >= 0 && id < logits.size() ? logprob_of(logits[id]) : kMinusInfinity;
    if (top <= 0 || std::isnan(total)) return result;
    view.find_top(static_cast<std::size_t>(top), result.top);
    for (TokenLogit& likely : result.top)
        likely.second = logprob_of(likely.second);
    return result;
}

}  // namespace fermata
