#include "core/kv_retention.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/kv_retention_state.h"

namespace fermata {

KvRetention::KvRetention(Backend& backend, std::int64_t ram_limit, std::int32_t left_limit,
                         SequenceFiles* files, std::int64_t disk_limit)
    : state_(std::make_unique<State>(backend, ram_limit, left_limit, files, disk_limit)) {}
KvRetention::~KvRetention() = default;

Promise KvRetention::lookup(std::span<const Token> prompt, Salt salt) const {
    const State& s = *state_;
    const std::vector<std::int32_t> shared = s.match(prompt, salt);
    const auto most = std::max(0, static_cast<std::int32_t>(prompt.size()) - 1);
    Promise promise;
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        const std::int32_t count = s.reusable(slot, shared, most);
        if (count <= promise.resident) continue;
        promise = {.resident = count, .promised = count, .provider = slot};
    }
    const State::Source saved = s.best_saved(shared, most);
    if (s.worth_restoring(saved, promise.resident))
        promise = {.resident = saved.length, .promised = saved.length, .provider = kNoSlot};
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        if (s.at(slot).state != SlotState::kRunning) continue;
        const std::int32_t common = std::min(shared[static_cast<std::size_t>(slot)], most);
        const std::int32_t count = s.promised(slot, common);
        if (count <= promise.promised) continue;
        promise.promised = count;
        promise.provider = slot;
    }
    return promise;
}

Stake KvRetention::at_stake(std::span<const Token> prompt, Salt salt) const {
    const State& s = *state_;
    if (s.has_free_slot()) return {};
    const std::vector<std::int32_t> shared = s.match(prompt, salt);
    const auto most = std::max(0, static_cast<std::int32_t>(prompt.size()) - 1);
    Stake best;
    std::int32_t elsewhere = 0;  // the longest in any other slot
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        const std::int32_t length = s.reusable(slot, shared, most);
        elsewhere = std::max(elsewhere, std::min(length, best.positions));
        if (length > best.positions) best = {slot, length};
    }
    if (best.positions < kWorthKeeping || !is_evictable(state(best.slot))) return {};
    if (best.positions - elsewhere < kMinCopiedPositions) return {};
    const bool stays = s.best_saved(shared, most).length >= best.positions ||
                       s.is_in_files(best.slot, best.positions) || s.loss_of(best.slot).rows == 0;
    return stays ? Stake{} : best;
}

std::int32_t KvRetention::rows_that_others_lose(const Promise& promise) const {
    const State& s = *state_;
    if (s.has_free_slot()) return 0;
    const SlotId own = promise.provider;
    const bool takes_over = own != kNoSlot && is_evictable(state(own));
    if (takes_over && length(own) <= promise.resident) return 0;
    const SlotId victim = s.choose_evictable(takes_over ? own : kNoSlot);
    if (victim == kNoSlot) return 0;
    const Candidate lost = s.loss_of(victim);
    return s.comes_back(lost.use) ? static_cast<std::int32_t>(lost.rows) : 0;
}

void KvRetention::await(const SlotSet& awaited) {
    for (SlotId slot = 0; slot < state_->shape.slot_count; ++slot)
        state_->at(slot).awaited = awaited.contains(slot);
}

std::optional<Placement> KvRetention::acquire(std::span<const Token> prompt, Milliseconds now,
                                              Salt salt, bool kept) {
    State& s = *state_;
    s.now = now;
    const std::vector<std::int32_t> shared = s.match(prompt, salt);
    const auto most = std::max(0, static_cast<std::int32_t>(prompt.size()) - 1);

    State::Source best;   // the longest reusable prefix
    State::Source whole;  // the longest whose slot loses nothing when taken over
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        const std::int32_t common = shared[static_cast<std::size_t>(slot)];
        const std::int32_t length = s.reusable(slot, shared, most);
        if (length > best.length) best = {slot, length};
        const bool loses_nothing = common >= s.cells.length(slot);
        if (is_evictable(s.at(slot).state) && loses_nothing && length > whole.length)
            whole = {slot, length};
    }
    const State::Source saved = s.best_saved(shared, most);
    const bool restores = s.worth_restoring(saved, best.length);
    const std::int32_t least_gain = s.is_streams() ? kMinCopiedPositions : 1;
    const bool takes_over = whole.slot != kNoSlot && best.length - whole.length < least_gain;
    if (best.length < least_gain && !takes_over) best = {};
    const SlotId room = s.choose_room(restores ? kNoSlot : best.slot);
    const bool best_can_move = best.slot != kNoSlot && is_evictable(s.at(best.slot).state);
    if (room == kNoSlot && !takes_over && !best_can_move) return std::nullopt;

    // Before anything leaves its place: `shared` is by id.
    const std::int32_t known = s.keeps_forks() ? s.known_length(shared, most) : 0;
    s.wanted_fork = s.last_fork(shared, most).slot;
    const Use use = s.learn(shared);
    const auto start = [&](SlotId slot, std::int32_t reused, bool copied, PrefixSource source) {
        s.set_state(slot, SlotState::kRunning);
        s.tree.set_salt(slot, salt);
        s.at(slot).use = use;
        s.at(slot).kept = kept;
        s.wanted_fork = kNoSlot;
        return Placement{.slot = slot,
                         .reused = reused,
                         .branch = known > reused ? known : 0,
                         .copied = copied,
                         .source = reused > 0 ? source : PrefixSource::kNone};
    };
    const auto take_over = [&](const State::Source& source) {
        if (source.slot != whole.slot) s.remember(source.slot);
        const std::int32_t reused = s.truncate(source.slot, source.length);
        const SlotId slot = s.settle(source.slot);
        return start(slot, reused, slot != source.slot, PrefixSource::kSlot);
    };

    if (takes_over && !restores) return take_over(whole);
    if (room == kNoSlot) return take_over(best);
    if (!restores && s.is_near(best)) {
        whole = best;  // what follows is not worth remembering
        return take_over(best);
    }
    if (restores) {
        if (!s.is_fork(saved.slot)) s.left_at(saved.slot).wanted = true;
        s.vacate(room, kNoSlot);
        const PrefixSource tier = s.tier_of(saved.slot);
        return start(room, s.restore(saved, room), true, tier);
    }
    s.vacate(room, best.slot);
    if (best.slot == kNoSlot) return start(room, 0, false, PrefixSource::kNone);
    const std::int32_t copied = s.copy(best.slot, room, best.length);
    // Soon it is the only one again.
    if (!kept) s.at(best.slot).use.last_used = now;
    return start(room, copied, copied > 0, PrefixSource::kCopy);
}

void KvRetention::plan(SlotId slot, std::span<const Token> tokens) {
    assert(state(slot) == SlotState::kRunning);
    state_->tree.extend(slot, tokens);
}

void KvRetention::mark(SlotId slot, std::vector<std::int32_t> lengths) {
    assert(state(slot) == SlotState::kRunning);
    if (keeps_forks()) state_->at(slot).marks = std::move(lengths);
}

bool KvRetention::keeps_forks() const {
    return state_->keeps_forks();
}

bool KvRetention::fork(SlotId slot) {
    std::erase_if(state_->at(slot).marks, [&](std::int32_t mark) { return mark <= length(slot); });
    return state_->fork(slot);
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
    if (!state_->backend.truncate(slot, length)) length = state_->cut_back(slot, length);
    state_->cells.truncate(slot, length);
    state_->at(slot).filed = 0;
    return length;
}

bool KvRetention::ensure_cells(std::int64_t count) {
    State& s = *state_;
    if (s.is_streams()) return true;
    const CellCounts counts = s.cells.counts();
    if (counts.free + counts.retained < count) return false;
    s.free_cells(count);
    return true;
}

void KvRetention::hold(SlotId slot, Milliseconds deadline) {
    assert(state(slot) == SlotState::kRunning);
    state_->set_state(slot, SlotState::kHeld);
    state_->at(slot).marks.clear();
    state_->at(slot).until = deadline;
    state_->at(slot).rests_since = state_->now;
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
    state_->now = now;
    state_->set_state(slot, lease_until > 0 ? SlotState::kLeased : SlotState::kRetained);
    state_->at(slot).marks.clear();
    state_->at(slot).use.last_used = now;
    state_->at(slot).rests_since = now;
    state_->at(slot).until = lease_until;
    state_->drop_covered(slot);
}

void KvRetention::drop(SlotId slot) {
    if (state(slot) != SlotState::kFree) state_->clear(slot);
}

void KvRetention::give_up(SlotId slot) {
    state_->remember(slot);
    state_->clear(slot);
}

void KvRetention::end_leases(Milliseconds now) {
    state_->now = now;
    for (SlotId slot = 0; slot < state_->shape.slot_count; ++slot) {
        State::Slot& entry = state_->at(slot);
        if (entry.state != SlotState::kLeased || entry.until > now) continue;
        if (entry.kept) entry.state = SlotState::kRetained;
        if (!entry.kept) state_->clear(slot);
    }
    for (SlotId id = state_->shape.slot_count; id < state_->id_of(state_->left.size()); ++id) {
        State::Left& entry = state_->left_at(id);
        if (!entry.leased || entry.until > now) continue;
        entry.leased = false;
        if (!entry.kept) state_->forget(id);
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
    for (SlotId id = state_->shape.slot_count; id < state_->id_of(state_->left.size()); ++id)
        state_->forget(id);
    for (std::size_t index = 0; index < state_->forks.size(); ++index)
        state_->drop_fork(state_->id_of_fork(index));
}

bool KvRetention::has_slot() const {
    return std::ranges::any_of(state_->slots,
                               [](const State::Slot& slot) { return !is_pinned(slot.state); });
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
std::int64_t KvRetention::moved_bytes() const {
    return state_->ram.moved_bytes + state_->copied_bytes + state_->backed_up_bytes;
}

RamCounts KvRetention::ram() const {
    return state_->ram;
}

std::int32_t KvRetention::retained_slots() const {
    return static_cast<std::int32_t>(std::ranges::count_if(
        state_->slots, [](const State::Slot& slot) { return is_evictable(slot.state); }));
}

std::string KvRetention::check_integrity() const {
    const State& s = *state_;
    if (std::string wrong = s.tree.check_integrity(); !wrong.empty()) return wrong;
    if (std::string wrong = s.cells.check_integrity(); !wrong.empty()) return wrong;
    if (std::string wrong = s.check_left(); !wrong.empty()) return wrong;
    if (std::string wrong = s.check_forks(); !wrong.empty()) return wrong;
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
