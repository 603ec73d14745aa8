// What leaves first when room is needed. Pure: the tests replay traces of agents on it.
//
// A sequence is worth the rows that it would cost to compute it again, divided by the room that it
// takes and by the time until it will be wanted: what is wanted last is given up first. Where all
// come back after the same time, one behind the other, that is the one that was used last; giving
// up the one that was used first would always lose the next one that is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.h"

namespace fermata {

// How the tokens of a slot, or of what has left one, have been used.
struct Use {
    Milliseconds last_used = 0;
    Milliseconds gap = 0;  // from one use to the next, a moving average; 0: they never came back
};

// The same, used again at `now`.
Use used_again(const Use& use, Milliseconds now);

struct Candidate {
    Use use = {};
    bool leased = false;    // its caller is expected back: after all that are not
    std::int64_t rows = 1;  // to compute when it is wanted and gone, at least 1
    std::int64_t room = 1;  // that giving it up makes, in any unit that all share, at least 1
};

// The index of the one to give up; `candidates` are not empty. `usual_gap` is of all that came
// back, 0: none did.
std::size_t choose_victim(std::span<const Candidate> candidates, Milliseconds now,
                          Milliseconds usual_gap);

}  // namespace fermata
