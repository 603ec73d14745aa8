// How many prefill rows a step may have beside sequences that decode, so that their next tokens
// come in time. Learned from what steps took.
#pragma once

#include <cstdint>

namespace fermata {

class PrefillBudget {
   public:
    // `target_ms`: what a step with decode rows and prefill rows should take at most; 0: no limit.
    // `elastic`: the target is nobody's wish. Then a step has fewer rows where that costs little,
    // more where the passes over the weights would be most of the work, and the whole rest of a
    // prompt where few long steps save many.
    explicit PrefillBudget(std::int32_t target_ms, bool elastic = false)
        : target_ms_(target_ms), elastic_(elastic) {}

    // A step took so long. Ignored when `milliseconds` is not above 0.
    void took(std::int32_t prefill_rows, double milliseconds);
    // Prefill rows for a step that also decodes; kLeast or more, all while nothing was measured.
    std::int32_t rows() const;
    // The same where the next prompt has `rest` rows left: all of them if they may be one step.
    std::int32_t rows_for(std::int32_t rest) const;
    // What a prefill row takes; 0 while nothing was measured.
    double row_ms() const { return row_ms_; }

    // A pass over the weights is not made for less.
    static constexpr std::int32_t kLeast = 16;
    // An elastic step takes so many milliseconds, or so many times a step without prefill rows if
    // that is more: then the pass over the weights is a tenth of the work at most.
    static constexpr double kShort = 34.0;
    static constexpr double kCheap = 11.0;
    // Beyond the target it takes as many times a step without prefill rows: half is prefill then.
    static constexpr double kFair = 2.0;
    // With the whole rest of a prompt it takes so many times the target at most.
    static constexpr double kLong = 4.0;

   private:
    double step_ms() const;
    double rows_within(double step_ms) const;

    double target_ms_;
    bool elastic_;
    double decode_ms_ = 0.0;  // of a step without prefill rows; 0: not measured
    double row_ms_ = 0.0;     // of a prefill row beyond that; 0: not measured
};

}  // namespace fermata
