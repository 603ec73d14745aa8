// Which tokens are resident in which slot: a radix tree of token paths over slots, a ledger of
// cells, leases that pin slots, eviction of what is not pinned. One interface for both cache
// layouts.
//
// A slot is free, running (a sequence writes to it), held (pinned by a lease until resume, release
// or expiry), leased (finished, softly pinned for its caller's return) or retained (evictable).
// Only running slots grow, and held ones by extend. Both stay where they are and keep their tokens,
// except as the call that names them says. Leased and retained slots are evicted, retained before
// leased, in the order of eviction_policy.h. In the streams layout retained tokens may move to
// another slot to make room beside the running ones; leased ones never move.
//
// What is evicted or given up goes to RAM, as far as the limit allows and the policy finds it worth
// more than what is there, and is found by its tokens again. What RAM has no room for goes to
// files, if there are any; what rests for a while is written there too, so that it survives the
// process.
//
// Sequences of different salts give each other nothing: neither in slots, nor in RAM, nor in files.
//
// A model that cannot be cut back anywhere is cut back to forks: snapshots in RAM of what its later
// positions overwrite. A fork belongs to its tokens, not to a slot: whatever begins with them is
// cut back to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/cell_ledger.h"
#include "core/sequence_files.h"
#include "core/slot_set.h"
#include "core/types.h"

namespace fermata {

enum class SlotState : std::uint8_t { kFree, kRunning, kHeld, kLeased, kRetained };

// How a prompt was placed.
struct Placement {
    SlotId slot = kNoSlot;
    std::int32_t reused = 0;  // positions [0, reused) are resident; the rest is to be prefilled
    // Behind them, the prompt goes on as what is known already up to here, but no fork is there.
    // 0: as far as `reused`.
    std::int32_t branch = 0;
    bool copied =
        false;  // they came from another slot or RAM: by reference or, in streams, by moving data
    PrefixSource source = PrefixSource::kNone;
};

// The longest reusable prefix of a prompt, now and once what runs is prefilled. Never more than
// prompt.size() - 1 positions: the last token must be decoded for its logits.
struct Promise {
    std::int32_t resident =
        0;  // the best that any slot or RAM holds now; acquire may decline a small one
    std::int32_t promised =
        0;  // the best once the planned rows of running slots are decoded; >= resident
    SlotId provider = kNoSlot;  // of `promised`: a running slot if promised > resident
};

// What a prompt that waits may lose.
struct Stake {
    SlotId slot = kNoSlot;  // kNoSlot: nothing
    std::int32_t positions = 0;
};

// What has left its slot for RAM.
struct RamCounts {
    std::int64_t limit = 0;  // bytes
    std::int64_t bytes = 0;  // what several sequences share is counted once
    std::int32_t sequences = 0;
    std::int64_t saves = 0, restores = 0;
    std::int64_t drops = 0;        // given up for want of room, or not readable
    std::int64_t moved_bytes = 0;  // of saves and restores
    std::int64_t fork_bytes = 0;   // beside `bytes`, within the same limit
    std::int32_t forks = 0;
    std::int64_t fork_saves = 0, fork_uses = 0, fork_drops = 0;
};

// What is in files, or on its way there.
struct DiskCounts {
    std::int64_t limit = 0;  // bytes
    std::int64_t bytes = 0;
    std::int32_t files = 0;
    std::int64_t saves = 0, restores = 0;
    // Why a sequence is not there, or not any more: the policy gave it up for want of room; a file
    // was not what was written; it was of another model, options or build; the system refused; too
    // much waited to be written.
    std::int64_t full = 0, damaged = 0, foreign = 0, failed = 0, busy = 0;
    std::string fault;  // what the system said first; empty: nothing
};

// Who computes a beginning that several servers need.
struct Claimed {
    Claim claim = Claim::kNobody;
    std::uint64_t what = 0;  // for set_claim or give_back; 0: nothing
};

// Below this many reused positions a copy between streams costs more than it saves.
inline constexpr std::int32_t kMinCopiedPositions = 32;

class KvRetention {
   public:
    // `backend` outlives this object; it is called for copies, truncations, saves and restores.
    // `ram_limit`: bytes of host memory for what leaves its slot; 0: nothing goes there.
    // `left_limit`: sequences that are remembered after they left their slots, 1 .. kMaxLeft.
    // `files` outlives this object; null: there are none. `disk_limit`: bytes that they may take.
    explicit KvRetention(Backend& backend, std::int64_t ram_limit = 0,
                         std::int32_t left_limit = kMaxLeft, SequenceFiles* files = nullptr,
                         std::int64_t disk_limit = 0);
    ~KvRetention();

    // Looks only: changes nothing, evicts nothing.
    Promise lookup(std::span<const Token> prompt, Salt salt = 0) const;

    // The leased or retained slot that has more of the prompt than any other one, by
    // kMinCopiedPositions, and would lose it to others: no slot is free, and RAM has no room for
    // it. Looks only.
    Stake at_stake(std::span<const Token> prompt, Salt salt = 0) const;
    // Rows that another sequence would have to compute again if the prompt of this lookup took a
    // slot. 0: no other sequence loses any; RAM or files keep them; or that sequence is not likely
    // to come back soon.
    std::int32_t rows_that_others_lose(const Promise& promise) const;
    // Prompts wait for what is in these slots: it is evicted after all else, until the next call.
    void await(const SlotSet& awaited);

    // Gives a running slot for `prompt` (1 .. cells_per_sequence tokens) with the longest reusable
    // prefix in it. In this order:
    //  - a leased or retained slot is taken over when all it holds is a prefix of the prompt, so
    //    that nothing is lost, and a copy would not gain kMinCopiedPositions (unified: one) more;
    //  - streams: so is a retained slot that goes on behind the prefix for less than
    //    kMinCopiedPositions, and a 64th of the prefix: a copy would take longer than they do;
    //  - a prefix from RAM, if it is longer by kMinCopiedPositions, goes into a free slot, else in
    //    place of what the policy gives up;
    //  - the best prefix is copied into such a slot (streams: not below kMinCopiedPositions; then
    //    the slot is used empty);
    //  - if the best prefix is in the last evictable slot, that slot is truncated and taken over.
    // `kept`: what the slot holds stays when nobody waits for it any more. false: it is dropped at
    // the end of its hold or lease, and is in no file.
    // In the streams layout the slot is chosen to keep running slots adjacent (see resume).
    // With partial_truncate = false a prefix is all that a slot or RAM holds, or goes up to a fork.
    // nullopt: every slot is running or held; nothing was changed.
    std::optional<Placement> acquire(std::span<const Token> prompt, Milliseconds now, Salt salt = 0,
                                     bool kept = true);

    // Registers tokens that the running slot will hold next, so that lookup can promise them.
    void plan(SlotId slot, std::span<const Token> tokens);
    // Lengths, ascending, at which fork() will be called for the running slot, so that lookup can
    // promise them.
    void mark(SlotId slot, std::vector<std::int32_t> lengths);
    // Forks are of use and have room.
    bool keeps_forks() const;
    // Keeps a fork of what the slot, which runs or is held, holds now. false: there is none.
    bool fork(SlotId slot);
    // The next `count` planned tokens of the slot are now resident.
    void commit(SlotId slot, std::int32_t count);
    // Positions of the running slot from `length` on are not resident any more and planned again.
    // Returns how many are left: `length`, or where the model cannot be cut there, those of the
    // longest fork below it, or 0.
    std::int32_t rewind(SlotId slot, std::int32_t length);
    // Forgets planned tokens that will not be decoded.
    void forget_planned(SlotId slot);

    // Unified layout: frees cells for `count` more rows by evicting what really frees cells. false:
    // all of it would not be enough; nothing was evicted. Streams layout: always true.
    bool ensure_cells(std::int64_t count);

    // running -> held, until `deadline`. Planned tokens must be committed or forgotten.
    void hold(SlotId slot, Milliseconds deadline);
    // held -> running; returns where the slot is now. In the streams layout it moves when that
    // leaves fewer groups of adjacent running slots and a free or retained slot gives the place;
    // what was retained there moves to a free slot or to RAM, or the two change places.
    SlotId resume(SlotId slot);
    // The held slot has these tokens too now, behind those that it has.
    void extend(SlotId slot, std::span<const Token> tokens);
    // Keeps positions [0, length) of the held slot. Returns how many are left: `length`, or up to
    // the last fork before when the model cannot.
    std::int32_t truncate(SlotId slot, std::int32_t length);
    // running or held -> retained (lease_until = 0) or leased until then. Planned tokens are
    // forgotten. A slot without resident tokens becomes free. What RAM has of the slot's beginning
    // leaves RAM, unless somebody waits for it.
    void retain(SlotId slot, Milliseconds now, Milliseconds lease_until);
    // running or held -> free; what is resident leaves for RAM if there is room for it.
    void give_up(SlotId slot);
    // Any state -> free; clears the cells.
    void drop(SlotId slot);
    // What is leased, and what left its slot while somebody waited for it, is as anything else when
    // the lease has ended; what is not to be kept is dropped. A hold's end is its owner's to see
    // to.
    void end_leases(Milliseconds now);
    // The held slot to give up when nothing else is left: the one whose deadline is furthest.
    // kNoSlot: none is held.
    SlotId eviction_victim_among_held() const;
    // Drops every leased and retained slot, and what is in RAM and in files. Not counted as
    // evictions.
    void clear_retained();

    // Takes in what became of reads and writes. Before the calls of a step that name a time.
    void attend_files(Milliseconds now);
    // A file has more of the prompt than the `have` positions that are to be had otherwise, and is
    // being read: ask again. false: acquire may be called. `row_ms`: what computing a row takes, 0
    // if that is not known: a file is left where it is if reading it takes longer.
    bool fetch(std::span<const Token> prompt, std::int32_t have, Salt salt = 0, double row_ms = 0);
    // Before `beginning`, of which all but `have` positions would have to be computed, is computed:
    // whether another server that shares the files does that. Never waits. kNobody also where it is
    // short, or takes longer to read than to compute (`row_ms`, see fetch). Whatever the answer,
    // the claim is to be set to the slot that computes it, or given back.
    Claimed claim(std::span<const Token> beginning, std::int32_t have, Salt salt, double row_ms);
    // Until the slot has shared it or runs no more.
    void set_claim(SlotId slot, std::uint64_t claim);
    // Unless a slot has it. 0: nothing.
    void give_back(std::uint64_t claim);
    // Writes what the running slot holds for other servers, and keeps it in files beside what
    // continues it. Copies all of it: see moved_bytes.
    void share(SlotId slot);
    // Writes one sequence of at most `most` bytes that has rested for a while and is in no file.
    void back_up(std::int64_t most);
    // The last call but for drops: what rests in slots and RAM is written, as far as time allows,
    // and files are left alone from then on.
    void save_all();

    // acquire would find one.
    bool has_slot() const;
    SlotState state(SlotId slot) const;
    std::int32_t length(SlotId slot) const;            // resident positions
    std::span<const Token> tokens(SlotId slot) const;  // resident tokens
    CellCounts cells() const;
    RamCounts ram() const;
    DiskCounts disk() const;
    std::int32_t retained_slots() const;
    std::int64_t evictions() const;
    std::int64_t copies() const;
    std::int64_t moved_bytes() const;  // of all saves, restores and copies of data

    // Every cell's owners, every lease, every count against the tree. Empty when sound, else what
    // is wrong. For idle moments in debug builds, and tests.
    std::string check_integrity() const;

   private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fermata
