#include "core/prefill_budget.h"

#include <algorithm>
#include <limits>

namespace fermata {

namespace {

// The first measurement counts whole. A later one counts a quarter, and at most as three times what
// was expected: a processor that others took for a moment is no slow model.
void learn(double& known, double measured) {
    constexpr double kWeightOfNew = 0.25;
    if (known > 0.0) measured = known + kWeightOfNew * (std::min(measured, 3.0 * known) - known);
    known = measured;
}

}  // namespace

void PrefillBudget::took(std::int32_t prefill_rows, double milliseconds) {
    if (!(milliseconds > 0.0)) return;
    if (prefill_rows == 0) return learn(decode_ms_, milliseconds);
    // Also where the step took less than one that only decodes.
    constexpr double kLeastShare = 0.05;
    const double beyond = std::max(milliseconds - decode_ms_, kLeastShare * milliseconds);
    learn(row_ms_, beyond / prefill_rows);
}

double PrefillBudget::step_ms() const {
    if (!elastic_) return target_ms_;
    const double cheap = std::min(target_ms_, std::max(kShort, kCheap * decode_ms_));
    return std::max(cheap, kFair * decode_ms_);
}

double PrefillBudget::rows_within(double step_ms) const {
    constexpr double kMost = std::numeric_limits<std::int32_t>::max();
    if (target_ms_ <= 0.0 || row_ms_ <= 0.0) return kMost;
    return std::clamp((step_ms - decode_ms_) / row_ms_, static_cast<double>(kLeast), kMost);
}

std::int32_t PrefillBudget::rows() const {
    return static_cast<std::int32_t>(rows_within(step_ms()));
}

std::int32_t PrefillBudget::rows_for(std::int32_t rest) const {
    if (!elastic_) return rows();
    const double longest_ms = std::min(kLong * target_ms_, kCheap * decode_ms_);
    return rest <= rows_within(longest_ms) ? std::max(rest, rows()) : rows();
}

}  // namespace fermata
