// Names that every native file shares. Plain data, no behaviour.
#pragma once

#include <cstdint>

namespace fermata {

using Token = std::int32_t;

// A place in the KV cache that holds the cells of one sequence: llama.cpp's sequence id.
// Range 0 .. CacheShape::slot_count - 1.
using SlotId = std::int32_t;
inline constexpr SlotId kNoSlot = -1;

// One generation, from submit to finished. Given by the caller, never reused within an engine.
using SequenceId = std::uint64_t;

// Whose cells a sequence may share: those of the same salt. 0 for all who have none.
using Salt = std::uint64_t;

// Milliseconds of a monotonic clock. Core never reads a clock; callers pass the time in.
using Milliseconds = std::int64_t;

// Where the positions came from that a sequence need not compute.
enum class PrefixSource : std::uint8_t {
    kNone,  // there are none
    kHold,  // its own: it was held
    kSlot,  // a slot that was taken over
    kCopy,  // another slot, whose beginning was copied
    kRam,
    kDisk,
    kFork,  // a snapshot of a model that cannot be cut back anywhere
};

}  // namespace fermata
