#include "llama/mtp_head.h"

#include <algorithm>
#include <utility>

namespace fermata {

MtpHead::MtpHead(std::unique_ptr<LlamaBackend> cells, std::shared_ptr<const HiddenStates> states)
    : cells_(std::move(cells)),
      states_(std::move(states)),
      slots_(static_cast<std::size_t>(cells_->shape().slot_count)) {}

Decoder::Readable MtpHead::readable(SlotId slot) const {
    const auto [begin, end] = states_->range(slot);
    return {.first = begin + 1, .end = end + 1};
}

std::int32_t MtpHead::count_below(const Slot& slot, std::int32_t length) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(slot.positions, length) -
                                     slot.positions.begin());
}

// Nothing where there is none: rows of a measurement.
void MtpHead::find_input(const BatchRow& row, std::span<float> input) {
    if (row.position > 0 && states_->read(row.slot, row.position - 1, input)) return;
    const auto& [positions, last] = at(row.slot);
    const bool follows = !positions.empty() && positions.back() == row.position - 1;
    if (follows && last.size() == input.size()) std::ranges::copy(last, input.begin());
}

DecodeStatus MtpHead::decode(std::span<const BatchRow> rows) {
    const auto width = static_cast<std::size_t>(states_->width());
    inputs_.assign(rows.size() * width, 0.0f);
    rows_.assign(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        find_input(rows[i], std::span(inputs_).subspan(i * width, width));
        Slot& slot = at(rows[i].slot);
        rows_[i].position = static_cast<std::int32_t>(slot.positions.size());
        slot.positions.push_back(rows[i].position);
        slot.last.clear();
    }
    const DecodeStatus status = cells_->decode(rows_, inputs_);
    if (status != DecodeStatus::kOk) return status;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i + 1 < rows.size() && rows[i + 1].slot == rows[i].slot) continue;
        const auto state = cells_->state(i);
        at(rows[i].slot).last.assign(state.begin(), state.end());
    }
    return status;
}

bool MtpHead::copy_prefix(SlotId from, SlotId to, std::int32_t length) {
    const std::int32_t count = count_below(at(from), length);
    if (count > 0 && !cells_->copy_prefix(from, to, count)) return false;
    const auto& positions = at(from).positions;
    at(to) = {.positions = {positions.begin(), positions.begin() + count}, .last = {}};
    return true;
}

bool MtpHead::truncate(SlotId slot, std::int32_t length) {
    const std::int32_t count = count_below(at(slot), length);
    if (!cells_->truncate(slot, count)) return false;
    at(slot).positions.resize(static_cast<std::size_t>(count));
    at(slot).last.clear();
    return true;
}

}  // namespace fermata
