#include "core/eviction_policy.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace fermata {

namespace {

// Milliseconds until it is wanted. What came back before is expected after its usual time, and the
// less the longer it is overdue. Of what never came back, the newest is the likeliest to.
double expected_wait(const Use& use, Milliseconds now, Milliseconds usual_gap) {
    const Milliseconds age = std::max<Milliseconds>(now - use.last_used, 0);
    if (use.gap == 0) return static_cast<double>(age + usual_gap + 1);
    // Nobody is exact: just before its time it is not worth infinitely much.
    return static_cast<double>(std::abs(use.gap - age) + use.gap / 8 + 1);
}

}  // namespace

Use used_again(const Use& use, Milliseconds now) {
    const Milliseconds age = std::max<Milliseconds>(now - use.last_used, 1);
    return {.last_used = now, .gap = use.gap == 0 ? age : (use.gap + age + 1) / 2};
}

std::size_t choose_victim(std::span<const Candidate> candidates, Milliseconds now,
                          Milliseconds usual_gap) {
    const auto worth = [&](const Candidate& candidate) {
        const double rows = static_cast<double>(candidate.rows);
        const double room = static_cast<double>(candidate.room);
        return std::tuple(candidate.leased,
                          rows / (room * expected_wait(candidate.use, now, usual_gap)),
                          candidate.use.last_used);
    };
    const auto victim = std::ranges::min_element(candidates, {}, worth);
    return static_cast<std::size_t>(victim - candidates.begin());
}

}  // namespace fermata
