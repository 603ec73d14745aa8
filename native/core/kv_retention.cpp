#include "core/kv_retention.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "core/radix_tree.h"

namespace fermata {
namespace {

struct Slot {
    SlotState state = SlotState::kFree;
    Milliseconds last_used = 0;
    Milliseconds until = 0;  // kHeld: deadline; kLeased: end of the lease
};

bool is_evictable(SlotState state) {
    return state == SlotState::kLeased || state == SlotState::kRetained;
}

bool is_pinned(SlotState state) {
    return state == SlotState::kRunning || state == SlotState::kHeld;
}

}  // namespace

struct KvRetention::State {
    Backend& backend;
    CacheShape shape;
    RadixTree tree;
    CellLedger cells;
    std::vector<Slot> slots;
    std::int64_t evictions = 0;
    std::int64_t copies = 0;

    explicit State(Backend& used_backend)
        : backend(used_backend),
          shape(backend.shape()),
          tree(shape.slot_count),
          cells(shape),
          slots(static_cast<std::size_t>(shape.slot_count)) {}

    Slot& at(SlotId slot) { return slots[static_cast<std::size_t>(slot)]; }
    const Slot& at(SlotId slot) const { return slots[static_cast<std::size_t>(slot)]; }

    bool is_streams() const { return shape.layout == CacheLayout::kStreams; }
    // Where a sequence sits matters, and it can be moved.
    bool places_matter() const { return is_streams() && shape.partial_truncate; }

    SlotSet in_state(SlotState first, SlotState second) const {
        SlotSet set;
        for (SlotId slot = 0; slot < shape.slot_count; ++slot)
            if (at(slot).state == first || at(slot).state == second) set.add(slot);
        return set;
    }

    void set_state(SlotId slot, SlotState state) {
        at(slot).state = state;
        cells.pin(slot, is_pinned(state));
    }

    void clear(SlotId slot) {
        backend.truncate(slot, 0);
        cells.truncate(slot, 0);
        tree.truncate(slot, 0);
        set_state(slot, SlotState::kFree);
        at(slot) = {};
    }

    // Returns the positions that are left: `length`, or 0 if the model cannot truncate.
    std::int32_t truncate(SlotId slot, std::int32_t length) {
        if (length == cells.length(slot)) return length;
        if (!backend.truncate(slot, length)) length = 0;
        cells.truncate(slot, length);
        tree.truncate(slot, length);
        return length;
    }

    void copy(SlotId from, SlotId to, std::int32_t length) {
        if (length == 0) return;
        backend.copy_prefix(from, to, length);
        cells.copy(from, to, length);
        tree.extend(to, tree.path(from).first(static_cast<std::size_t>(length)));
        if (is_streams()) ++copies;
    }

    // The free slot `to` takes the place of `from`, with its state.
    void move(SlotId from, SlotId to) {
        copy(from, to, cells.length(from));
        at(to) = at(from);
        cells.pin(to, is_pinned(at(to).state));
        clear(from);
    }

    void evict(SlotId slot) {
        clear(slot);
        ++evictions;
    }

    // Least recently used, retained before leased; not `except`.
    SlotId oldest_evictable(SlotId except) const {
        SlotId oldest = kNoSlot;
        const auto age = [this](SlotId slot) {
            return std::tuple(at(slot).state == SlotState::kLeased, at(slot).last_used);
        };
        for (SlotId slot = 0; slot < shape.slot_count; ++slot) {
            if (slot == except || !is_evictable(at(slot).state)) continue;
            if (oldest == kNoSlot || age(slot) < age(oldest)) oldest = slot;
        }
        return oldest;
    }

    // The slot where a sequence should run: free, or to be vacated; kNoSlot: there is none.
    // Streams: the one that leaves the fewest groups of adjacent running slots, since each group is
    // one more pass over the weights in every step. Among those free before retained, then the
    // least recently used, then beside held slots, which will run again.
    SlotId choose_room(SlotId except) const {
        const SlotSet running = in_state(SlotState::kRunning, SlotState::kRunning);
        const SlotSet pinned = in_state(SlotState::kRunning, SlotState::kHeld);
        const auto cost = [&](SlotId slot) {
            const bool free = at(slot).state == SlotState::kFree;
            return std::tuple(is_streams() ? running.with(slot).runs() : 0, !free,
                              free ? 0 : at(slot).last_used,
                              is_streams() ? pinned.with(slot).runs() : 0);
        };
        SlotId best = kNoSlot;
        for (SlotId slot = 0; slot < shape.slot_count; ++slot) {
            const SlotState state = at(slot).state;
            const bool offers =
                state == SlotState::kFree || (state == SlotState::kRetained && places_matter());
            if (slot == except || !offers) continue;
            if (best == kNoSlot || cost(slot) < cost(best)) best = slot;
        }
        return best != kNoSlot ? best : oldest_evictable(except);
    }

    // Empties a slot that choose_room gave, without touching `keep`. Where places matter, what was
    // retained there moves to a free slot, else it replaces the least recently used.
    void vacate(SlotId slot, SlotId keep) {
        if (at(slot).state == SlotState::kFree) return;
        if (at(slot).state == SlotState::kRetained && places_matter()) {
            SlotId spare = in_state(SlotState::kFree, SlotState::kFree).first();
            if (spare == kNoSlot) {
                spare = oldest_evictable(keep);
                evict(spare);
            }
            if (spare != slot) move(slot, spare);
            return;
        }
        evict(slot);
    }

    // Moves a slot that is about to run beside the running ones if that joins groups; returns where
    // it is.
    SlotId settle(SlotId slot) {
        if (!places_matter()) return slot;
        const SlotId room = choose_room(slot);
        if (room == kNoSlot || at(room).state == SlotState::kLeased) return slot;
        const SlotSet running = in_state(SlotState::kRunning, SlotState::kRunning);
        if (running.with(room).runs() >= running.with(slot).runs()) return slot;
        vacate(room, slot);
        move(slot, room);
        return room;
    }

    std::vector<std::int32_t> match(std::span<const Token> prompt) const {
        std::vector<std::int32_t> shared(slots.size());
        tree.match(prompt, shared);
        return shared;
    }

    // Of the first `count` positions of a slot that has `length`, those of chunks that were, or
    // will be, computed as chunks: see CacheShape::fixed_chunk.
    std::int32_t whole_chunks(std::int32_t count, std::int32_t length) const {
        if (shape.fixed_chunk <= 1) return count;
        return std::max(0, std::min(count, length - 1)) / shape.fixed_chunk * shape.fixed_chunk;
    }

    // Of `shared` positions that a slot has in common with a prompt, how many can be reused now.
    std::int32_t reusable(SlotId slot, std::int32_t shared, std::int32_t most) const {
        const std::int32_t resident = cells.length(slot);
        const std::int32_t count = std::min({shared, resident, most});
        if (shape.partial_truncate) return whole_chunks(count, resident);
        return is_evictable(at(slot).state) && count == resident ? count : 0;
    }
};

KvRetention::KvRetention(Backend& backend) : state_(std::make_unique<State>(backend)) {}
KvRetention::~KvRetention() = default;

Promise KvRetention::lookup(std::span<const Token> prompt) const {
    const State& s = *state_;
    const std::vector<std::int32_t> shared = s.match(prompt);
    const auto most = std::max(0, static_cast<std::int32_t>(prompt.size()) - 1);
    Promise promise;
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        const std::int32_t count = s.reusable(slot, shared[static_cast<std::size_t>(slot)], most);
        if (count <= promise.resident) continue;
        promise = {.resident = count, .promised = count, .provider = slot};
    }
    if (!s.shape.partial_truncate) return promise;
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        if (s.at(slot).state != SlotState::kRunning) continue;
        // The last token of the plan may be kept back.
        const auto planned = static_cast<std::int32_t>(s.tree.path(slot).size()) - 1;
        const std::int32_t count =
            s.whole_chunks(std::min(shared[static_cast<std::size_t>(slot)], most), planned);
        if (count <= promise.promised) continue;
        promise.promised = count;
        promise.provider = slot;
    }
    return promise;
}

std::optional<Placement> KvRetention::acquire(std::span<const Token> prompt, Milliseconds now) {
    State& s = *state_;
    const std::vector<std::int32_t> shared = s.match(prompt);
    const auto most = std::max(0, static_cast<std::int32_t>(prompt.size()) - 1);

    struct Source {
        SlotId slot = kNoSlot;
        std::int32_t length = 0;
    };
    Source best;   // the longest reusable prefix
    Source whole;  // the longest whose slot loses nothing when taken over
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        const std::int32_t common = shared[static_cast<std::size_t>(slot)];
        const std::int32_t length = s.reusable(slot, common, most);
        if (length > best.length) best = {slot, length};
        const bool loses_nothing = common >= s.cells.length(slot);
        if (is_evictable(s.at(slot).state) && loses_nothing && length > whole.length)
            whole = {slot, length};
    }

    const auto start = [&](SlotId slot, std::int32_t reused, bool copied) {
        s.set_state(slot, SlotState::kRunning);
        s.at(slot).last_used = now;
        return Placement{.slot = slot, .reused = reused, .copied = copied};
    };
    const auto take_over = [&](const Source& source) {
        const std::int32_t reused = s.truncate(source.slot, source.length);
        const SlotId slot = s.settle(source.slot);
        return start(slot, reused, slot != source.slot);
    };

    const std::int32_t least_gain = s.is_streams() ? kMinCopiedPositions : 1;
    if (whole.slot != kNoSlot && best.length - whole.length < least_gain) return take_over(whole);
    if (best.length < least_gain) best = {};

    const SlotId room = s.choose_room(best.slot);
    if (room == kNoSlot) {
        if (best.slot == kNoSlot || !is_evictable(s.at(best.slot).state)) return std::nullopt;
        return take_over(best);
    }
    s.vacate(room, best.slot);
    if (best.slot == kNoSlot) return start(room, 0, false);
    s.copy(best.slot, room, best.length);
    s.at(best.slot).last_used = now;
    return start(room, best.length, true);
}

void KvRetention::plan(SlotId slot, std::span<const Token> tokens) {
    assert(state(slot) == SlotState::kRunning);
    state_->tree.extend(slot, tokens);
}

void KvRetention::commit(SlotId slot, std::int32_t count) {
    assert(static_cast<std::size_t>(length(slot) + count) <= state_->tree.path(slot).size());
    state_->cells.append(slot, count);
}

void KvRetention::forget_planned(SlotId slot) {
    state_->tree.truncate(slot, length(slot));
}

std::int32_t KvRetention::rewind(SlotId slot, std::int32_t length) {
    assert(state(slot) == SlotState::kRunning);
    if (!state_->backend.truncate(slot, length)) length = 0;
    state_->cells.truncate(slot, length);
    return length;
}

bool KvRetention::ensure_cells(std::int64_t count) {
    State& s = *state_;
    if (s.is_streams()) return true;
    const CellCounts counts = s.cells.counts();
    if (counts.free + counts.retained < count) return false;
    std::vector<SlotId> order;
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot)
        if (is_evictable(s.at(slot).state)) order.push_back(slot);
    std::ranges::stable_sort(order, {}, [&](SlotId slot) {
        return std::tuple(s.at(slot).state == SlotState::kLeased, s.at(slot).last_used);
    });
    for (const SlotId slot : order) {
        if (s.cells.counts().free >= count) break;
        if (s.cells.reclaimable(slot)) s.evict(slot);
    }
    return true;
}

void KvRetention::hold(SlotId slot, Milliseconds deadline) {
    assert(state(slot) == SlotState::kRunning);
    state_->set_state(slot, SlotState::kHeld);
    state_->at(slot).until = deadline;
}

SlotId KvRetention::resume(SlotId slot) {
    assert(state(slot) == SlotState::kHeld);
    slot = state_->settle(slot);
    state_->set_state(slot, SlotState::kRunning);
    return slot;
}

void KvRetention::extend(SlotId slot, std::span<const Token> tokens) {
    state_->tree.extend(slot, tokens);
    state_->cells.append(slot, static_cast<std::int32_t>(tokens.size()));
}

std::int32_t KvRetention::truncate(SlotId slot, std::int32_t length) {
    return state_->truncate(slot, length);
}

void KvRetention::retain(SlotId slot, Milliseconds now, Milliseconds lease_until) {
    assert(is_pinned(state(slot)));
    forget_planned(slot);
    if (length(slot) == 0) return state_->clear(slot);
    state_->set_state(slot, lease_until > 0 ? SlotState::kLeased : SlotState::kRetained);
    state_->at(slot).last_used = now;
    state_->at(slot).until = lease_until;
}

void KvRetention::drop(SlotId slot) {
    if (state(slot) != SlotState::kFree) state_->clear(slot);
}

void KvRetention::end_leases(Milliseconds now) {
    for (SlotId slot = 0; slot < state_->shape.slot_count; ++slot) {
        Slot& entry = state_->at(slot);
        if (entry.state == SlotState::kLeased && entry.until <= now)
            entry.state = SlotState::kRetained;
    }
}

SlotId KvRetention::eviction_victim_among_held() const {
    SlotId victim = kNoSlot;
    for (SlotId slot = 0; slot < state_->shape.slot_count; ++slot) {
        if (state(slot) != SlotState::kHeld) continue;
        if (victim == kNoSlot || state_->at(slot).until > state_->at(victim).until) victim = slot;
    }
    return victim;
}

void KvRetention::clear_retained() {
    for (SlotId slot = 0; slot < state_->shape.slot_count; ++slot)
        if (is_evictable(state(slot))) state_->clear(slot);
}

SlotState KvRetention::state(SlotId slot) const {
    return state_->at(slot).state;
}
std::int32_t KvRetention::length(SlotId slot) const {
    return state_->cells.length(slot);
}

std::span<const Token> KvRetention::tokens(SlotId slot) const {
    return state_->tree.path(slot).first(static_cast<std::size_t>(length(slot)));
}

CellCounts KvRetention::cells() const {
    return state_->cells.counts();
}
std::int64_t KvRetention::evictions() const {
    return state_->evictions;
}
std::int64_t KvRetention::copies() const {
    return state_->copies;
}

std::int32_t KvRetention::retained_slots() const {
    return static_cast<std::int32_t>(std::ranges::count_if(
        state_->slots, [](const Slot& slot) { return is_evictable(slot.state); }));
}

std::string KvRetention::check_integrity() const {
    const State& s = *state_;
    if (std::string wrong = s.tree.check_integrity(); !wrong.empty()) return wrong;
    if (std::string wrong = s.cells.check_integrity(); !wrong.empty()) return wrong;
    std::int64_t pinned_positions = 0;
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        const auto name = "retention: slot " + std::to_string(slot);
        const SlotState state = s.at(slot).state;
        const auto planned = static_cast<std::int64_t>(s.tree.path(slot).size());
        const std::int64_t resident = length(slot);
        if (is_pinned(state)) pinned_positions += resident;
        if (resident > planned) return name + " holds more than its path";
        if (planned > resident && state != SlotState::kRunning)
            return name + " has a plan but does not run";
        if (planned > s.shape.cells_per_sequence) return name + " is longer than a sequence may be";
        if (state == SlotState::kFree && resident > 0) return name + " is free but not empty";
        if (is_evictable(state) && resident == 0) return name + " is retained but empty";
        if (state == SlotState::kLeased && s.at(slot).until <= 0)
            return name + " is leased without an end";
    }
    if (s.is_streams() && s.cells.counts().used != pinned_positions)
        return "retention: cells in use differ from pinned positions";
    return {};
}

}  // namespace fermata
