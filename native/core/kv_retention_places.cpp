// Who gives up a slot, and where a sequence runs.
#include <tuple>

#include "core/kv_retention_state.h"

namespace fermata {

void KvRetention::State::evict(SlotId slot) {
    remember(slot);
    clear(slot);
    ++evictions;
}

// What the policy gives up first; not `except`. With `frees_cells`, only what would free some.
// kNoSlot: there is none.
SlotId KvRetention::State::choose_evictable(SlotId except, bool frees_cells) const {
    std::vector<Candidate> candidates;
    std::vector<SlotId> ids;
    for (SlotId slot = 0; slot < shape.slot_count; ++slot) {
        if (slot == except || !is_evictable(at(slot).state)) continue;
        if (frees_cells && !cells.reclaimable(slot)) continue;
        const std::int64_t length = cells.length(slot);
        candidates.push_back({.use = at(slot).use,
                              .leased = at(slot).state == SlotState::kLeased || at(slot).awaited,
                              .rows = length,
                              .room = frees_cells ? length : 1});
        ids.push_back(slot);
    }
    return ids.empty() ? kNoSlot : ids[choose_victim(candidates, now, usual_gap)];
}

// The slot where a sequence should run: free, or to be vacated; kNoSlot: there is none.
// Streams: the one that leaves the fewest groups of adjacent running slots, since each group is
// one more pass over the weights in every step. Among those free before retained, then the
// least recently used, then beside held slots, which will run again.
SlotId KvRetention::State::choose_room(SlotId except) const {
    const SlotSet running = in_state(SlotState::kRunning, SlotState::kRunning);
    const SlotSet pinned = in_state(SlotState::kRunning, SlotState::kHeld);
    const auto cost = [&](SlotId slot) {
        const bool free = at(slot).state == SlotState::kFree;
        return std::tuple(is_streams() ? running.with(slot).runs() : 0, !free,
                          free ? 0 : at(slot).use.last_used,
                          is_streams() ? pinned.with(slot).runs() : 0);
    };
    SlotId best = kNoSlot;
    for (SlotId slot = 0; slot < shape.slot_count; ++slot) {
        const SlotState state = at(slot).state;
        const bool offers =
            state == SlotState::kFree || (state == SlotState::kRetained && is_streams());
        if (slot == except || !offers) continue;
        if (best == kNoSlot || cost(slot) < cost(best)) best = slot;
    }
    return best != kNoSlot ? best : choose_evictable(except);
}

// Empties a slot that choose_room gave, without touching `keep`. Where places matter, what was
// retained there moves to a free slot, else to RAM if there is room, which is a third of the work
// of replacing what the policy gives up.
void KvRetention::State::vacate(SlotId slot, SlotId keep) {
    if (at(slot).state == SlotState::kFree) return;
    if (at(slot).state == SlotState::kRetained && is_streams()) {
        SlotId spare = in_state(SlotState::kFree, SlotState::kFree).first();
        if (spare == kNoSlot && fits_in_ram(slot)) return evict(slot);
        if (spare == kNoSlot) {
            spare = choose_evictable(keep);
            evict(spare);
        }
        if (spare == slot || move(slot, spare)) return;
    }
    evict(slot);
}

// Moves a slot that is about to run beside the running ones if that joins groups; returns where
// it is.
SlotId KvRetention::State::settle(SlotId slot) {
    if (!is_streams()) return slot;
    const SlotId room = choose_room(slot);
    if (room == kNoSlot || at(room).state == SlotState::kLeased || at(room).awaited) return slot;
    const SlotSet running = in_state(SlotState::kRunning, SlotState::kRunning);
    if (running.with(room).runs() >= running.with(slot).runs()) return slot;
    vacate(room, slot);
    return move(slot, room) ? room : slot;
}

}  // namespace fermata
