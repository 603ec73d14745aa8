// What KvRetention keeps, for the files that implement it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/cell_ledger.h"
#include "core/eviction_policy.h"
#include "core/kv_retention.h"
#include "core/radix_tree.h"
#include "core/slot_set.h"

namespace fermata {

inline bool is_evictable(SlotState state) {
    return state == SlotState::kLeased || state == SlotState::kRetained;
}

inline bool is_pinned(SlotState state) {
    return state == SlotState::kRunning || state == SlotState::kHeld;
}

struct KvRetention::State {
    struct Slot {
        SlotState state = SlotState::kFree;
        Use use = {};
        Milliseconds until = 0;     // kHeld: deadline; kLeased: end of the lease
        std::int32_t cut_from = 0;  // it cannot be cut to fewer positions than this, but to none
    };
    // What has left its slot. Its path in the tree is at id_of its index; without cells it is only
    // remembered, so that its return teaches the policy.
    struct Left {
        SavedCells cells = {};
        Use use = {};
        bool leased = false;
        bool wanted = false;  // being restored now: it must not go
    };
    struct Source {
        SlotId slot = kNoSlot;
        std::int32_t length = 0;
    };

    Backend& backend;
    CacheShape shape;
    RadixTree tree;
    CellLedger cells;
    std::vector<Slot> slots;
    std::vector<Left> left;
    RamCounts ram;
    Milliseconds now = 0;
    Milliseconds usual_gap = 0;  // of all that came back, a moving average
    std::int64_t evictions = 0;
    std::int64_t copies = 0;

    State(Backend& used_backend, std::int64_t ram_limit, std::int32_t left_limit);

    Slot& at(SlotId slot) { return slots[static_cast<std::size_t>(slot)]; }
    const Slot& at(SlotId slot) const { return slots[static_cast<std::size_t>(slot)]; }
    bool is_streams() const { return shape.layout == CacheLayout::kStreams; }
    // Where a sequence sits matters, and it can be moved.
    bool places_matter() const { return is_streams() && shape.partial_truncate; }
    SlotSet in_state(SlotState first, SlotState second) const;
    void set_state(SlotId slot, SlotState state);

    // kv_retention.cpp: cells, tree and backend together.
    void clear(SlotId slot);
    std::int32_t truncate(SlotId slot, std::int32_t length);
    void copy(SlotId from, SlotId to, std::int32_t length);
    void move(SlotId from, SlotId to);
    std::vector<std::int32_t> match(std::span<const Token> prompt) const;
    std::int32_t whole_chunks(std::int32_t count, std::int32_t length) const;
    std::int32_t reusable(SlotId slot, std::int32_t shared, std::int32_t most) const;

    // kv_retention_places.cpp: who gives up a slot, and where a sequence runs.
    void evict(SlotId slot);
    SlotId choose_evictable(SlotId except, bool frees_cells = false) const;
    SlotId choose_room(SlotId except) const;
    void vacate(SlotId slot, SlotId keep);
    SlotId settle(SlotId slot);

    // kv_retention_ram.cpp: what has left its slot.
    std::size_t index_of(SlotId id) const {
        return static_cast<std::size_t>(id - shape.slot_count);
    }
    SlotId id_of(std::size_t index) const { return shape.slot_count + static_cast<SlotId>(index); }
    Left& left_at(SlotId id) { return left[index_of(id)]; }
    const Left& left_at(SlotId id) const { return left[index_of(id)]; }
    std::int32_t left_length(SlotId id) const;
    void remember(SlotId slot);
    bool make_room_in_ram(std::int64_t bytes, const Candidate& newcomer);
    void drop_cells(Left& entry);
    void forget(SlotId id);
    SlotId id_for_one_more();
    Source best_saved(std::span<const std::int32_t> shared, std::int32_t most) const;
    bool worth_restoring(const Source& saved, std::int32_t resident) const;
    std::int32_t restore(const Source& saved, SlotId room);
    Use learn(std::span<const std::int32_t> shared);
    std::string check_left() const;
};

}  // namespace fermata
