// Who gives up a slot, and where a sequence runs.
#include <algorithm>
#include <tuple>
#include <vector>

#include "core/kv_retention_state.h"

namespace fermata {

void KvRetention::State::evict(SlotId slot) {
    remember(slot);
    clear(slot);
    ++evictions;
}

// At which rate what is kept comes back.
ReturnTable KvRetention::State::return_rates() const {
    std::vector<Use> absent;
    for (const Slot& slot : slots)
        if (is_evictable(slot.state)) absent.push_back(slot.use);
    for (const Left& entry : left)
        if (entry.away) absent.push_back(entry.use);
    return return_times.rates(absent, now);
}

// Positions of the slot that could not be copied from another slot, at least 1: the rest is not
// lost with it.
std::int32_t KvRetention::State::own_positions(SlotId slot) const {
    const std::int32_t length = cells.length(slot);
    if (!shape.partial_truncate) return length;
    SlotSet others;
    for (SlotId other = 0; other < shape.slot_count; ++other)
        if (cells.length(other) > 0 && tree.salt(other) == tree.salt(slot)) others.add(other);
    const std::int32_t shared = tree.shared_with(slot, others);
    if (is_streams() && shared < kMinCopiedPositions) return length;
    return std::max(1, length - shared);
}

// What the policy gives up first; not `except`. With `frees_cells`, only what would free some.
// kNoSlot: there is none.
SlotId KvRetention::State::choose_evictable(SlotId except, bool frees_cells) const {
    std::vector<Candidate> candidates;
    std::vector<SlotId> ids;
    for (SlotId slot = 0; slot < shape.slot_count; ++slot) {
        if (slot == except || !is_evictable(at(slot).state)) continue;
        if (frees_cells && !cells.reclaimable(slot)) continue;
        const std::int64_t rows = own_positions(slot);
        candidates.push_back({.use = at(slot).use,
                              .leased = at(slot).state == SlotState::kLeased || at(slot).awaited,
                              .rows = rows,
                              .room = frees_cells ? rows : 1});
        ids.push_back(slot);
    }
    return ids.empty() ? kNoSlot : ids[choose_victim(candidates, now, return_rates())];
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
    const bool is_room = at(room).state == SlotState::kFree || has_free_slot() || fits_in_ram(room);
    if (!is_room) return exchange(slot, room);
    vacate(room, slot);
    return move(slot, room) ? room : slot;
}

// Moves a slot that is about to run to `room`, and what is retained there to where it was, unless
// that cannot be saved. Returns where the slot is.
SlotId KvRetention::State::exchange(SlotId slot, SlotId room) {
    const SavedCells saved = backend.saved_size(room) > 0 ? backend.save(room) : SavedCells();
    if (saved.empty()) return slot;
    const std::span<const Token> path = tree.path(room);
    const std::vector<Token> tokens(path.begin(), path.end());
    const Salt salt = tree.salt(room);
    const Slot rests = at(room);
    clear(room);
    copied_bytes += 2 * static_cast<std::int64_t>(saved.size());
    const bool moved = move(slot, room);
    const SlotId rest = moved ? slot : room;
    if (backend.restore(rest, saved)) {
        tree.set_salt(rest, salt);
        tree.extend(rest, tokens);
        cells.append(rest, saved.length());
        at(rest) = rests;
    } else {
        ++evictions;
    }
    return moved ? room : slot;
}

}  // namespace fermata
