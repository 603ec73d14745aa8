// How many prefill rows a step may have beside sequences that decode, so that their next tokens
// come in time. Learned from what steps took.
#pragma once

#include <cstdint>

namespace fermata {

class PrefillBudget {
   public:
    // `target_ms`: what a step with decode rows and prefill rows should take at most; 0: no limit.
    // `short_chunks`: no more rows either than make the pass over the weights cheap beside them.
    explicit PrefillBudget(std::int32_t target_ms, bool short_chunks = false)
        : target_ms_(target_ms), short_chunks_(short_chunks) {}

    // A step took so long. Ignored when `milliseconds` is not above 0.
    void took(std::int32_t prefill_rows, double milliseconds);
    // Prefill rows for a step that also decodes; kLeast or more, all while nothing was measured.
    std::int32_t rows() const;
    // What a prefill row takes; 0 while nothing was measured.
    double row_ms() const { return row_ms_; }

    // A pass over the weights is not made for less.
    static constexpr std::int32_t kLeast = 16;
    // A short chunk's step takes so many milliseconds, or so many times a step without prefill rows
    // if that is more: then the pass over the weights is a tenth of the work at most.
    static constexpr double kShort = 34.0;
    static constexpr double kCheap = 11.0;

   private:
    double target_ms_;
    bool short_chunks_;
    double decode_ms_ = 0.0;  // of a step without prefill rows; 0: not measured
    double row_ms_ = 0.0;     // of a prefill row beyond that; 0: not measured
};

}  // namespace fermata
