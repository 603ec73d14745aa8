// What has left its slot: in RAM, where there is room for it, else remembered by its tokens.
#include <algorithm>

#include "core/kv_retention_state.h"

namespace fermata {

namespace {

// Moving a position costs at most so little of computing it. A restore moves all that was saved, so
// it must gain at least this part of that.
constexpr std::int32_t kMovesPerRow = 16;

// What runs and has given up its slot runs again within this time, or has waited in vain.
constexpr Milliseconds kRunsAgainWithin = 600'000;

}  // namespace

std::int32_t KvRetention::State::left_length(SlotId id) const {
    return static_cast<std::int32_t>(tree.path(id).size());
}

// Until when somebody waits for what the slot holds; 0: nobody does.
Milliseconds KvRetention::State::waited_for_until(const Slot& slot) const {
    if (slot.state == SlotState::kRunning) return now + kRunsAgainWithin;
    return slot.state == SlotState::kRetained ? 0 : slot.until;
}

// What left its slot before is what the slot holds, too.
void KvRetention::State::join_lease(Left& entry, const Slot& slot) {
    entry.use = slot.use;
    entry.until = std::max(entry.until, waited_for_until(slot));
    entry.leased = entry.leased || slot.state != SlotState::kRetained;
    entry.kept = entry.kept || slot.kept;
    entry.away = true;
}

// What the slot holds is about to leave it. It goes to RAM unless it is found elsewhere anyway, or
// what is there already is worth more; then to a file. A branch that ends a few positions behind
// another slot's, as answers to one prompt do, is found there.
void KvRetention::State::remember(SlotId slot) {
    const std::int32_t length = cells.length(slot);
    if (length < kWorthKeeping) return;
    const std::vector<std::int32_t> shared = match(slot, length);
    const bool leased = at(slot).state != SlotState::kRetained;
    const bool kept = at(slot).kept;
    const std::int32_t least = leased ? 1 : kMinCopiedPositions;
    for (SlotId other = 0; other < shape.slot_count; ++other) {
        if (other == slot || !shape.partial_truncate) continue;
        const std::int32_t found =
            std::min(shared[static_cast<std::size_t>(other)], cells.length(other));
        if (length - found < least) return;
    }
    std::vector<SlotId> superseded;
    SlotId filed = kNoSlot;  // a file has exactly this
    for (SlotId id = shape.slot_count; id < id_of(left.size()); ++id) {
        const std::int32_t known = left_length(id);
        if (known == 0 || left_at(id).wanted) continue;
        const std::int32_t common = shared[static_cast<std::size_t>(id)];
        const bool covers = common == length && (shape.partial_truncate || known == length);
        if (covers && !left_at(id).cells.empty() && !left_at(id).staged) {
            join_lease(left_at(id), at(slot));
            return;
        }
        if (common != known || !(shape.partial_truncate || known == length)) continue;
        if (left_at(id).file != 0 && known == length) filed = id;
        if (left_at(id).staged) continue;
        superseded.push_back(id);
    }

    Left entry{.use = at(slot).use,
               .leased = leased,
               .until = waited_for_until(at(slot)),
               .kept = kept,
               .away = true};
    const bool is_written = files != nullptr && filed == kNoSlot && kept;
    const bool goes_anywhere = ram.limit > 0 || is_written;
    const auto size = goes_anywhere ? static_cast<std::int64_t>(backend.saved_size(slot)) : 0;
    const Beside beside = beside_in_ram(shared, length);
    const Candidate newcomer = as_newcomer(entry.use, leased, length, size, beside);
    // It takes the place of these; nobody else may.
    for (const SlotId id : superseded) {
        left_at(id).wanted = true;
        ram.bytes -= static_cast<std::int64_t>(left_at(id).cells.give_up());
    }
    SavedCells saved = save_in_ram(slot, size, beside, newcomer);
    for (const SlotId id : superseded) {
        left_at(id).wanted = false;
        ram.bytes += static_cast<std::int64_t>(left_at(id).cells.keep());
    }
    const bool fits = !saved.empty();
    if (fits) keep_cells(entry, saved);
    if (!fits && size > 0 && is_written) saved = backend.save(slot);
    if (fits) ++ram.saves;
    if (!saved.empty()) ram.moved_bytes += size;
    // A file goes when what continues it is written.
    for (const SlotId id : superseded) {
        if (left_at(id).file != 0 && !entry.cells.empty()) drop_cells(left_at(id));
        if (left_at(id).file != 0) continue;
        if (left_at(id).cells.empty() || !entry.cells.empty()) forget(id);
    }
    if (filed != kNoSlot && left_at(filed).file != 0) {
        unstage(left_at(filed));
        left_at(filed).cells = std::move(entry.cells);
        join_lease(left_at(filed), at(slot));
        return;
    }
    const SlotId id = id_for_one_more();
    tree.share(slot, id, length);
    left_at(id) = std::move(entry);
    if (!fits) file(id, saved);
}

// It is likely to be wanted, and not long overdue. Of what never came back, as likely as others
// were.
bool KvRetention::State::comes_back(const Use& use) const {
    constexpr double kSeldom = 0.25;
    if (use.gap == 0 && return_rate < kSeldom) return false;
    const Milliseconds gap = use.gap == 0 ? usual_gap : use.gap;
    return now - use.last_used <= 2 * gap;
}

void KvRetention::State::forget(SlotId id) {
    drop_cells(left_at(id));
    remove_file(left_at(id));
    tree.truncate(id, 0);
    left_at(id) = {};
}

// An id without a path; one that is only remembered, then one that is kept, gives its own.
SlotId KvRetention::State::id_for_one_more() {
    SlotId oldest = kNoSlot;
    const auto age = [this](SlotId id) {
        return std::pair(left_at(id).is_anywhere(), left_at(id).use.last_used);
    };
    for (SlotId id = shape.slot_count; id < id_of(left.size()); ++id) {
        if (left_length(id) == 0) return id;
        if (left_at(id).wanted) continue;
        if (oldest == kNoSlot || age(id) < age(oldest)) oldest = id;
    }
    if (left_at(oldest).away) return_times.add_loss(left_at(oldest).use, now);
    if (!left_at(oldest).cells.empty()) ++ram.drops;
    if (left_at(oldest).file != 0) ++disk.full;
    forget(oldest);
    return oldest;
}

// The longest prefix that RAM has. `shared` as match() gives it.
KvRetention::State::Source KvRetention::State::best_saved(std::span<const std::int32_t> shared,
                                                          std::int32_t most) const {
    Source best = shape.forks_stand_alone ? last_fork(shared, most) : Source{};
    if (ram.sequences == 0 && reads == 0) return best;
    for (std::size_t index = 0; index < left.size(); ++index) {
        if (left[index].cells.empty()) continue;
        const SlotId id = id_of(index);
        const std::int32_t reused = cut_of_saved(shared, id, left[index].cells.length(), most);
        if (reused > best.length) best = {id, reused};
    }
    return best;
}

// Of what was saved with `length` positions, how many can be reused. `shared` as match() gives it.
std::int32_t KvRetention::State::cut_of_saved(std::span<const std::int32_t> shared, SlotId id,
                                              std::int32_t length, std::int32_t most) const {
    const std::int32_t count = std::min({shared[static_cast<std::size_t>(id)], length, most});
    if (shape.partial_truncate) return whole_chunks(count, length);
    return count == length ? length : last_fork(shared, count).length;
}

// Whether it should be moved back for a prompt of which a slot has `resident` positions.
bool KvRetention::State::worth_restoring(const Source& saved, std::int32_t resident) const {
    if (saved.slot == kNoSlot) return false;
    const std::int32_t length =
        is_fork(saved.slot) ? saved.length : left[index_of(saved.slot)].cells.length();
    return worth_moving(length, saved.length - resident);
}

// Whether so many positions should be moved to a slot to gain so many, and fit.
bool KvRetention::State::worth_moving(std::int32_t length, std::int32_t gain) const {
    if (gain < kMinCopiedPositions || gain < length / kMovesPerRow) return false;
    if (is_streams()) return true;
    const CellCounts counts = cells.counts();
    return counts.free + counts.retained >= length;
}

// Unified layout: evicts until so many cells are free, as far as that is possible.
void KvRetention::State::free_cells(std::int64_t count) {
    while (!is_streams() && cells.counts().free < count) {
        const SlotId victim = choose_evictable(kNoSlot, true);
        if (victim == kNoSlot) return;
        evict(victim);
    }
}

// Where what has left its slot is.
PrefixSource KvRetention::State::tier_of(SlotId id) const {
    if (is_fork(id)) return PrefixSource::kFork;
    return left[index_of(id)].staged ? PrefixSource::kDisk : PrefixSource::kRam;
}

// Moves it into the free slot `room`. Returns the positions that are there then: saved.length, or
// 0.
std::int32_t KvRetention::State::restore(const Source& saved, SlotId room) {
    if (is_fork(saved.slot)) return restore_fork(saved.slot, room);
    Left& entry = left_at(saved.slot);
    const std::int32_t length = entry.cells.length();
    free_cells(length);
    entry.wanted = false;
    if (!backend.restore(room, entry.cells)) {
        ++(entry.staged ? disk.damaged : ram.drops);
        forget(saved.slot);
        return 0;
    }
    ++(entry.staged ? disk.restores : ram.restores);
    ram.moved_bytes += static_cast<std::int64_t>(entry.cells.size());
    cells.append(room, length);
    tree.share(saved.slot, room, length);
    at(room).filed = entry.file != 0 ? length : 0;
    // Behind what the prompt shares may be what another one wants; else the slot has it all now.
    if (entry.staged || (saved.length == length && entry.file != 0)) {
        drop_cells(entry);
        entry.use.last_used = now;
    } else if (saved.length == length) {
        forget(saved.slot);
    }
    return truncate(room, saved.length);
}

// The longest path that the prompt goes on from has come back: how it is used from now on.
Use KvRetention::State::learn(std::span<const std::int32_t> shared) {
    SlotId returned = kNoSlot;
    std::int32_t longest = kWorthKeeping - 1;
    for (SlotId id = 0; id < id_of(left.size()); ++id) {
        const bool slot = id < shape.slot_count;
        if (slot && !is_evictable(at(id).state)) continue;
        const std::int32_t length = slot ? cells.length(id) : left_length(id);
        if (length == 0 || shared[static_cast<std::size_t>(id)] < length) continue;
        if (!slot) left_at(id).away = false;
        if (length <= longest) continue;
        returned = id;
        longest = length;
    }
    constexpr double kWeightOfNew = 1.0 / 8;
    if (returned == kNoSlot) {
        return_rate -= kWeightOfNew * return_rate;
        return {.last_used = now};
    }
    const bool slot = returned < shape.slot_count;
    const Use before = slot ? at(returned).use : left_at(returned).use;
    if (before.gap == 0) return_rate += kWeightOfNew * (1.0 - return_rate);
    return_times.add_return(before, now);
    const Use use = used_again(before, now);
    const Milliseconds gap = std::max<Milliseconds>(now - before.last_used, 1);
    usual_gap = usual_gap == 0 ? gap : (7 * usual_gap + gap) / 8;
    if (!slot && !left_at(returned).is_anywhere()) forget(returned);
    return use;
}

}  // namespace fermata
