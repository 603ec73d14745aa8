// What several servers need is computed by one of them, which writes it as soon as it has it.
#include <algorithm>
#include <array>
#include <utility>

#include "core/checksum.h"
#include "core/kv_retention_state.h"

namespace fermata {

namespace {

// Fewer rows are computed before the servers have agreed on who does it.
constexpr std::int32_t kWorthSharing = 256;

// Never 0.
std::uint64_t name_of(std::span<const Token> beginning, Salt salt) {
    const std::array<std::uint64_t, 2> both = {checksum_of(std::as_bytes(beginning)), salt};
    return std::max<std::uint64_t>(checksum_of(std::as_bytes(std::span(both))), 1);
}

}  // namespace

Claimed KvRetention::claim(std::span<const Token> beginning, std::int32_t have, Salt salt,
                           double row_ms) {
    State& s = *state_;
    const std::int32_t length = static_cast<std::int32_t>(beginning.size());
    const std::int32_t rows = length - have;
    if (s.files == nullptr || rows < kWorthSharing) return {};
    if (row_ms > 0 && s.files->read_ms(s.likely_bytes(length)) > row_ms * rows) return {};
    const std::uint64_t what = name_of(beginning, salt);
    return {.claim = s.files->claim(what), .what = what};
}

void KvRetention::set_claim(SlotId slot, std::uint64_t claim) {
    state_->at(slot).claim = claim;
}

void KvRetention::give_back(std::uint64_t claim) {
    const State& s = *state_;
    const auto has_it = [claim](const auto& entry) { return entry.claim == claim; };
    if (claim == 0 || std::ranges::any_of(s.slots, has_it) || std::ranges::any_of(s.left, has_it))
        return;
    state_->give_back(claim);
}

void KvRetention::share(SlotId slot) {
    State& s = *state_;
    if (s.files == nullptr) return s.give_back(s.at(slot).claim);
    std::uint64_t claim = std::exchange(s.at(slot).claim, 0);
    const bool is_written = s.back_up_slot(
        slot,
        {.use = {.last_used = s.now}, .kept = s.at(slot).kept, .shared = true, .claim = claim});
    if (!is_written) s.give_back(claim);
}

void KvRetention::State::give_back(std::uint64_t& claim) {
    if (claim != 0 && files != nullptr) files->give_back(claim);
    claim = 0;
}

// Of a file with so many positions, by those that there are; 0: that is not known.
std::int64_t KvRetention::State::likely_bytes(std::int32_t length) const {
    std::int64_t bytes = 0, positions = 0;
    for (std::size_t index = 0; index < left.size(); ++index) {
        if (left[index].file == 0) continue;
        bytes += left[index].file_bytes;
        positions += left_length(id_of(index));
    }
    return positions > 0 ? bytes / positions * length : 0;
}

}  // namespace fermata
