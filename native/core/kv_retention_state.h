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

// Fewer positions are computed as fast as they are found, moved and kept account of.
inline constexpr std::int32_t kWorthKeeping = 64;

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
        Milliseconds until = 0;                // kHeld: deadline; kLeased: end of the lease
        std::vector<std::int32_t> marks = {};  // ascending: it will be forked at these lengths
        Milliseconds rests_since = 0;          // held, leased or retained since then
        bool kept = true;                      // see acquire
        bool awaited = false;                  // by a prompt, see await
        std::int32_t filed = 0;  // a file has, or was refused, so many of its positions
        // Positions that take `saved_bytes` when they are saved, as size_in_ram() last found.
        mutable std::int32_t measured = 0;
        mutable std::size_t saved_bytes = 0;
        std::uint64_t claim = 0;  // it computes what other servers wait for; 0: none
    };
    // What has left its slot, or has a copy in a file. Its path in the tree is at id_of its index;
    // without cells and file it is only remembered, so that its return teaches the policy.
    struct Left {
        SavedCells cells = {};
        Use use = {};
        bool leased = false;     // somebody waits for it
        Milliseconds until = 0;  // leased: the end of that
        bool kept = true;        // see acquire
        bool away = false;       // the sequence left its slot and has not come back
        bool wanted = false;     // being restored now: it must not go
        bool staged = false;  // `cells` were read from the file for a prompt that waits; not RAM's
        FileId file = 0;
        std::int64_t file_bytes = 0;
        std::vector<std::int32_t> file_forks = {};  // lengths of the forks in the file
        bool filed = false;                         // a file has it, or was refused
        bool shared = false;      // see share: what continues it does not take its place
        std::uint64_t claim = 0;  // until it is written
        bool reading = false;
        Milliseconds asked_or_staged = 0;  // when

        bool is_anywhere() const { return !cells.empty() || file != 0; }
    };
    // Its path in the tree is at id_of_fork of its index; empty: there is none.
    struct Fork {
        SavedCells cells = {};
        Use use = {};
    };
    struct Source {
        SlotId slot = kNoSlot;
        std::int32_t length = 0;
    };
    // What RAM has of a slot's beginning already.
    struct Beside {
        SavedCells cells = {};
        std::int32_t common = 0;

        std::int64_t kept() const { return static_cast<std::int64_t>(cells.kept_of(common)); }
    };

    Backend& backend;
    CacheShape shape;
    RadixTree tree;
    CellLedger cells;
    std::vector<Slot> slots;
    std::vector<Left> left;
    std::vector<Fork> forks;
    SlotId wanted_fork = kNoSlot;  // about to be used: it must not go
    RamCounts ram;
    SequenceFiles* files;
    DiskCounts disk;
    FileId next_file = 1;
    std::int64_t damaged_when_found = 0;  // as far as it is counted
    std::int32_t reads = 0;               // under way or staged
    Milliseconds now = 0;
    ReturnTimes return_times;
    Milliseconds usual_gap = 0;  // of all that came back, a moving average
    // The share of first prompts that were continued, a moving average.
    double return_rate = 0.0;
    std::int64_t evictions = 0;
    std::int64_t copies = 0;
    std::int64_t copied_bytes = 0;     // between slots: out of one and into another
    std::int64_t backed_up_bytes = 0;  // copied out of slots that keep them

    State(Backend& used_backend, std::int64_t ram_limit, std::int32_t left_limit,
          SequenceFiles* used_files, std::int64_t disk_limit);

    Slot& at(SlotId slot) { return slots[static_cast<std::size_t>(slot)]; }
    const Slot& at(SlotId slot) const { return slots[static_cast<std::size_t>(slot)]; }
    bool is_streams() const { return shape.layout == CacheLayout::kStreams; }

    // kv_retention_slots.cpp: cells, tree and backend together.
    SlotSet in_state(SlotState first, SlotState second) const;
    bool has_free_slot() const { return !in_state(SlotState::kFree, SlotState::kFree).empty(); }
    void set_state(SlotId slot, SlotState state);
    void clear(SlotId slot);
    std::int32_t truncate(SlotId slot, std::int32_t length);
    std::int32_t copy(SlotId from, SlotId to, std::int32_t length);
    bool move(SlotId from, SlotId to);
    std::vector<std::int32_t> match(std::span<const Token> prompt, Salt salt) const;
    std::vector<std::int32_t> match(SlotId id, std::int32_t length) const;
    std::int32_t whole_chunks(std::int32_t count, std::int32_t length) const;
    std::int32_t reusable(SlotId slot, std::span<const std::int32_t> shared,
                          std::int32_t most) const;
    std::int32_t promised(SlotId slot, std::int32_t common) const;
    std::int32_t known_length(std::span<const std::int32_t> shared, std::int32_t most) const;
    bool is_near(const Source& source) const;

    // kv_retention_places.cpp: who gives up a slot, and where a sequence runs.
    void evict(SlotId slot);
    ReturnTable return_rates() const;
    std::int32_t own_positions(SlotId slot) const;
    SlotId choose_evictable(SlotId except, bool frees_cells = false) const;
    SlotId choose_room(SlotId except) const;
    void vacate(SlotId slot, SlotId keep);
    SlotId settle(SlotId slot);
    SlotId exchange(SlotId slot, SlotId room);

    // kv_retention_ram.cpp: what has left its slot.
    std::size_t index_of(SlotId id) const {
        return static_cast<std::size_t>(id - shape.slot_count);
    }
    SlotId id_of(std::size_t index) const { return shape.slot_count + static_cast<SlotId>(index); }
    Left& left_at(SlotId id) { return left[index_of(id)]; }
    const Left& left_at(SlotId id) const { return left[index_of(id)]; }
    std::int32_t left_length(SlotId id) const;
    void remember(SlotId slot);
    Milliseconds waited_for_until(const Slot& slot) const;
    void join_lease(Left& entry, const Slot& slot);
    bool comes_back(const Use& use) const;
    void forget(SlotId id);
    SlotId id_for_one_more();
    Source best_saved(std::span<const std::int32_t> shared, std::int32_t most) const;
    std::int32_t cut_of_saved(std::span<const std::int32_t> shared, SlotId id, std::int32_t length,
                              std::int32_t most) const;
    bool worth_restoring(const Source& saved, std::int32_t resident) const;
    bool worth_moving(std::int32_t length, std::int32_t gain) const;
    void free_cells(std::int64_t count);
    PrefixSource tier_of(SlotId id) const;
    std::int32_t restore(const Source& saved, SlotId room);
    Use learn(std::span<const std::int32_t> shared);

    // kv_retention_room.cpp: how much room in RAM it takes, and what gives it up.
    bool fits_in_ram(SlotId slot) const;
    std::int64_t size_in_ram(SlotId slot) const;
    Beside beside_in_ram(std::span<const std::int32_t> shared, std::int32_t length) const;
    static Candidate as_newcomer(const Use& use, bool leased, std::int32_t length,
                                 std::int64_t size, const Beside& beside);
    SavedCells save_in_ram(SlotId slot, std::int64_t size, const Beside& beside,
                           const Candidate& newcomer);
    void keep_cells(Left& entry, SavedCells saved);
    void drop_covered(SlotId slot);
    Candidate loss_of(SlotId slot) const;
    SlotId least_in_ram(const Candidate& newcomer, Candidate* least) const;
    bool make_room_in_ram(std::int64_t bytes, const Candidate& newcomer, const Beside& beside);
    void drop_cells(Left& entry);
    std::string check_left() const;

    // kv_retention_disk.cpp: what is in files.
    void take_found();
    void settle(FileOutcome outcome);
    SlotId id_of_file(FileId file) const;
    bool awaits_read() const;
    void unstage(Left& entry);
    void forget_file(Left& entry);
    void remove_file(Left& entry);
    bool is_in_files(SlotId of, std::int32_t length) const;
    bool make_room_on_disk(std::int64_t bytes, const Candidate& newcomer);
    bool file(SlotId id, const SavedCells& saved);
    bool back_up_slot(SlotId slot, Left as);
    Left as_it_rests(SlotId slot) const;
    void drop_superseded(SlotId id);
    std::int32_t cut_of_filed(std::span<const std::int32_t> shared, SlotId id,
                              std::int32_t most) const;
    Source best_filed(std::span<const std::int32_t> shared, std::int32_t most) const;
    std::int64_t filed_bytes() const;

    // kv_retention_shared.cpp: what is computed for other servers.
    void give_back(std::uint64_t& claim);
    std::int64_t likely_bytes(std::int32_t length) const;

    // kv_retention_forks.cpp: what models that cannot be cut are cut back to.
    SlotId id_of_fork(std::size_t index) const {
        return shape.slot_count + static_cast<SlotId>(left.size() + index);
    }
    bool is_fork(SlotId id) const { return id >= id_of_fork(0); }
    Fork& fork_at(SlotId id) { return forks[static_cast<std::size_t>(id - id_of_fork(0))]; }
    const Fork& fork_at(SlotId id) const {
        return forks[static_cast<std::size_t>(id - id_of_fork(0))];
    }
    bool keeps_forks() const { return !forks.empty(); }
    bool fork(SlotId slot);
    bool make_room_for_fork(SlotId of, std::int32_t length, std::int64_t size, bool leased);
    void add_fork(SlotId of, SavedCells saved);
    void take_fork(SlotId of, SavedCells saved);
    std::vector<SavedCells> forks_to_file(SlotId of, std::size_t cell_bytes) const;
    Source last_fork(std::span<const std::int32_t> shared, std::int32_t most) const;
    std::int32_t cut_back(SlotId slot, std::int32_t length);
    std::int32_t restore_fork(SlotId id, SlotId room);
    void drop_fork(SlotId id);
    SlotId id_for_one_more_fork();
    bool is_held_somewhere(std::span<const std::int32_t> shared, std::int32_t length) const;
    void add_forks(std::vector<Candidate>& candidates, std::vector<SlotId>& ids) const;
    std::string check_forks() const;
};

}  // namespace fermata
