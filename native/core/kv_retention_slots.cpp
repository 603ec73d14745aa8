// Slots: their cells, their tokens in the tree and the backend, changed together; and what a prompt
// can reuse of them.
#include <algorithm>

#include "core/kv_retention_state.h"

namespace fermata {

KvRetention::State::State(Backend& used_backend, std::int64_t ram_limit, std::int32_t left_limit,
                          SequenceFiles* used_files, std::int64_t disk_limit)
    : backend(used_backend),
      shape(backend.shape()),
      tree(shape.slot_count + left_limit + kMaxForks),
      cells(shape),
      slots(static_cast<std::size_t>(shape.slot_count)),
      left(static_cast<std::size_t>(left_limit)),
      files(used_files) {
    ram.limit = ram_limit;
    disk.limit = disk_limit;
    if (!shape.partial_truncate && ram_limit > 0) forks.resize(kMaxForks);
}

SlotSet KvRetention::State::in_state(SlotState first, SlotState second) const {
    SlotSet set;
    for (SlotId slot = 0; slot < shape.slot_count; ++slot)
        if (at(slot).state == first || at(slot).state == second) set.add(slot);
    return set;
}

void KvRetention::State::set_state(SlotId slot, SlotState state) {
    at(slot).state = state;
    cells.pin(slot, is_pinned(state));
    if (state != SlotState::kRunning) give_back(at(slot).claim);
}

void KvRetention::State::clear(SlotId slot) {
    backend.truncate(slot, 0);
    cells.truncate(slot, 0);
    tree.truncate(slot, 0);
    set_state(slot, SlotState::kFree);
    at(slot) = {};
}

// Returns the positions that are left: `length`, or up to the last fork before if the model cannot
// truncate.
std::int32_t KvRetention::State::truncate(SlotId slot, std::int32_t length) {
    if (length == cells.length(slot)) return length;
    if (!backend.truncate(slot, length)) length = cut_back(slot, length);
    cells.truncate(slot, length);
    tree.truncate(slot, length);
    at(slot).filed = 0;
    return length;
}

// Returns the positions that `to` has then: `length`, or fewer if the backend cannot.
std::int32_t KvRetention::State::copy(SlotId from, SlotId to, std::int32_t length) {
    if (length == 0) return 0;
    const std::int32_t part = shape.partial_truncate ? length : cells.length(from);
    if (is_streams()) copied_bytes += 2 * size_in_ram(from);
    if (!backend.copy_prefix(from, to, part)) return 0;
    cells.copy(from, to, part);
    tree.share(from, to, part);
    if (is_streams()) ++copies;
    return truncate(to, length);
}

// The free slot `to` takes the place of `from`, with its state. false: nothing was changed.
bool KvRetention::State::move(SlotId from, SlotId to) {
    if (copy(from, to, cells.length(from)) != cells.length(from)) {
        clear(to);
        return false;
    }
    at(to) = at(from);
    cells.pin(to, is_pinned(at(to).state));
    clear(from);
    return true;
}

// By id, of slots and of what has left them.
std::vector<std::int32_t> KvRetention::State::match(std::span<const Token> prompt,
                                                    Salt salt) const {
    std::vector<std::int32_t> shared(slots.size() + left.size() + kMaxForks);
    tree.match(prompt, salt, shared);
    return shared;
}

// The same for the first `length` tokens of the id's own path.
std::vector<std::int32_t> KvRetention::State::match(SlotId id, std::int32_t length) const {
    return match(tree.path(id).first(static_cast<std::size_t>(length)), tree.salt(id));
}

// Of the first `count` positions of a slot that has `length`, those of chunks that were, or will
// be, computed as chunks: see CacheShape::fixed_chunk.
std::int32_t KvRetention::State::whole_chunks(std::int32_t count, std::int32_t length) const {
    if (shape.fixed_chunk <= 1) return count;
    return std::max(0, std::min(count, length - 1)) / shape.fixed_chunk * shape.fixed_chunk;
}

// Of the positions that a slot has in common with a prompt, how many can be reused now. `shared` as
// match() gives it.
std::int32_t KvRetention::State::reusable(SlotId slot, std::span<const std::int32_t> shared,
                                          std::int32_t most) const {
    const std::int32_t resident = cells.length(slot);
    const std::int32_t count = std::min({shared[static_cast<std::size_t>(slot)], resident, most});
    if (shape.partial_truncate) return whole_chunks(count, resident);
    return count == resident ? count : last_fork(shared, count).length;
}

// The longest beginning of the prompt that anybody has, or has had.
std::int32_t KvRetention::State::known_length(std::span<const std::int32_t> shared,
                                              std::int32_t most) const {
    return std::min(std::ranges::max(shared), most);
}

// Of the first `common` positions that a running slot has or plans, those that it will give.
std::int32_t KvRetention::State::promised(SlotId slot, std::int32_t common) const {
    // The last token of the plan may be kept back.
    if (shape.partial_truncate)
        return whole_chunks(common, static_cast<std::int32_t>(tree.path(slot).size()) - 1);
    std::int32_t last = 0;
    for (const std::int32_t mark : at(slot).marks)
        if (mark <= common) last = mark;
    return last;
}

// Whether the slot's end behind the source is computed again in less time than a copy takes, and
// the room that it needs.
bool KvRetention::State::is_near(const Source& source) const {
    // 1,780 positions are copied in 12 ms where one is computed in half a millisecond; larger
    // models compute longer, but move more too.
    constexpr std::int32_t kCopiesPerRow = 64;
    if (source.slot == kNoSlot || at(source.slot).state != SlotState::kRetained) return false;
    if (!is_streams() || !shape.partial_truncate) return false;
    const std::int32_t end = cells.length(source.slot) - source.length;
    return end < kMinCopiedPositions && end < source.length / kCopiesPerRow;
}

}  // namespace fermata
