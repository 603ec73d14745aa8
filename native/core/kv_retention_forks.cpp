// Forks: what a model that cannot be cut is cut back to.
#include <algorithm>
#include <functional>
#include <utility>

#include "core/kv_retention_state.h"

namespace fermata {

// Of the forks that a prompt begins with, the longest of at most `most` positions. `shared` as
// match() gives it.
KvRetention::State::Source KvRetention::State::last_fork(std::span<const std::int32_t> shared,
                                                         std::int32_t most) const {
    Source last;
    for (std::size_t index = 0; index < forks.size(); ++index) {
        const std::int32_t length = forks[index].cells.length();
        const SlotId id = id_of_fork(index);
        const bool begins = length > 0 && shared[static_cast<std::size_t>(id)] == length;
        if (begins && length <= most && length > last.length) last = {id, length};
    }
    return last;
}

// Makes room for a fork of the first `length` positions of the id's path, of which there is none.
// false: the policy finds what is in RAM worth more.
bool KvRetention::State::make_room_for_fork(SlotId of, std::int32_t length, std::int64_t size,
                                            bool leased) {
    const std::int32_t before = last_fork(match(of, length), length).length;
    const Candidate newcomer{
        .use = {.last_used = now}, .leased = leased, .rows = length - before, .room = size};
    return size > 0 && make_room_in_ram(size, newcomer, {});
}

void KvRetention::State::add_fork(SlotId of, SavedCells saved) {
    const std::int32_t length = saved.length();
    const auto size = static_cast<std::int64_t>(saved.size());
    const SlotId id = id_for_one_more_fork();
    tree.share(of, id, length);
    fork_at(id) = {.cells = std::move(saved), .use = {.last_used = now}};
    ram.fork_bytes += size;
    ram.moved_bytes += size;
    ++ram.forks;
}

// Keeps a fork of what the slot holds. false: it cannot be had, or the policy finds what is in RAM
// worth more.
bool KvRetention::State::fork(SlotId slot) {
    const std::int32_t length = cells.length(slot);
    if (!keeps_forks() || length == 0) return false;
    const Source same = last_fork(match(slot, length), length);
    if (same.length == length) {
        fork_at(same.slot).use.last_used = now;
        return true;
    }
    const auto size = static_cast<std::int64_t>(backend.fork_size(slot));
    if (!make_room_for_fork(slot, length, size, is_pinned(at(slot).state))) return false;
    SavedCells saved = backend.fork(slot);
    if (saved.empty()) return false;
    add_fork(slot, std::move(saved));
    ++ram.fork_saves;
    return true;
}

// A fork that the id's file had.
void KvRetention::State::take_fork(SlotId of, SavedCells saved) {
    const std::int32_t length = saved.length();
    if (!keeps_forks() || last_fork(match(of, length), length).length == length) return;
    if (make_room_for_fork(of, length, static_cast<std::int64_t>(saved.size()), false))
        add_fork(of, std::move(saved));
}

// The forks of the id's path that go to its file: the last ones and the first, which other
// sequences share, together of at most twice the size of the cells.
std::vector<SavedCells> KvRetention::State::forks_to_file(SlotId of, std::size_t cell_bytes) const {
    const std::int32_t length = static_cast<std::int32_t>(tree.path(of).size());
    const std::vector<std::int32_t> shared = match(of, length);
    std::vector<SavedCells> found;
    for (std::size_t index = 0; index < forks.size(); ++index) {
        const SavedCells& saved = forks[index].cells;
        const std::int32_t common = shared[static_cast<std::size_t>(id_of_fork(index))];
        if (!saved.empty() && saved.length() < length && common == saved.length())
            found.push_back(saved);
    }
    std::ranges::sort(found, std::greater{}, &SavedCells::length);
    if (found.size() > 2) std::rotate(found.begin() + 1, found.end() - 1, found.end());
    std::size_t bytes = 0, count = 0;
    while (count < std::min(found.size(), kMostFiledForks) &&
           bytes + found[count].size() <= 2 * cell_bytes)
        bytes += found[count++].size();
    found.resize(count);
    return found;
}

// Cuts the slot's cells back to the last fork of at most `length` positions, of which it returns
// how many are left. Neither the ledger nor the tree are changed.
std::int32_t KvRetention::State::cut_back(SlotId slot, std::int32_t length) {
    const std::vector<std::int32_t> shared = match(slot, length);
    const Source last = last_fork(shared, length);
    if (last.length == 0) {
        backend.truncate(slot, 0);
        return 0;
    }
    Fork& fork = fork_at(last.slot);
    ram.moved_bytes += static_cast<std::int64_t>(fork.cells.size());
    if (!backend.cut_back(slot, fork.cells)) {
        drop_fork(last.slot);
        ++ram.fork_drops;
        return 0;
    }
    fork.use = used_again(fork.use, now);
    ++ram.fork_uses;
    return last.length;
}

// Brings a fork that stands alone into the free slot `room`. Returns the positions that are there
// then.
std::int32_t KvRetention::State::restore_fork(SlotId id, SlotId room) {
    Fork& fork = fork_at(id);
    const std::int32_t length = fork.cells.length();
    free_cells(length);
    ram.moved_bytes += static_cast<std::int64_t>(fork.cells.size());
    if (!backend.cut_back(room, fork.cells)) {
        drop_fork(id);
        ++ram.fork_drops;
        return 0;
    }
    fork.use = used_again(fork.use, now);
    ++ram.fork_uses;
    cells.append(room, length);
    tree.share(id, room, length);
    return length;
}

void KvRetention::State::drop_fork(SlotId id) {
    Fork& fork = fork_at(id);
    if (fork.cells.empty()) return;
    ram.fork_bytes -= static_cast<std::int64_t>(fork.cells.size());
    --ram.forks;
    tree.truncate(id, 0);
    fork = {};
}

// One that is not used, or that of the fork that was used last the longest ago.
SlotId KvRetention::State::id_for_one_more_fork() {
    SlotId oldest = kNoSlot;
    for (std::size_t index = 0; index < forks.size(); ++index) {
        const SlotId id = id_of_fork(index);
        if (forks[index].cells.empty()) return id;
        if (id == wanted_fork) continue;
        if (oldest == kNoSlot || forks[index].use.last_used < fork_at(oldest).use.last_used)
            oldest = id;
    }
    drop_fork(oldest);
    ++ram.fork_drops;
    return oldest;
}

// Whether a slot or RAM has the fork's positions, without which it is of no use. `shared` as
// match() gives it for them.
bool KvRetention::State::is_held_somewhere(std::span<const std::int32_t> shared,
                                           std::int32_t length) const {
    if (shape.forks_stand_alone) return true;
    for (SlotId id = 0; id < id_of_fork(0); ++id) {
        const bool is_slot = id < shape.slot_count;
        const std::int32_t held = is_slot ? cells.length(id) : left_at(id).cells.length();
        if (held >= length && shared[static_cast<std::size_t>(id)] == length) return true;
    }
    return false;
}

// What the forks would cost to compute again, from the fork before on.
void KvRetention::State::add_forks(std::vector<Candidate>& candidates,
                                   std::vector<SlotId>& ids) const {
    for (std::size_t index = 0; index < forks.size(); ++index) {
        const Fork& fork = forks[index];
        const SlotId id = id_of_fork(index);
        if (fork.cells.empty() || id == wanted_fork) continue;
        const std::int32_t length = fork.cells.length();
        const std::vector<std::int32_t> shared = match(id, length);
        const std::int32_t before = last_fork(shared, length - 1).length;
        candidates.push_back({.use = fork.use,
                              .rows = is_held_somewhere(shared, length) ? length - before : 1,
                              .room = static_cast<std::int64_t>(fork.cells.size())});
        ids.push_back(id);
    }
}

std::string KvRetention::State::check_forks() const {
    std::int64_t bytes = 0;
    std::int32_t count = 0;
    for (std::size_t index = 0; index < forks.size(); ++index) {
        const SavedCells& saved = forks[index].cells;
        if (saved.length() != static_cast<std::int32_t>(tree.path(id_of_fork(index)).size()))
            return "retention: fork " + std::to_string(index) + " has a path of another length";
        bytes += static_cast<std::int64_t>(saved.size());
        count += saved.empty() ? 0 : 1;
    }
    if (bytes != ram.fork_bytes || count != ram.forks) return "retention: forks are miscounted";
    return {};
}

}  // namespace fermata
