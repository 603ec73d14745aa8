#include "core/thread_budget.h"

#include <algorithm>
#include <cmath>

namespace fermata {

namespace {

// Others' part of a core that costs more than the thread on it brings: beside a process that never
// rests, two threads on two cores leave it half of one, since the system shares three ways.
constexpr double kTaken = 0.4;
// Of a core before a thread comes back to it: what others do comes and goes.
constexpr double kFree = 0.8;
// A longer span counts whole, a short one as much as it lasted.
constexpr double kMemory = 0.5;

}  // namespace

void ThreadBudget::observe(const ProcessorUse& now) {
    const double wall = now.wall - last_.wall;
    if (begun_ && wall < kSpan) return;
    if (begun_) {
        const double used = (now.all - last_.all) - (now.own - last_.own);
        const double others = std::clamp(used / wall, 0.0, static_cast<double>(cores_));
        others_ += std::min(1.0, wall / kMemory) * (others - others_);
        const double left = cores_ - others_;
        const auto fitting = static_cast<std::int32_t>(std::floor(left + kTaken));
        const auto room = static_cast<std::int32_t>(std::floor(left - kFree)) + 1;
        threads_ = std::clamp(std::clamp(threads_, room, fitting), 1, most_);
    }
    last_ = now;
    begun_ = true;
}

}  // namespace fermata
