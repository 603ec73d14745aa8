// Which tokens are resident in which slot: a radix tree of token runs over slots, leases that pin
// slots, eviction of what is not pinned. One interface for both cache layouts.
//
// A slot is free, running (a sequence writes to it), held (pinned by a lease until resume, release
// or expiry), leased (finished, softly pinned for its caller's return) or retained (evictable).
// Only running slots grow. No call changes the tokens of a slot it was not given, except by
// evicting leased and retained slots, oldest first, retained before leased.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/types.h"

namespace fermata {

enum class SlotState : std::uint8_t { kFree, kRunning, kHeld, kLeased, kRetained };

// How a prompt was placed.
struct Placement {
    SlotId slot = kNoSlot;
    std::int32_t reused = 0;  // positions [0, reused) are resident; the rest is to be prefilled
    bool copied = false;
};

// The longest prefix of a prompt that a running slot will hold once its planned rows are decoded.
struct Promise {
    SlotId provider = kNoSlot;
    std::int32_t resident = 0;  // of the best slot, now
    std::int32_t promised = 0;  // of the provider, when its prompt is prefilled; >= resident
};

struct CellCounts {
    std::int64_t used = 0;      // referenced by running or held slots
    std::int64_t retained = 0;  // referenced by leased or retained slots only
    std::int64_t free = 0;
};

class RadixTree;

class KvRetention {
   public:
    // `backend` outlives this object; it is called for copies and truncations only.
    explicit KvRetention(Backend& backend);
    ~KvRetention();

    // The longest prefix of `prompt` now and soon. Looks only; never evicts.
    Promise lookup(std::span<const Token> prompt) const;

    // Gives a running slot for `prompt`, reusing at most prompt.size() - 1 resident positions (the
    // last token must be decoded for its logits), by taking a retained slot over or by copying a
    // prefix, whichever leaves more retained and, in the streams layout, keeps running slots on
    // adjacent ids. Evicts if it must. nullopt: every slot is running or held.
    std::optional<Placement> acquire(std::span<const Token> prompt, Milliseconds now);

    // Registers tokens that the running slot will hold next, so that lookup can promise them.
    void plan(SlotId slot, std::span<const Token> tokens);
    // The next `count` planned tokens of the slot are now resident.
    void commit(SlotId slot, std::int32_t count);
    // Forgets planned tokens that will not be decoded.
    void forget_planned(SlotId slot);

    // Unified layout: frees cells for `count` more rows by eviction. false: not enough to evict.
    // Streams layout: always true.
    bool ensure_cells(std::int64_t count);

    // running -> held, until `deadline`. Planned tokens must be committed or forgotten.
    void hold(SlotId slot, Milliseconds deadline);
    // held -> running. In the streams layout the slot may move next to the running ones when a free
    // or evictable slot allows; returns where it is now.
    SlotId resume(SlotId slot);
    // running or held -> retained (lease_until = 0) or leased until then.
    void retain(SlotId slot, Milliseconds now, Milliseconds lease_until);
    // Any state -> free; clears the cells.
    void drop(SlotId slot);
    // Held slots whose deadline has passed, for the scheduler to end; leased ones become retained.
    std::vector<SlotId> expire(Milliseconds now);
    // The held slot to give up when nothing else is left: the one whose deadline is furthest.
    // kNoSlot: none is held.
    SlotId eviction_victim_among_held() const;
    // Drops every leased and retained slot.
    void clear_retained();

    SlotState state(SlotId slot) const;
    std::int32_t length(SlotId slot) const;            // resident positions
    std::span<const Token> tokens(SlotId slot) const;  // resident tokens
    CellCounts cells() const;
    std::int32_t retained_slots() const;
    std::int64_t evictions() const;
    std::int64_t copies() const;

    // Every cell's owners, every lease, every count against the tree. Empty when sound, else what
    // is wrong. For idle moments in debug builds, and tests.
    std::string check_integrity() const;

   private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fermata
