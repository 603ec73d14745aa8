// What leaves first when room is needed. Pure: core_eviction_policy.cpp replays agents on it.
//
// A sequence is worth the rows that it would cost to compute it again, times the rate at which such
// sequences come back (see ReturnTimes), divided by the room that it takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.h"

namespace fermata {

// How the tokens of a slot, or of what has left one, have been used.
struct Use {
    Milliseconds last_used = 0;
    Milliseconds gap = 0;  // from one use to the next, a moving average; 0: they never came back
    std::int32_t returns = 0;  // how often they came back
};

// The same, used again at `now`.
Use used_again(const Use& use, Milliseconds now);

// Counts of sequences by how often they came back and by the time since their last use, in
// doublings. Those that came back more often, or after a longer time, than there are cells for
// count in the last one.
inline constexpr std::size_t kReturnClasses = 8;
inline constexpr std::size_t kReturnTimes = 20;
using ReturnTable = std::array<std::array<double, kReturnTimes>, kReturnClasses>;

// After which time sequences come back, if they do: learned from those that came back and those
// that have not. The class says how often a sequence came back before, because conversations of one
// kind have about as many turns: what is at its end stops earning its room.
class ReturnTimes {
   public:
    // `use`: of the sequence, before it came back at `now`.
    void add_return(const Use& use, Milliseconds now);
    // A sequence that has not come back is forgotten.
    void add_loss(const Use& use, Milliseconds now);
    // By class and time since the last use: expected returns in a millisecond of keeping such a
    // sequence, for as long as makes this greatest. `absent`: all that are known and have not come
    // back.
    ReturnTable rates(std::span<const Use> absent, Milliseconds now) const;

   private:
    void forget_old();

    ReturnTable returns_ = {};
    ReturnTable losses_ = {};
    double learned_ = 0;  // in both
};

struct Candidate {
    Use use = {};
    bool leased = false;    // its caller is expected back: after all that are not
    std::int64_t rows = 1;  // to compute when it is wanted and gone, at least 1
    std::int64_t room = 1;  // that giving it up makes, in any unit that all share, at least 1
};

// The index of the one to give up; `candidates` are not empty. `rates`: of ReturnTimes, now.
std::size_t choose_victim(std::span<const Candidate> candidates, Milliseconds now,
                          const ReturnTable& rates);

}  // namespace fermata
