// How much room in RAM what leaves its slot takes, and what gives it up.
#include <algorithm>

#include "core/kv_retention_state.h"

namespace fermata {

namespace {

// Of a sequence that takes `size` bytes, the rows that `room` of them are.
std::int64_t rows_in(std::int64_t room, std::int64_t size, std::int32_t length) {
    return std::max<std::int64_t>(length * room / std::max<std::int64_t>(size, 1), 1);
}

}  // namespace

// Saves the slot in the room that RAM has or makes for it. Empty: there is none, or it cannot.
SavedCells KvRetention::State::save_in_ram(SlotId slot, std::int64_t size, const Beside& beside,
                                           const Candidate& newcomer) {
    if (size == 0 || !make_room_in_ram(size, newcomer, beside)) return {};
    SavedCells saved = backend.save_beside(slot, beside.cells, beside.common);
    // Where the bytes of the same tokens differ, it shares less than was expected.
    const auto added = static_cast<std::int64_t>(saved.not_kept());
    return make_room_in_ram(added, newcomer, {}) ? saved : SavedCells();
}

void KvRetention::State::keep_cells(Left& entry, SavedCells saved) {
    ram.bytes += static_cast<std::int64_t>(saved.keep());
    ++ram.sequences;
    entry.cells = std::move(saved);
}

// What has most of the slot's `length` positions. `shared` as match() gives it for them.
KvRetention::State::Beside KvRetention::State::beside_in_ram(std::span<const std::int32_t> shared,
                                                             std::int32_t length) const {
    Source most;
    for (std::size_t index = 0; index < left.size(); ++index) {
        if (left[index].cells.empty() || left[index].staged) continue;
        const SlotId id = id_of(index);
        const std::int32_t common =
            std::min({shared[static_cast<std::size_t>(id)], left[index].cells.length(), length});
        if (common > most.length) most = {id, common};
    }
    if (most.slot == kNoSlot) return {};
    return {.cells = left_at(most.slot).cells, .common = most.length};
}

// The rows are those of what it adds to RAM.
Candidate KvRetention::State::as_newcomer(const Use& use, bool leased, std::int32_t length,
                                          std::int64_t size, const Beside& beside) {
    const std::int64_t room = std::max<std::int64_t>(size - beside.kept(), 1);
    return {.use = use, .leased = leased, .rows = rows_in(room, size, length), .room = room};
}

// RAM has room for what the slot holds, and need give up nothing.
bool KvRetention::State::fits_in_ram(SlotId slot) const {
    if (ram.bytes + ram.fork_bytes >= ram.limit) return false;
    const std::int64_t size = size_in_ram(slot);
    if (size == 0) return false;
    const std::int64_t room = ram.limit - ram.bytes - ram.fork_bytes;
    if (size <= room) return true;
    const std::int32_t length = cells.length(slot);
    return size - beside_in_ram(match(slot, length), length).kept() <= room;
}

// Bytes that the slot takes when it is saved. To ask the backend takes as long as a row, and of a
// sequence that somebody waits for it is asked in every step.
std::int64_t KvRetention::State::size_in_ram(SlotId slot) const {
    const Slot& entry = at(slot);
    if (entry.measured != cells.length(slot)) {
        entry.saved_bytes = backend.saved_size(slot);
        entry.measured = cells.length(slot);
    }
    return static_cast<std::int64_t>(entry.saved_bytes);
}

// What RAM has of the slot's beginning is in the slot, and is saved with the rest when that leaves.
// A model that cannot be cut needs it where it ends.
void KvRetention::State::drop_covered(SlotId slot) {
    const std::int32_t length = cells.length(slot);
    if (!shape.partial_truncate || ram.sequences == 0 || length < kWorthKeeping) return;
    const std::vector<std::int32_t> shared = match(slot, length);
    for (SlotId id = shape.slot_count; id < id_of(left.size()); ++id) {
        Left& entry = left_at(id);
        if (entry.cells.empty() || entry.staged || entry.wanted || entry.leased) continue;
        const bool is_covered = shared[static_cast<std::size_t>(id)] == left_length(id);
        if (!is_covered || (entry.kept && !at(slot).kept)) continue;
        // With what the slot has more, RAM would not take it back.
        const auto bytes = static_cast<std::int64_t>(entry.cells.size());
        if (bytes / entry.cells.length() * length > ram.limit) continue;
        drop_cells(entry);
        if (!entry.is_anywhere()) forget(id);
    }
}

// What is lost when the slot is given up: what it alone holds, or what leaves RAM for that. Without
// rows: nothing.
Candidate KvRetention::State::loss_of(SlotId slot) const {
    const std::int32_t length = cells.length(slot);
    if (length < kWorthKeeping || is_in_files(slot, length) || fits_in_ram(slot))
        return {.rows = 0};
    const Candidate lost{.use = at(slot).use,
                         .leased = at(slot).state == SlotState::kLeased,
                         .rows = own_positions(slot)};
    if (ram.limit == 0) return lost;
    const std::int64_t size = size_in_ram(slot);
    if (size > ram.limit) return lost;
    const Candidate saved = as_newcomer(lost.use, lost.leased, length, size,
                                        beside_in_ram(match(slot, length), length));
    Candidate least;
    const SlotId leaves = least_in_ram(saved, &least);
    if (leaves == kNoSlot) return lost;
    return !is_fork(leaves) && left_at(leaves).file != 0 ? Candidate{.rows = 0} : least;
}

// What RAM gives up first, and puts it into `least`. kNoSlot: the newcomer.
SlotId KvRetention::State::least_in_ram(const Candidate& newcomer, Candidate* least) const {
    std::vector<Candidate> candidates{newcomer};
    std::vector<SlotId> ids{kNoSlot};
    for (SlotId id = shape.slot_count; id < id_of(left.size()); ++id) {
        const Left& entry = left_at(id);
        if (entry.cells.empty() || entry.wanted || entry.staged) continue;
        const auto size = static_cast<std::int64_t>(entry.cells.size());
        const auto room =
            std::max<std::int64_t>(static_cast<std::int64_t>(entry.cells.kept_alone()), 1);
        candidates.push_back({.use = entry.use,
                              .leased = entry.leased,
                              .rows = rows_in(room, size, entry.cells.length()),
                              .room = room});
        ids.push_back(id);
    }
    add_forks(candidates, ids);
    const std::size_t index = choose_victim(candidates, now, return_rates());
    if (least != nullptr) *least = candidates[index];
    return ids[index];
}

// Frees RAM for so many bytes more, but for those that it has beside. false: the limit or what is
// worth more than the newcomer is in the way.
bool KvRetention::State::make_room_in_ram(std::int64_t bytes, const Candidate& newcomer,
                                          const Beside& beside) {
    if (std::max(bytes, newcomer.room) > ram.limit) return false;
    while (ram.bytes + ram.fork_bytes + bytes - beside.kept() > ram.limit) {
        const SlotId victim = least_in_ram(newcomer, nullptr);
        if (victim == kNoSlot) return false;
        if (is_fork(victim)) {
            drop_fork(victim);
            ++ram.fork_drops;
            continue;
        }
        ++ram.drops;
        const SavedCells leaving = left_at(victim).cells;
        drop_cells(left_at(victim));
        file(victim, leaving);
    }
    return true;
}

void KvRetention::State::drop_cells(Left& entry) {
    if (entry.staged) return unstage(entry);
    if (entry.cells.empty()) return;
    ram.bytes -= static_cast<std::int64_t>(entry.cells.give_up());
    --ram.sequences;
    entry.cells = {};
}

std::string KvRetention::State::check_left() const {
    std::size_t bytes = 0;
    std::int32_t sequences = 0;
    for (std::size_t index = 0; index < left.size(); ++index) {
        const auto name = "retention: what has left, number " + std::to_string(index) + ",";
        const Left& entry = left[index];
        if (entry.wanted) return name + " is still wanted";
        if (entry.file != 0 && left_length(id_of(index)) == 0) return name + " has a file, no path";
        if (entry.staged || entry.cells.empty()) continue;
        if (entry.cells.length() != left_length(id_of(index)))
            return name + " has a path of another length";
        bytes += entry.cells.give_up();
        ++sequences;
    }
    bool all_given_up = true;
    for (const Left& entry : left)
        if (!entry.staged && entry.cells.not_kept() != entry.cells.size()) all_given_up = false;
    for (const Left& entry : left)
        if (!entry.staged) static_cast<void>(entry.cells.keep());
    if (!all_given_up) return "retention: a page's keepers are miscounted";
    if (static_cast<std::int64_t>(bytes) != ram.bytes || sequences != ram.sequences)
        return "retention: RAM is miscounted";
    if (ram.bytes + ram.fork_bytes > ram.limit) return "retention: more in RAM than allowed";
    if (filed_bytes() != disk.bytes) return "retention: files are miscounted";
    if (disk.bytes > disk.limit) return "retention: more in files than allowed";
    return {};
}

}  // namespace fermata
