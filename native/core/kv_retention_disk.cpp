// What is in files: what RAM has no room for, copies of what rests, and what was there at the
// start. A file stays when its sequence comes back, until one that continues it is written.
#include <algorithm>

#include "core/kv_retention_state.h"

namespace fermata {

namespace {

// What goes on within this time is not written: it would be written again soon.
constexpr Milliseconds kRestsFor = 3'000;
// A disk that takes longer is not waited for, and what was read and not taken is given up.
constexpr Milliseconds kReadPatience = 10'000;
// Sequences that are read, or were read and wait for their slot: they are in memory beside RAM's.
constexpr std::int32_t kMostReads = 2;

}  // namespace

void KvRetention::State::take_found() {
    disk.foreign = files->foreign();
    const std::int64_t damaged = files->damaged_when_found();
    disk.damaged += damaged - damaged_when_found;
    damaged_when_found = damaged;
    disk.fault = files->fault();
    for (FoundFile& found : files->take_found()) {
        if (found.id < kFoundLater) next_file = std::max(next_file, found.id + 1);
        const Candidate newcomer{.use = {.last_used = now - found.age_ms},
                                 .rows = static_cast<std::int64_t>(found.tokens.size()),
                                 .room = std::max<std::int64_t>(found.bytes, 1)};
        const bool fits = disk.files < static_cast<std::int32_t>(left.size()) / 2 &&
                          make_room_on_disk(found.bytes, newcomer);
        if (!fits) {
            ++disk.full;
            files->remove(found.id);
            continue;
        }
        const SlotId id = id_for_one_more();
        tree.set_salt(id, found.salt);
        tree.extend(id, found.tokens);
        left_at(id) = {.use = newcomer.use,
                       .file = found.id,
                       .file_bytes = found.bytes,
                       .file_forks = std::move(found.forks),
                       .filed = true};
        disk.bytes += found.bytes;
        ++disk.files;
    }
}

SlotId KvRetention::State::id_of_file(FileId file) const {
    for (std::size_t index = 0; index < left.size(); ++index)
        if (left[index].file == file) return id_of(index);
    return kNoSlot;
}

void KvRetention::State::settle(FileOutcome outcome) {
    const SlotId id = id_of_file(outcome.id);
    if (id == kNoSlot) return;  // removed meanwhile
    Left& entry = left_at(id);
    switch (outcome.event) {
        case FileEvent::kWritten:
            ++disk.saves;
            give_back(entry.claim);
            drop_superseded(id);
            return;
        case FileEvent::kRead:
            entry.reading = false;
            entry.asked_or_staged = now;
            entry.staged = entry.cells.empty();
            if (!entry.staged) {
                --reads;
            } else if (outcome.cells.length() == left_length(id)) {
                entry.cells = std::move(outcome.cells);
                for (SavedCells& fork : outcome.forks)
                    take_fork(id, std::move(fork));
            } else {
                entry.staged = false;
                --reads;
                ++disk.damaged;
                remove_file(entry);
            }
            break;
        case FileEvent::kDamaged:
            ++disk.damaged;
            forget_file(entry);
            break;
        case FileEvent::kGone:
            ++disk.full;
            forget_file(entry);
            break;
        case FileEvent::kNotWritten:
        case FileEvent::kUnreadable:
            ++disk.failed;
            forget_file(entry);
            break;
    }
    if (!entry.is_anywhere()) forget(id);
}

// Of what is being read, or was read and waits for its slot, one may still be in time.
bool KvRetention::State::awaits_read() const {
    return std::ranges::any_of(left, [this](const Left& entry) {
        return (entry.reading || entry.staged) && now - entry.asked_or_staged < kReadPatience;
    });
}

void KvRetention::State::unstage(Left& entry) {
    if (!entry.staged) return;
    entry.staged = false;
    entry.cells = {};
    --reads;
}

// Keeps no account of the file any more.
void KvRetention::State::forget_file(Left& entry) {
    if (entry.file == 0) return;
    unstage(entry);
    if (entry.reading) --reads;
    entry.reading = false;
    give_back(entry.claim);
    disk.bytes -= entry.file_bytes;
    --disk.files;
    entry.file = 0;
    entry.file_bytes = 0;
    entry.file_forks.clear();
}

void KvRetention::State::remove_file(Left& entry) {
    if (entry.file == 0) return;
    if (files != nullptr) files->remove(entry.file);
    forget_file(entry);
}

// Whether a file has the first `length` tokens of the id's path.
bool KvRetention::State::is_in_files(SlotId of, std::int32_t length) const {
    if (disk.files == 0) return false;
    const std::vector<std::int32_t> shared = match(of, length);
    for (std::size_t index = 0; index < left.size(); ++index) {
        const SlotId id = id_of(index);
        const bool whole = shape.partial_truncate || left_length(id) == length;
        if (left[index].file != 0 && shared[static_cast<std::size_t>(id)] == length && whole)
            return true;
    }
    return false;
}

// Frees disk for so many bytes more. false: the limit or what is worth more than the newcomer is in
// the way.
bool KvRetention::State::make_room_on_disk(std::int64_t bytes, const Candidate& newcomer) {
    if (bytes > disk.limit) return false;
    while (disk.bytes + bytes > disk.limit) {
        std::vector<Candidate> candidates{newcomer};
        std::vector<SlotId> ids{kNoSlot};
        for (std::size_t index = 0; index < left.size(); ++index) {
            const Left& entry = left[index];
            if (entry.file == 0 || entry.wanted || entry.reading || entry.staged) continue;
            candidates.push_back({.use = entry.use,
                                  .leased = entry.leased,
                                  .rows = std::max(left_length(id_of(index)), 1),
                                  .room = std::max<std::int64_t>(entry.file_bytes, 1)});
            ids.push_back(id_of(index));
        }
        const SlotId victim = ids[choose_victim(candidates, now, return_rates())];
        if (victim == kNoSlot) return false;
        ++disk.full;
        remove_file(left_at(victim));
        if (!left_at(victim).is_anywhere()) forget(victim);
    }
    return true;
}

// Has what is at the id written. false: a file has it, or there is no room.
bool KvRetention::State::file(SlotId id, const SavedCells& saved) {
    if (files == nullptr || saved.empty() || left_at(id).filed || !left_at(id).kept) return false;
    left_at(id).filed = true;
    const auto path = tree.path(id);
    if (is_in_files(id, left_length(id))) return false;
    std::vector<SavedCells> forked = forks_to_file(id, saved.size());
    const std::int64_t bytes = file_size(path, saved.size(), forked);
    if (!files->has_room(bytes)) {
        ++disk.busy;
        return false;
    }
    left_at(id).wanted = true;
    const bool fits = make_room_on_disk(bytes, {.use = left_at(id).use,
                                                .leased = left_at(id).leased,
                                                .rows = saved.length(),
                                                .room = bytes});
    Left& entry = left_at(id);
    entry.wanted = false;
    if (!fits) {
        ++disk.full;
        return false;
    }
    entry.file_forks.clear();
    for (const SavedCells& fork : forked)
        entry.file_forks.push_back(fork.length());
    files->write(next_file, tree.salt(id), {path.begin(), path.end()}, saved, std::move(forked));
    entry.file = next_file++;
    entry.file_bytes = bytes;
    disk.bytes += bytes;
    ++disk.files;
    return true;
}

// What the slot holds stays there too. false: a file has it, or there is no room.
bool KvRetention::State::back_up_slot(SlotId slot, Left as) {
    const std::int32_t length = cells.length(slot);
    at(slot).filed = length;
    if (is_in_files(slot, length)) return false;
    const SavedCells saved = backend.save(slot);
    if (saved.empty()) return false;
    backed_up_bytes += static_cast<std::int64_t>(saved.size());
    const SlotId id = id_for_one_more();
    tree.share(slot, id, length);
    left_at(id) = std::move(as);
    const bool is_filed = file(id, saved);
    if (!is_filed) forget(id);
    return is_filed;
}

KvRetention::State::Left KvRetention::State::as_it_rests(SlotId slot) const {
    return {.use = at(slot).use,
            .leased = at(slot).state != SlotState::kRetained,
            .until = waited_for_until(at(slot))};
}

// What has just been written has all of these files.
void KvRetention::State::drop_superseded(SlotId written) {
    const std::int32_t length = left_length(written);
    const std::vector<std::int32_t> shared = match(written, length);
    const std::vector<std::int32_t>& cuts = left_at(written).file_forks;
    for (SlotId id = shape.slot_count; id < id_of(left.size()); ++id) {
        Left& entry = left_at(id);
        const std::int32_t known = left_length(id);
        if (id == written || entry.file == 0 || entry.reading || entry.staged) continue;
        if (entry.shared) continue;
        if (shared[static_cast<std::size_t>(id)] != known) continue;
        const bool is_cut = std::ranges::find(cuts, known) != cuts.end();
        if (!shape.partial_truncate && known != length && !is_cut) continue;
        remove_file(entry);
        if (!entry.is_anywhere()) forget(id);
    }
}

// Of what the id's file has, how many positions can be reused. `shared` as match() gives it.
std::int32_t KvRetention::State::cut_of_filed(std::span<const std::int32_t> shared, SlotId id,
                                              std::int32_t most) const {
    const std::int32_t length = left_length(id);
    std::int32_t longest = cut_of_saved(shared, id, length, most);
    if (!keeps_forks()) return longest;
    const std::int32_t count = std::min(shared[static_cast<std::size_t>(id)], most);
    for (const std::int32_t cut : left_at(id).file_forks)
        if (cut <= count) longest = std::max(longest, cut);
    return longest;
}

// The longest prefix that a file has and RAM has not, of several the smallest file. `shared` as
// match() gives it.
KvRetention::State::Source KvRetention::State::best_filed(std::span<const std::int32_t> shared,
                                                          std::int32_t most) const {
    Source best;
    for (std::size_t index = 0; index < left.size(); ++index) {
        const Left& entry = left[index];
        if (entry.file == 0 || (!entry.cells.empty() && !entry.staged)) continue;
        const std::int32_t reused = cut_of_filed(shared, id_of(index), most);
        const bool smaller = best.slot != kNoSlot && reused == best.length &&
                             entry.file_bytes < left_at(best.slot).file_bytes;
        if (reused > best.length || smaller) best = {id_of(index), reused};
    }
    return best;
}

std::int64_t KvRetention::State::filed_bytes() const {
    std::int64_t bytes = 0;
    for (const Left& entry : left)
        bytes += entry.file_bytes;
    return bytes;
}

void KvRetention::attend_files(Milliseconds now) {
    State& s = *state_;
    if (s.files == nullptr) return;
    s.now = now;
    s.take_found();
    for (FileOutcome& outcome : s.files->take_outcomes()) {
        s.settle(std::move(outcome));
    }
    if (s.reads == 0) return;
    for (State::Left& entry : s.left)
        if (now - entry.asked_or_staged >= kReadPatience) s.unstage(entry);
}

bool KvRetention::fetch(std::span<const Token> prompt, std::int32_t have, Salt salt,
                        double row_ms) {
    State& s = *state_;
    if (s.files == nullptr || s.disk.files == 0) return false;
    const auto most = std::max(0, static_cast<std::int32_t>(prompt.size()) - 1);
    const State::Source filed = s.best_filed(s.match(prompt, salt), most);
    if (filed.slot == kNoSlot || !s.worth_moving(s.left_length(filed.slot), filed.length - have))
        return false;
    State::Left& entry = s.left_at(filed.slot);
    if (entry.staged) return false;  // acquire takes it
    // Computed sooner than it is here.
    if (!entry.reading && row_ms > 0 &&
        s.files->read_ms(entry.file_bytes) > row_ms * (filed.length - have))
        return false;
    if (entry.reading) return s.now - entry.asked_or_staged < kReadPatience;
    if (s.reads >= kMostReads) return s.awaits_read();
    entry.reading = true;
    entry.asked_or_staged = s.now;
    ++s.reads;
    s.files->read(entry.file);
    return true;
}

void KvRetention::back_up(std::int64_t most) {
    State& s = *state_;
    if (s.files == nullptr) return;
    const auto may_go = [&](std::int64_t bytes) {
        return bytes > 0 && bytes <= most && s.files->has_room(bytes);
    };
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot) {
        State::Slot& entry = s.at(slot);
        const std::int32_t length = s.cells.length(slot);
        const bool rests = entry.state == SlotState::kHeld || is_evictable(entry.state);
        if (!rests || !entry.kept || length < kWorthKeeping || entry.filed == length) continue;
        if (s.now - entry.rests_since < kRestsFor) continue;
        const auto cells = static_cast<std::size_t>(s.size_in_ram(slot));
        if (cells == 0 || !may_go(file_size(tokens(slot), cells, {}))) continue;
        s.back_up_slot(slot, s.as_it_rests(slot));
        return;
    }
    for (SlotId id = s.shape.slot_count; id < s.id_of(s.left.size()); ++id) {
        const State::Left& entry = s.left_at(id);
        if (entry.cells.empty() || entry.staged || entry.filed || !entry.kept) continue;
        if (s.now - entry.use.last_used < kRestsFor) continue;
        if (!may_go(file_size(s.tree.path(id), entry.cells.size(), {}))) continue;
        s.file(id, SavedCells(entry.cells));
        return;
    }
}

void KvRetention::save_all() {
    State& s = *state_;
    if (s.files == nullptr) return;
    struct LetGo {
        State& s;
        ~LetGo() { s.files = nullptr; }
    } let_go{s};
    std::vector<std::pair<Milliseconds, SlotId>> newest;
    for (SlotId slot = 0; slot < s.shape.slot_count; ++slot)
        if (s.at(slot).state != SlotState::kFree && s.at(slot).kept &&
            s.cells.length(slot) >= kWorthKeeping && s.at(slot).filed != s.cells.length(slot))
            newest.emplace_back(-s.at(slot).rests_since, slot);
    std::ranges::sort(newest);
    for (const auto& [since, slot] : newest) {
        const std::size_t cells = s.backend.saved_size(slot);
        if (cells == 0) continue;
        const std::vector<SavedCells> forked = s.forks_to_file(slot, cells);
        if (s.files->wait_for_room(file_size(tokens(slot), cells, forked)))
            s.back_up_slot(slot, s.as_it_rests(slot));
    }
    newest.clear();
    for (SlotId id = s.shape.slot_count; id < s.id_of(s.left.size()); ++id)
        if (const State::Left& entry = s.left_at(id);
            !entry.cells.empty() && !entry.staged && entry.kept)
            newest.emplace_back(-entry.use.last_used, id);
    std::ranges::sort(newest);
    for (const auto& [since, id] : newest) {
        const SavedCells saved = s.left_at(id).cells;
        if (saved.empty() || s.left_at(id).filed) continue;
        const std::vector<SavedCells> forked = s.forks_to_file(id, saved.size());
        if (s.files->wait_for_room(file_size(s.tree.path(id), saved.size(), forked)))
            s.file(id, saved);
    }
}

DiskCounts KvRetention::disk() const {
    return state_->disk;
}

}  // namespace fermata
